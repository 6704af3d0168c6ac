"""The values that lie in the state of a checkpoint, as Spark's own public reader of state gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from eventide.errors import EventideError, StateError
from eventide.spark.failures import original

_OURS = """operatorName LIKE 'transformWithState%' AND operatorProperties LIKE '%"stateName":"state"%'"""
"""Mark that tells the stages of a job from operators of Spark's own in its DataFrames."""


def stages_of_state(spark: SparkSession, location: str, batch: int) -> list[DataFrame]:
    """For each stage, the values in its state after a micro-batch: ``subtask``, ``name`` and ``content``."""
    _ = spark.streams.active  # the reader of Spark 4.1 needs what starts with the manager of queries
    stateful = spark.read.format("state-metadata").load(location).where(_OURS)
    stages = []
    for number in sorted({row.operatorId for row in stateful.collect()}, reverse=True):  # Spark begins at the last
        state = spark.read.format("statestore").option("path", location).option("batchId", batch)
        rows = state.option("operatorId", number).option("stateVarName", "state").load()
        if "subtask" in rows.select("key.*").columns:  # else it is state of a DataFrame's own
            stages.append(rows.select("key.subtask", "user_map_key.name", "user_map_value.content"))
    return stages


@contextmanager
def reading_state(location: str) -> Iterator[None]:
    """Say in a sentence what Spark cannot read.

    Raises:
        StateError: in place of what Spark raises.
    """
    try:
        yield
    except EventideError:
        raise
    except Exception as error:  # of PySpark, or of the JVM where a store is not known there
        if isinstance(found := original(error), EventideError):
            raise found from error
        raise StateError(
            f"Spark cannot read the state in {location}: {_reason(error)}; 'eventide checkpoint' looks at the rest of "
            "a checkpoint without it"
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of Spark's error, but for the call of Python's that it came through."""
    lines = str(error).splitlines() or [repr(error)]
    said = (line.lstrip(": ") for line in lines if not line.startswith("An error occurred while calling"))
    return next(said, lines[0])
