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

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession, is_remote

import eventide
from eventide.errors import ProgramError
from eventide.runtime.pickles import NO_MODULES, Modules
from eventide.runtime.python_folder import PythonFolder, new_folder

FOLDER = "spark.eventide.pythonFiles"
"""The setting of a session that eventide has made which says in which folder its processes look for modules."""
UNPACKED = "eventide-python"
"""The folder as an executor has it."""
STARTED_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""The variable by which spark-submit tells a program where its Java is, which runs already."""

_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:/")
_COMPILED = (".so", ".pyd", ".dylib")
_shipping = threading.Lock()
_shipped: dict[str, str] = {}
"""The digest of what executors have got of each session's folder."""


def session_that_is_there() -> SparkSession | None:
    """The active session of this thread, or that which this process has made in another one."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:  # there is none
        return None


def is_local(master: str) -> bool:
    """Whether a session runs its tasks in the process of its driver."""
    return master == "local" or master.startswith("local[")


def why_it_takes_none(spark: SparkSession) -> str | None:
    """Why a session takes no modules, and what to do; None if eventide has made it, before its Java started."""
    if spark.conf.get(FOLDER, None) is not None:
        return None
    if STARTED_BY_SPARK_SUBMIT in os.environ:
        why = f"this program was started by spark-submit ({STARTED_BY_SPARK_SUBMIT} is set)"
        otherwise = "start the program with python in place of spark-submit"
    else:
        why, otherwise = "this Spark session was not made by eventide", "make none before"
    return (
        f"{why}, so its Python processes cannot be told any more where to look for modules; {otherwise}, and let "
        "get_execution_environment(Configuration.from_dict({'spark.master': ...})) make the session, or install "
        "eventide and the modules that the program needs on every machine, the driver's included"
    )


def ship(spark: SparkSession) -> None:
    """Bring what a session's jobs import, eventide too, to its executors; not where they share this process's disk.

    A session that was not made by eventide has it there.

    Raises:
        ProgramError: if executors have been brought something else before: Spark unpacks all archives of one name where
            an executor starts, in any order, each in place of the one before.
    """
    folder = spark.conf.get(FOLDER, None)
    if folder is None or is_local(str(spark.conf.get("spark.master"))):
        return
    with _shipping:
        PythonFolder(folder).add(str(Path(eventide.__file__).parent))
        digest = _digest(Path(folder))
        if _shipped.get(folder, digest) != digest:
            raise ProgramError(
                "the program's functions import other files than the first job of this session, and executors "
                "that start later may get the first ones: call add_python_file(...) and "
                "set_python_requirements(...) before the first job; or stop the session, and make a new environment"
            )
        if folder not in _shipped:
            archive = Path(f"{folder}.tgz")
            with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
                packed.add(folder, ".")
            spark.sparkContext.addArchive(f"{archive.as_uri()}#{UNPACKED}")
            _shipped[folder] = digest


def _digest(folder: Path) -> str:
    """A text that differs where a file in a folder does."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        content = path.read_bytes()
        found.update(f"{path.relative_to(folder)} {len(content)} ".encode() + content)
    return found.hexdigest()


@cache
def _folder_of_client() -> str:
    """The folder of this process, where it is a client of Spark Connect."""
    return new_folder()


class PythonFiles(PythonFolder):
    """The folder of one session, or of one client of Spark Connect."""

    @classmethod
    def of(cls, spark: SparkSession) -> PythonFiles:
        """The folder of a session that eventide has made, or of any session over Spark Connect.

        Raises:
            ProgramError: if the session's processes look elsewhere.
        """
        if is_remote():
            return cls(_folder_of_client())
        if (why := why_it_takes_none(spark)) is not None:
            raise ProgramError(why)
        return cls(str(spark.conf.get(FOLDER)))

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


def modules_for_server(spark: SparkSession) -> Modules:
    """The modules that travel to a server of Spark Connect with each part of a program; elsewhere, none has to.

    Raises:
        ProgramError: if there is more than sources.
    """
    return PythonFiles.of(spark).modules() if is_remote() else NO_MODULES


def uri_of(location: str) -> str:
    """The URI of a location: to Spark, a path with blanks, or with a name after it, is none.

    >>> uri_of("/models/of all.tgz"), uri_of("s3a://bucket/models.tgz")
    ('file:///models/of%20all.tgz', 's3a://bucket/models.tgz')
    """
    return location if _SCHEME.match(location) else Path(os.path.abspath(location)).as_uri()
