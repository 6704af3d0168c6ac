"""What a checkpoint tells of a job's event time, by Spark's own reader of state. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from eventide.common._stand_ins import shown_loads
from eventide.errors import StateError
from eventide.runtime.state.operators import HEAD
from eventide.spark.inspection import inspect
from eventide.spark.subtasks import subtask_ids
from eventide.why import Evidence


def evidence(
    spark: SparkSession, location: str, asked_ms: int, loads: Callable[[bytes], Any] = shown_loads
) -> Evidence:
    """Read what there is behind the last micro-batch that was committed, of a job that runs or does not.

    Args:
        spark: the session.
        location: the checkpoint's directory.
        asked_ms: the time by the clock, in milliseconds.
        loads: reads objects of the state of keys; by default without its classes, for which stand-ins are shown.

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
    levels = _levels(spark, location, found.committed.number) if found.operators else []
    subtask_of = {key: subtask for subtask, key in enumerate(subtask_ids(found.parallelism))}

    def values(condition: str) -> Iterator[tuple[int, str, bytes]]:
        for level in levels:
            for row in level.where(condition).toLocalIterator():
                yield subtask_of[row.subtask], row.name, bytes(row.content)

    def read(operator: str, prefix: str) -> Iterator[tuple[int, str, bytes]]:
        for subtask, name, content in values(f"startswith(name, '{operator}/{prefix}')"):
            yield subtask, name.removeprefix(f"{operator}/"), content

    heads = [(subtask, content) for subtask, _, content in values(f"name = '{HEAD}'")]
    return Evidence.of({**found.description}, heads, asked_ms, found.committed.number, read=read, loads=loads)


def _levels(spark: SparkSession, location: str, batch: int) -> list[DataFrame]:
    """The values of each level in the state behind a micro-batch: subtask, name and content."""
    stateful = spark.read.format("state-metadata").load(location)
    numbers = {row.operatorId for row in stateful.where("operatorName LIKE 'transformWithState%'").collect()}
    levels = []
    for number in sorted(numbers):
        state = spark.read.format("statestore").option("path", location).option("batchId", batch)
        rows = state.option("operatorId", number).option("stateVarName", "state").load()
        if "subtask" in rows.select("key.*").columns:  # else it is state of a DataFrame's own
            levels.append(rows.select("key.subtask", "user_map_key.name", "user_map_value.content"))
    return levels
