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
from urllib.parse import unquote, urlsplit

from eventide.errors import ProgramError

_ENDINGS = (".zip", ".jar", ".whl", ".egg", ".tar", ".tar.gz", ".tgz")


class _WorkingDirectory:
    """The working directory of this process, which all its threads share, and the jobs that need it elsewhere.

    The first job in saves the directory, and the last one out restores it. A job that needs another folder at the
    same time gets an error. It does not wait: a function of the first job may have started it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs = 0
        self._folder = Path()
        self._before = ""

    @contextmanager
    def at(self, folder: Path) -> Iterator[None]:
        """Stay in a folder for the time of one job.

        Raises:
            ProgramError: if a job works in another folder now.
        """
        self._enter(folder)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, folder: Path) -> None:
        with self._lock:
            if self._jobs and folder != self._folder:
                raise ProgramError(
                    "this job and a job that runs now have archives of two environments (add_python_archive); this "
                    "process has one working directory, so start the job after the other one has ended, or add the "
                    "archives to one environment"
                )
            if not self._jobs:
                before = os.getcwd()
                os.chdir(folder)
                self._before, self._folder = before, folder
            self._jobs += 1

    def _leave(self) -> None:
        with self._lock:
            self._jobs -= 1
            if not self._jobs:
                os.chdir(self._before)


_OF_THIS_PROCESS = _WorkingDirectory()


class Archives:
    """The archives of one host, unpacked in a folder that is deleted with the host, at the latest at exit."""

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
        folder = self._folder or self._new_folder()
        target = folder / target_dir
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
        self._folder = folder

    @contextmanager
    def working_directory(self) -> Iterator[None]:
        """Make this process work in the folder of the archives, as PyFlink does; without archives, leave it.

        The working directory belongs to the whole process: meanwhile, a relative path of every other thread leads
        into the folder, too.

        Raises:
            ProgramError: if a job works in the folder of another host's archives now.
        """
        if self._folder is None:
            yield
        else:
            with _OF_THIS_PROCESS.at(self._folder):
                yield

    def _new_folder(self) -> Path:
        folder = tempfile.mkdtemp(prefix="eventide-archives-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)
