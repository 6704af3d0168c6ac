"""Unpacked archives of a program, in a folder of this machine in which functions work while a job runs."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from eventide.errors import ProgramError

_ENDINGS = (".zip", ".jar", ".whl", ".egg", ".tar", ".tar.gz", ".tgz")


class Archives:
    """The archives of one host, unpacked in a folder that is deleted with the host, at the latest at exit."""

    _lock: ClassVar = threading.Lock()
    _working: ClassVar[list[Path]] = []
    """The folder of each job that runs now in a folder of archives; it is one for all: so is the working directory."""
    _before: ClassVar = ""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def unpack(self, archive: str, target_dir: str) -> None:
        """Unpack an archive into a folder of its own, in place of the one that was there under that name.

        Raises:
            ProgramError: if there is no such archive on this machine.
        """
        source = Path(unquote(urlsplit(archive).path) if archive.startswith("file:") else archive)
        if not source.is_file() or not source.name.endswith(_ENDINGS):
            raise ProgramError(
                f"add_python_archive({archive!r}): there is no archive here that the host without Spark can unpack; "
                f"name a file on this machine that ends with one of {', '.join(_ENDINGS)}"
            )
        folder = self._folder
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="eventide-archives-"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        shutil.rmtree(folder / target_dir, ignore_errors=True)
        try:
            if zipfile.is_zipfile(source):
                with zipfile.ZipFile(source) as packed:
                    packed.extractall(folder / target_dir)
            else:
                with tarfile.open(source) as packed_by_tar:
                    packed_by_tar.extractall(folder / target_dir, filter="tar")
        except (tarfile.TarError, zipfile.BadZipFile, OSError) as error:
            raise ProgramError(f"add_python_archive({archive!r}): it cannot be unpacked: {error}") from error
        self._folder = folder

    @contextmanager
    def working_directory(self) -> Iterator[None]:
        """Make this process work in the folder of the archives, as PyFlink does; without archives, leave it.

        The working directory belongs to the whole process: meanwhile, a relative path of every other thread leads
        into the folder, too. Jobs of one host may overlap; the last of them restores the directory. A job of another
        host does not wait, since a function of the first job may have started it.

        Raises:
            ProgramError: if a job works in the folder of another host's archives now.
        """
        if self._folder is None:
            yield
            return
        with Archives._lock:
            if Archives._working and Archives._working[0] != self._folder:
                raise ProgramError(
                    "this job and a job that runs now have archives of two environments (add_python_archive); this "
                    "process has one working directory, so start the job after the other one has ended, or add the "
                    "archives to one environment"
                )
            if not Archives._working:
                before = os.getcwd()
                os.chdir(self._folder)
                Archives._before = before
            Archives._working.append(self._folder)
        try:
            yield
        finally:
            with Archives._lock:
                Archives._working.pop()
                if not Archives._working:
                    os.chdir(Archives._before)
