"""Unpacked archives of a program, in a folder of this machine in which functions work while a job runs."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import tarfile
import tempfile
import zipfile
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from eventide.errors import ProgramError

_ENDINGS = (".zip", ".jar", ".whl", ".egg", ".tar", ".tar.gz", ".tgz")


@cache
def _folder() -> Path:
    place = tempfile.mkdtemp(prefix="eventide-archives-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(place)


def unpack(archive: str, target_dir: str) -> None:
    """Unpack an archive into a folder of its own, in place of what was there under that name.

    Raises:
        ProgramError: if there is no such archive on this machine.
    """
    source = Path(unquote(urlsplit(archive).path) if archive.startswith("file:") else archive)
    if not source.is_file() or not source.name.endswith(_ENDINGS):
        raise ProgramError(
            f"add_python_archive({archive!r}): there is no archive here that the host without Spark can unpack; name a "
            f"file on this machine that ends with one of {', '.join(_ENDINGS)}"
        )
    target = _folder() / target_dir
    shutil.rmtree(target, ignore_errors=True)
    try:
        if zipfile.is_zipfile(source):
            with zipfile.ZipFile(source) as packed:
                packed.extractall(target)
        else:
            with tarfile.open(source) as packed_by_tar:
                packed_by_tar.extractall(target, filter="tar")
    except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
        raise ProgramError(f"add_python_archive({archive!r}): it cannot be unpacked: {error}") from error


def where_archives_are() -> AbstractContextManager[None]:
    """Make this process work in the folder of the archives for a while, if there are any, as PyFlink does."""
    return contextlib.chdir(_folder()) if _folder.cache_info().currsize else contextlib.nullcontext()
