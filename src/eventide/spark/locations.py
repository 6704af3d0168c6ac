"""Where a location lies that says no scheme: Spark knows, and nobody else."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

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
