"""Where a location lies that says no scheme, and what is at it: only Spark knows."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from eventide.errors import ProgramError, StateError
from eventide.spark.connect import there
from eventide.storage import absolute

_NOWHERE = "eventide-looks-for-nothing"
_DISK = "file://"
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_in_use: set[str] = set()
"""The checkpoints of the jobs that run in this process."""
_taking = threading.Lock()


def resolved(spark: SparkSession, location: str) -> str:
    """A location as any library understands it: one without a scheme is what Spark takes it for.

    That depends on Hadoop's ``fs.defaultFS``, which may stand in files that only the JVM knows. So Spark is asked for
    something that is not there, and says where it has looked. What is on a local disk is a plain path, whatever its
    spelling was.

    Raises:
        ProgramError: if Spark reads the location as a pattern.
    """
    if pattern := _PATTERN.search(location):
        raise ProgramError(
            f"Spark reads the location {location} as a pattern of names, because of its {pattern[0]!r}, and would find "
            "others, or nothing; remove the characters * ? [ ] { } \\ from it"
        )
    if location.startswith("file:"):
        return absolute(location)
    if "://" in location:
        return location
    answer = _texts(spark, f"{location.rstrip('/')}/{_NOWHERE}")
    if isinstance(answer, AnalysisException):
        looked_at = (answer.getMessageParameters() or {}).get("path", "")
        found, separator, _ = looked_at.partition(f"/{_NOWHERE}")
        if separator:
            return found if "://" in found else found.removeprefix("file:")
    return location


def texts_at(spark: SparkSession, path: str) -> list[str]:
    """The contents of the files at a path; nothing if there is nothing at it."""
    found = _texts(spark, path)
    return [] if isinstance(found, AnalysisException) else [row.value for row in found.collect()]


def files_at(spark: SparkSession, path: str) -> list[str] | None:
    """The files at a path that Spark would read; None if there is nothing at it."""
    found = _texts(spark, path)
    return None if isinstance(found, AnalysisException) else found.inputFiles()


def _texts(spark: SparkSession, path: str) -> DataFrame | AnalysisException:
    try:
        found = spark.read.text(path, wholetext=True)
        _ = found.schema  # over Spark Connect, nothing is looked at before
    except AnalysisException as error:
        # PySpark's errors refer to themselves, and to all frames they came through: what a caller's caller holds would
        # stay until a garbage collection, and an iterator without a reader would keep its job waiting.
        error.__context__ = None
        return error.with_traceback(None)
    return found


def made_temporary(spark: SparkSession) -> str:
    """A directory for one run of a job, on the disk of the machine where Spark's driver is."""
    path = there(spark, partial(tempfile.mkdtemp, prefix="eventide-"))
    return path if resolved(spark, path) == path else f"{_DISK}{path}"


def delete_temporary(spark: SparkSession, location: str) -> None:
    """Delete such a directory."""
    there(spark, partial(shutil.rmtree, location.removeprefix(_DISK), ignore_errors=True))


def take(location: str, job_name: str) -> None:
    """Keep a checkpoint for a job: Spark would stop the one that uses it, as if somebody had cancelled it.

    Raises:
        StateError: if a job of this process uses it.
    """
    with _taking:
        if is_used_here(location):
            raise StateError(
                f"the job {job_name!r} cannot start: a job with the checkpoint {location} is running in this process; "
                "cancel that one, wait for its end, or use another checkpoint location"
            )
        _in_use.add(location.rstrip("/"))


def is_used_here(location: str) -> bool:
    """Whether a job of this process uses a checkpoint."""
    return location.rstrip("/") in _in_use


def leave(location: str) -> None:
    """Let others use a checkpoint."""
    _in_use.discard(location.rstrip("/"))
