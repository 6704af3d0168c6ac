"""Whether the Python processes of a session can be given modules: only if eventide has made it, before its Java."""

from __future__ import annotations

import os

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

FOLDER = "spark.eventide.pythonFiles"
"""The setting of a session that eventide has made which says in which folder its processes look for modules."""
STARTED_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""The variable by which spark-submit tells a program where its Java is, which runs already."""


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
    """Why a session's processes cannot be given modules, and what to do; None if eventide has made it for them."""
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
