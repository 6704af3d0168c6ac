"""State in a checkpoint, as Spark's own public reader gives it: how much there is, and evidence on event time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.errors import StateError, as_state_error
from eventide.pickling.stand_ins import shown_loads
from eventide.runtime.state.operators import HEAD, PROGRAM, program_of
from eventide.spark.checkpoint.inspection import INSPECTED, Inspection, inspect
from eventide.spark.connect import there
from eventide.spark.failures import in_our_words
from eventide.spark.query.frame_rows import subtask_ids
from eventide.why import Evidence

_OURS = """operatorName LIKE 'transformWithState%' AND operatorProperties LIKE '%"stateName":"state"%'"""
"""Mark that tells the stages of a job from operators of Spark's own in its DataFrames."""


def stages_of_state(spark: SparkSession, location: str, batch: int) -> list[DataFrame]:
    """For each stage, the values in its state after a micro-batch: ``subtask``, ``name`` and ``content``."""
    stages = []
    for number in _operators(spark, location):
        state = spark.read.format("statestore").option("path", location).option("batchId", batch)
        rows = state.option("operatorId", number).option("stateVarName", "state").load()
        if "subtask" in rows.select("key.*").columns:  # else it is state of a DataFrame's own
            stages.append(rows.select("key.subtask", "user_map_key.name", "user_map_value.content"))
    return stages


def clocks_of_state(spark: SparkSession, location: str) -> list[bool]:
    """For each stage, whether its query calls it when only the clock has gone on."""
    properties = _operators(spark, location).values()
    return [json.loads(one)["timeMode"] == "ProcessingTime" for one in properties]


def _operators(spark: SparkSession, location: str) -> dict[int, str]:
    """The properties of the operators that have state, in the order of stages: Spark begins at the last."""
    _ = spark.streams.active  # the reader of Spark 4.1 needs what starts with the manager of queries
    stateful = spark.read.format("state-metadata").load(location).where(_OURS)
    found = {row.operatorId: row.operatorProperties for row in stateful.collect()}
    return dict(sorted(found.items(), reverse=True))


@contextmanager
def reading_state(location: str) -> Iterator[None]:
    """Say in a sentence what Spark cannot read.

    Raises:
        StateError: in place of what Spark raises.
    """
    remedy = "'eventide checkpoint' looks at the rest of a checkpoint without it"
    said = f"Spark cannot read the state in {location}"
    with as_state_error(lambda error: f"{said}: {_reason(error)}; {remedy}"), in_our_words():
        yield


def _reason(error: Exception) -> str:
    """Return the first line of Spark's error, but for the call of Python's that it came through."""
    lines = str(error).splitlines() or [repr(error)]
    said = (line.lstrip(": ") for line in lines if not line.startswith("An error occurred while calling"))
    return next(said, lines[0])


@dataclass(frozen=True, slots=True)
class StateSize:
    """The number of values and of bytes that lie under an operator; None is what all operators of a stage share.

    What is small of an operator, its watermarks among it, lies with that of the others of its stage. A value is a
    bucket of keys, or a chunk of what a window holds.
    """

    stage: int
    operator: str | None
    rows: int
    bytes: int


def state_sizes(spark: SparkSession, inspection: Inspection) -> list[StateSize]:
    """The state after the last micro-batch that was committed, stage by stage; nothing if none was.

    Raises:
        StateError: if Spark cannot read it.
    """
    if inspection.committed is None or not inspection.operators:
        return []
    stage_of = {one.id: one.stage for one in inspection.operators}
    owners = [None, *stage_of]
    with reading_state(inspection.location):
        stages = stages_of_state(spark, inspection.location, inspection.committed.number)
        rows = reduce(DataFrame.union, [_counted(stage, owners) for stage in stages]).collect() if stages else []
    sizes = []
    for row in rows:
        known = [
            stage_of[operator] for operator in program_of(row.program and bytes(row.program)) if operator in stage_of
        ]
        if known:  # what has no program of ours is state of a DataFrame's own
            found = zip(owners, row.values, row.bytes, strict=True)
            sizes += [StateSize(known[0], owner, values, number) for owner, values, number in found if values]
    return sorted(sizes, key=lambda one: (one.stage, one.operator is not None, one.operator or ""))


def _counted(stage: DataFrame, owners: Sequence[str | None]) -> DataFrame:
    """One row for one stage: the state of each owner, and the recorded identity of the program.

    A sum over all of it needs no shuffle, of which a session may make many tasks.
    """
    name, content = F.col("name"), F.col("content")
    place = _place(name, owners)
    mine = [place == each for each in range(len(owners))]
    return stage.agg(
        F.max(F.when(name == PROGRAM, content)).alias("program"),
        F.array(*[F.count_if(one) for one in mine]).alias("values"),
        F.array(*[F.sum(F.when(one, F.length(content)).otherwise(0)) for one in mine]).alias("bytes"),
    )


def _place(name: Column, owners: Sequence[str | None]) -> Column:
    """The place of the owner of a value: the longest id that its name begins with; the first one owns all others."""
    ids = sorted(
        [(owner, place) for place, owner in enumerate(owners) if owner is not None], key=lambda one: len(one[0])
    )
    begins = [F.when(F.startswith(name, F.lit(f"{owner}/")), place) for owner, place in ids[::-1]]
    return F.coalesce(*begins, F.lit(0))


def inspected(spark: SparkSession, location: str) -> Inspection:
    """Read a checkpoint from its files, wherever Spark has them.

    Raises:
        ProgramError, StateError: as `eventide.spark.checkpoint.inspection.inspect`.
    """
    return there(spark, partial(inspect, location), INSPECTED)


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
        StateError: if it is not an eventide checkpoint, one of another format or without a micro-batch, or if Spark
            cannot read its state.
    """
    found = inspected(spark, location)
    if found.committed is None:
        raise StateError(f"no micro-batch of the job in {location} is committed yet, so there is no state to read")
    with reading_state(location):
        stages = stages_of_state(spark, location, found.committed.number) if found.operators else []
        heads = _heads(stages)
    if found.operators and not stages:
        raise StateError(
            f"the checkpoint {location} has no state, though micro-batches are committed, so it is incomplete: restore "
            "a backup of it, or begin with a savepoint"
        )
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
