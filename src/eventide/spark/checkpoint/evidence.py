"""Evidence on a job's event time from a checkpoint, by Spark's own reader of state. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.errors import StateError
from eventide.pickling.pickles import register
from eventide.pickling.stand_ins import shown_loads
from eventide.runtime.state.operators import HEAD
from eventide.spark.checkpoint.inspection import INSPECTED, Inspection, inspect
from eventide.spark.checkpoint.state_reader import reading_state, stages_of_state
from eventide.spark.connect.server import ask, over_connect
from eventide.spark.query.frame_rows import subtask_ids
from eventide.why import Evidence


def inspected(spark: SparkSession, location: str) -> Inspection:
    """Read a checkpoint from its files, wherever Spark has them.

    Raises:
        ProgramError, StateError: as `eventide.spark.checkpoint.inspection.inspect`.
    """
    if not over_connect():
        return inspect(location)
    register(INSPECTED)
    return ask(spark, partial(inspect, location))


def evidence(
    spark: SparkSession, location: str, asked_ms: int, loads: Callable[[bytes], Any] = shown_loads
) -> Evidence:
    """Read the evidence after the last committed micro-batch, of a job that runs or does not.

    Args:
        spark: the session.
        location: the checkpoint's directory.
        asked_ms: the time by the clock, in milliseconds.
        loads: reads objects of the state of keys; by default without its classes, for which stand-ins are shown.

    Raises:
        ProgramError: if the location cannot be opened.
        StateError: if it is no checkpoint of eventide's, one of another format or without a micro-batch, or if Spark
            cannot read its state.
    """
    found = inspected(spark, location)
    if found.committed is None:
        raise StateError(f"no micro-batch of the job in {location} is committed yet, so there is nothing to say of it")
    if found.description is None:
        raise StateError(
            f"the checkpoint {location} does not say what the job is made of; start the job once with this version of "
            "eventide, which writes it down"
        )
    with reading_state(location):
        stages = stages_of_state(spark, location, found.committed.number) if found.operators else []
        heads = _heads(stages)
    if found.operators and not stages:
        raise StateError(f"the checkpoint {location} has no state, though micro-batches are committed: it is not whole")
    subtask_of = {key: subtask for subtask, key in enumerate(subtask_ids(found.parallelism))}

    def read(operator: str, prefix: str) -> Iterator[tuple[int, str, bytes]]:
        with reading_state(location):
            for stage in stages:
                for row in stage.where(F.startswith(F.col("name"), F.lit(f"{operator}/{prefix}"))).toLocalIterator():
                    yield subtask_of[row.subtask], row.name.removeprefix(f"{operator}/"), bytes(row.content)

    return Evidence.of(
        {**found.description},
        [(subtask_of[row.subtask], bytes(row.content)) for stage in heads for row in stage.heads],
        asked_ms,
        found.committed.number,
        read=read,
        loads=loads,
        state_bytes=tuple(stage.bytes for stage in heads),
    )


def _heads(stages: list[DataFrame]) -> list[Row]:
    """Stage by stage, the heads that are there, and how many bytes all of its values have."""
    head = F.when(F.col("name") == HEAD, F.struct("subtask", "content"))
    found = [
        stage.agg(
            F.lit(number).alias("stage"),
            F.collect_list(head).alias("heads"),
            F.coalesce(F.sum(F.length("content")), F.lit(0)).alias("bytes"),
        )
        for number, stage in enumerate(stages)
    ]
    return sorted(reduce(DataFrame.union, found).collect(), key=lambda row: row.stage) if found else []
