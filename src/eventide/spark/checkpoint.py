"""The identity of a program, kept beside Spark's own checkpoint and compared when the job comes back."""

from __future__ import annotations

import json

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.plan.identity import check_identity
from eventide.plan.job import JobPlan
from eventide.spark.sinks import refuse_used_directories

_NOWHERE = "eventide-looks-for-nothing"


def resolved(spark: SparkSession, location: str) -> str:
    """A location as any library understands it: one without a scheme is what Spark takes it for.

    That depends on Hadoop's ``fs.defaultFS``, which may stand in files that only the JVM knows. So Spark is asked for
    something that is not there, and says where it has looked. What is on a local disk stays a plain path.
    """
    if "://" in location or location.startswith("file:"):
        return location
    try:
        _ = spark.read.text(f"{location.rstrip('/')}/{_NOWHERE}").schema
    except AnalysisException as error:
        looked_at = (error.getMessageParameters() or {}).get("path", "")
        found, separator, _ = looked_at.partition(f"/{_NOWHERE}")
        if separator:
            return found if "://" in found else found.removeprefix("file:")
    return location


def fit_checkpoint(spark: SparkSession, location: str, plan: JobPlan) -> None:
    """Check a program against the checkpoint at a location, or record it in a new one.

    It is written with Spark itself, so it works wherever Spark's checkpoint does.

    Raises:
        StateError: if the program does not fit, saying what differs.
        ProgramError: if a file sink's directory holds other output than this job's.
    """
    path = f"{location.rstrip('/')}/eventide"
    found = _recorded(spark, path)
    refuse_used_directories(spark, plan.sinks, new=found is None)
    if found is None:
        text = json.dumps(plan.identity(), sort_keys=True)
        spark.range(0, 1, 1, 1).select(F.lit(text).alias("value")).write.mode("overwrite").text(path)
    else:
        check_identity(location, json.loads(found), plan.identity())


def _recorded(spark: SparkSession, path: str) -> str | None:
    try:
        rows = spark.read.text(path, wholetext=True).collect()
    except AnalysisException:  # there is no such directory: the checkpoint is new
        return None
    return rows[0].value if rows and rows[0].value else None
