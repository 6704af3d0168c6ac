"""The Spark session of a command."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from eventide.cli.answers import working

if TYPE_CHECKING:
    from eventide.savepoint import Outline
    from eventide.spark.checkpoint.inspection import Inspection

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def started_spark() -> Any:
    """The active session, that of SPARK_REMOTE, or one for a few seconds: its JVM compiles quickly rather than well.

    Raises:
        ProgramError: if there is no Java that Spark can use.
    """
    os.environ.setdefault("JAVA_TOOL_OPTIONS", _QUICK_START)
    with working("Spark starts"):
        from eventide.spark.session.make import find_session

        return find_session(None, None)


def found_in(location: str) -> Inspection:
    """Read a checkpoint from its files: without Spark, unless they lie where a server of Spark Connect is.

    Raises:
        ProgramError, StateError: as `eventide.spark.checkpoint.inspection.inspect`.
    """
    from eventide.spark.checkpoint.inspection import inspect

    if "SPARK_REMOTE" not in os.environ:
        return inspect(location)
    spark = started_spark()
    from eventide.spark.checkpoint.evidence import inspected

    return inspected(spark, location)


def savepoint_at(location: str) -> Outline | None:
    """The savepoint at a location, which may be where a server of Spark Connect is; None if there is none.

    Raises:
        ProgramError: if Arrow cannot open the location.
        StateError: if it is one of another version.
    """
    from eventide.savepoint import Savepoint

    if "SPARK_REMOTE" not in os.environ:
        return Savepoint(location) if Savepoint.is_at(location) else None
    spark = started_spark()
    from eventide.spark.checkpoint.record import outline
    from eventide.spark.connect.server import there

    return outline(spark, location) if there(spark, partial(Savepoint.is_at, location)) else None
