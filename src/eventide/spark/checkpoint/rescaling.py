"""A job that has stopped goes on under another parallelism, into the same sinks, with a checkpoint of its own."""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession

from eventide.errors import ProgramError, StateError
from eventide.savepoint import Outline
from eventide.savepoint.fitting import DATA_FRAME
from eventide.spark.checkpoint.files import BEGINS_WITH, CONTINUED_IN, COUNTED
from eventide.spark.checkpoint.inspection import Inspection
from eventide.spark.checkpoint.record import append_record, records_of, refuse_continued
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.spark.checkpoint.state_reader import inspected
from eventide.spark.session.locations import resolved

_SAVEPOINT = "eventide-savepoint"
"""The folder of the savepoint, below the new checkpoint."""


def rescale(
    spark: SparkSession, checkpoint: str, target: str, *, parallelism: int, max_parallelism: int | None = None
) -> Outline:
    """Make a new checkpoint of that of a stopped job, for another parallelism.

    The new one begins with a savepoint, which lies below it, and counts on from the micro-batches of the old one: so it
    writes into the same sinks, and nothing comes twice. The old one is told, and no job starts on it any more.

    Args:
        spark: the session.
        checkpoint: the checkpoint's directory.
        target: a new directory.
        parallelism: that of the job from now on, if its program says none.
        max_parallelism: the number of key groups from now on; by default as before.

    Raises:
        ProgramError: if a location cannot be opened, the parallelism is above the max parallelism, or the job reads
            DataFrames, which only the program can have begin where they stood.
        StateError: as `take_savepoint`, or if the checkpoint was continued elsewhere before.
    """
    location, target = resolved(spark, checkpoint), resolved(spark, target)
    found = inspected(spark, location)
    if any(source.kind == DATA_FRAME for source in found.sources):
        raise ProgramError(
            f"the job in {checkpoint} reads a DataFrame, which only its program can have begin where it stood: take a "
            "savepoint, and begin with it by env.from_savepoint(...) and env.saved_position()"
        )
    refuse_continued(location, records_of(spark, location))
    if records_of(spark, target):
        raise StateError(f"there is a checkpoint at {target} already; give a new directory")
    saved = take_savepoint(
        spark, location, f"{target}/{_SAVEPOINT}", parallelism=parallelism, max_parallelism=max_parallelism
    )
    _begin(spark, found, saved, target, parallelism)
    append_record(spark, location, {**records_of(spark, location)[-1], CONTINUED_IN: target})
    return saved


def _begin(spark: SparkSession, found: Inspection, saved: Outline, target: str, parallelism: int) -> None:
    """Write the first record of the new checkpoint, with an id of its own, by which sinks with transactions know it."""
    before = records_of(spark, found.location)[-1]
    counted = before.get(COUNTED, 0) + (saved.header.batch or 0) + 1
    begins = {"start": 0, "after": -1, "id": uuid.uuid4().hex, "savepoint": saved.location}
    program = {**saved.header.program, "parallelism": parallelism}
    append_record(spark, target, {**before, **begins, "program": program, BEGINS_WITH: parallelism, COUNTED: counted})
