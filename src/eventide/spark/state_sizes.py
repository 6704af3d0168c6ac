"""How much state there is in a checkpoint, operator by operator, as Spark's own reader of state has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.errors import StateError
from eventide.spark.inspection import Inspection

_OURS = """operatorName LIKE 'transformWithState%' AND operatorProperties LIKE '%"stateName":"state"%'"""
"""What tells the levels of a job from operators of Spark's own in its DataFrames."""


@dataclass(frozen=True, slots=True)
class StateSize:
    """The number of values and of bytes that lie under an operator; None is what all operators of a level share.

    What is small of an operator, its watermarks among it, lies with that of the others of its level. A value is a
    bucket of keys, or a chunk of what a window holds.
    """

    level: int
    operator: str | None
    rows: int
    bytes: int


def state_sizes(spark: SparkSession, inspection: Inspection) -> list[StateSize]:
    """The state behind the last micro-batch that was committed, level by level; nothing if none was.

    Args:
        spark: the session.
        inspection: what is in the checkpoint.

    Raises:
        StateError: if Spark cannot read it.
    """
    if inspection.committed is None or not inspection.operators:
        return []
    level_of = {one.id: one.level for one in inspection.operators}
    owners = [None, *level_of]
    try:
        stateful = spark.read.format("state-metadata").load(inspection.location).where(_OURS)
        numbers = {row.operatorId for row in stateful.collect()}
        counted = [_counted(spark, inspection.location, inspection.committed.number, one, owners) for one in numbers]
        rows = reduce(DataFrame.union, counted).collect() if counted else []
    except Exception as error:  # of PySpark, or of the JVM where a store is not known there
        raise StateError(
            f"Spark cannot read the state in {inspection.location}: {_reason(error)}; without its state, a checkpoint "
            "can be looked at all the same"
        ) from error
    sizes = []
    for row in rows:
        known = [level_of[operator] for operator in json.loads(row.program or "{}") if operator in level_of]
        if known:  # what has no program of ours is state of a DataFrame's own
            found = zip(owners, row.values, row.bytes, strict=True)
            sizes += [StateSize(known[0], owner, values, number) for owner, values, number in found if values]
    return sorted(sizes, key=lambda one: (one.level, one.operator is not None, one.operator or ""))


def _counted(spark: SparkSession, location: str, batch: int, number: int, owners: Sequence[str | None]) -> DataFrame:
    """One row for one of Spark's operators: what lies under each owner, and what is noted down of the program.

    A sum over all of it needs no shuffle, of which a session may make many tasks.
    """
    state = spark.read.format("statestore").option("path", location).option("batchId", batch)
    rows = state.option("operatorId", number).option("stateVarName", "state").load()
    name, content = F.col("user_map_key.name"), F.col("user_map_value.content")
    place = _place(name, owners)
    mine = [place == each for each in range(len(owners))]
    return rows.agg(
        F.max(F.when(name == "program", content.cast("string"))).alias("program"),
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


def _reason(error: Exception) -> str:
    """What Spark says first, but for the call of Python's that it came through."""
    lines = str(error).splitlines() or [repr(error)]
    return next(
        (line.lstrip(": ") for line in lines if not line.startswith("An error occurred while calling")), lines[0]
    )
