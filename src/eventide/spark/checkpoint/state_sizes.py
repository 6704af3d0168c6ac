"""How much state there is in a checkpoint, operator by operator, as Spark's own reader of state has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from eventide.spark.checkpoint.inspection import Inspection
from eventide.spark.checkpoint.state_reader import reading_state, stages_of_state


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

    Args:
        spark: the session.
        inspection: what is in the checkpoint.

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
        known = [stage_of[operator] for operator in json.loads(row.program or "{}") if operator in stage_of]
        if known:  # what has no program of ours is state of a DataFrame's own
            found = zip(owners, row.values, row.bytes, strict=True)
            sizes += [StateSize(known[0], owner, values, number) for owner, values, number in found if values]
    return sorted(sizes, key=lambda one: (one.stage, one.operator is not None, one.operator or ""))


def _counted(stage: DataFrame, owners: Sequence[str | None]) -> DataFrame:
    """One row for one stage: what lies under each owner, and what is noted down of the program.

    A sum over all of it needs no shuffle, of which a session may make many tasks.
    """
    name, content = F.col("name"), F.col("content")
    place = _place(name, owners)
    mine = [place == each for each in range(len(owners))]
    return stage.agg(
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
