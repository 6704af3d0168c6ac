"""What a checkpoint tells of a job's event time, by Spark's own reader of state. Nothing is written."""

from __future__ import annotations

from pyspark.sql import SparkSession

from eventide.errors import StateError
from eventide.runtime.state.operators import HEAD
from eventide.spark.inspection import inspect
from eventide.spark.subtasks import subtask_ids
from eventide.why import Evidence


def evidence(spark: SparkSession, location: str, asked_ms: int) -> Evidence:
    """Read what there is behind the last micro-batch that was committed, of a job that runs or does not.

    Args:
        spark: the session.
        location: the checkpoint's directory.
        asked_ms: the time by the clock, in milliseconds.

    Raises:
        ProgramError: if the location cannot be opened.
        StateError: if it is no checkpoint of eventide's, one of another format, or one without a micro-batch.
    """
    found = inspect(location)
    if found.committed is None:
        raise StateError(f"no micro-batch of the job in {location} is committed yet, so there is nothing to say of it")
    if found.description is None:
        raise StateError(
            f"the checkpoint {location} does not say what the job is made of; start the job once with this version of "
            "eventide, which writes it down"
        )
    batch = found.committed.number
    subtask_of = {key: subtask for subtask, key in enumerate(subtask_ids(found.parallelism))}
    stateful = spark.read.format("state-metadata").load(location)
    numbers = [row.operatorId for row in stateful.where("operatorName LIKE 'transformWithState%'").collect()]
    heads = []
    for number in sorted({*numbers}) if found.operators else ():
        state = spark.read.format("statestore").option("path", location).option("batchId", batch)
        rows = state.option("operatorId", number).option("stateVarName", "state").load()
        if "subtask" in rows.select("key.*").columns:  # else it is state of a DataFrame's own
            wanted = rows.where(f"user_map_key.name = '{HEAD}'").select("key.subtask", "user_map_value.content")
            heads += [(subtask_of[row.subtask], bytes(row.content)) for row in wanted.collect()]
    return Evidence.of({**found.description}, heads, asked_ms, batch)
