"""Modules that a job's Python processes import and that no machine of the cluster has, and their way to them.

It lies in one folder. The processes beside the driver, which plan, have that folder on their path. Executors get it as
an archive, which Spark unpacks in their working directory, under a name that is on the path of their workers. A server
of Spark Connect gets the sources of its modules with each part of the program.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import threading
from functools import cache
from importlib.util import decode_source
from pathlib import Path

from pyspark.sql import SparkSession

import eventide
from eventide.errors import ProgramError
from eventide.runtime.modules import NO_MODULES, Modules
from eventide.runtime.python_folder import PythonFolder, new_folder
from eventide.spark.connect import over_connect
from eventide.spark.takes_modules import FOLDER, is_local, why_it_takes_none

UNPACKED = "eventide-python"
"""The folder as an executor has it."""

_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:/")
_PACKED = ".tgz"
_shipping = threading.Lock()
_COMPILED = (".so", ".pyd", ".dylib")


def ship(spark: SparkSession) -> None:
    """Bring what a session's jobs import to its executors; a session that was not made by eventide has it there."""
    if spark.conf.get(FOLDER, None) is not None:
        PythonFiles.of(spark).ship()


def modules_for_server(spark: SparkSession) -> Modules:
    """Return the modules that travel to a server of Spark Connect with each part of a program; elsewhere, none has to.

    Raises:
        ProgramError: if there is more than sources.
    """
    return PythonFiles.of(spark).modules() if over_connect() else NO_MODULES


@cache
def _folder_of_client() -> str:
    """The one of this process, where it is a client of Spark Connect."""
    return new_folder()


class PythonFiles(PythonFolder):
    """The folder of one session, or of one client of Spark Connect.

    Args:
        spark: the session.
        folder: the folder, which is on the path of the processes beside the driver.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        super().__init__(folder)
        self._spark = spark

    @classmethod
    def of(cls, spark: SparkSession) -> PythonFiles:
        """That of a session which eventide has made, or of any over Spark Connect.

        Raises:
            ProgramError: if its processes look elsewhere: somebody else has made it, or spark-submit its Java.
        """
        if over_connect():
            return cls(spark, _folder_of_client())
        if (why := why_it_takes_none(spark)) is not None:
            raise ProgramError(why)
        return cls(spark, str(spark.conf.get(FOLDER)))

    def modules(self) -> Modules:
        """The sources of all modules.

        Raises:
            ProgramError: if there are compiled ones, which Python imports from files alone.
        """
        files = sorted(path for path in self._folder.rglob("*") if path.is_file())
        for path in files:
            if path.suffix in _COMPILED:
                raise ProgramError(
                    f"add_python_file brings only sources to a server of Spark Connect, and {path.name} is compiled: "
                    "install its package where the server runs"
                )
        sources = {path.relative_to(self._folder).as_posix(): path for path in files if path.suffix == ".py"}
        return Modules({name: decode_source(path.read_bytes()) for name, path in sources.items()})

    def ship(self) -> None:
        """Bring all of it to the executors, with eventide itself, unless they have it or share this process's disk.

        Raises:
            ProgramError: if they have been brought something else before: Spark unpacks all archives of one name where
                an executor starts, in any order, each in place of the one before.
        """
        if is_local(str(self._spark.conf.get("spark.master"))):
            return
        with _shipping:
            self.add(str(Path(eventide.__file__).parent))
            archive = self._folder.with_name(f"{_digest(self._folder)}{_PACKED}")
            before = [*self._folder.parent.glob(f"*{_PACKED}")]
            if archive in before:
                return
            if before:
                raise ProgramError(
                    "the program's functions import other files than the first job of this session, and executors "
                    "that start later may get the first ones: call add_python_file(...) and "
                    "set_python_requirements(...) before the first job; or stop the session, and make a new environment"
                )
            packing = archive.with_suffix(".packing")
            with tarfile.open(packing, "w:gz", compresslevel=1) as packed:
                packed.add(self._folder, ".")
            self._spark.sparkContext.addArchive(f"{packing.rename(archive).as_uri()}#{UNPACKED}")


def uri_of(location: str) -> str:
    """Return a URI that Spark takes for any location: it does not take a path with blanks that ends in a name.

    >>> uri_of("/models/of all.tgz"), uri_of("s3a://bucket/models.tgz")
    ('file:///models/of%20all.tgz', 's3a://bucket/models.tgz')
    """
    return location if _SCHEME.match(location) else Path(os.path.abspath(location)).as_uri()


def _digest(folder: Path) -> str:
    """A text that differs where a file in a folder does."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        content = path.read_bytes()
        found.update(f"{path.relative_to(folder)} {len(content)} ".encode() + content)
    return found.hexdigest()
