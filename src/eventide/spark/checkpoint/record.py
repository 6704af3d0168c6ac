"""Record of a program beside Spark's own checkpoint: its identity, which must fit at a restart, and its graph."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from eventide.errors import ProgramError, StateError
from eventide.plan.description import describe
from eventide.plan.identity import check_identity
from eventide.plan.job import JobPlan, JobSettings, SavepointRestoreSettings
from eventide.savepoint import Outline, Savepoint
from eventide.savepoint.fitting import check_fit
from eventide.savepoint.saved import OUTLINED, outlined
from eventide.spark.checkpoint.files import (
    BEGINS_WITH,
    CONTINUED_IN,
    COUNTED,
    KNOWN_AS,
    PLACE,
    RESCALED,
    CheckpointFiles,
    Record,
    in_force,
    in_order,
)
from eventide.spark.checkpoint.records import append_record, has_folder, last_of, records_in
from eventide.spark.connect import there
from eventide.spark.session.locations import resolved
from eventide.spark.sinks.routing import directories, refuse_used_directories

_BYTES_OF_A_SPLIT = 12


def fit_checkpoint(
    spark: SparkSession, location: str, plan: JobPlan, job: str, savepoint: str | None = None
) -> tuple[str, int | None, int, str]:
    """Check a program against the checkpoint at a location, and write it down if it is not there.

    What is written down counts from the first micro-batch that is committed after it: a program that never got so far
    has made no state, and may be changed freely. The directories of its file sinks are the job's from then on,
    because it may have written there before it committed anything. Spark itself writes it where this process may not
    reach the checkpoint. The description of its graph and the job's name are there for viewers of the checkpoint
    without the program; they may change as they like. The ``savepoint`` is where the job began: see
    :func:`savepoint_of`.

    Returns:
        The id of the checkpoint, the number of the micro-batch that was begun and not finished, which comes next, how
        many micro-batches sinks have had of the checkpoints that this one continues, and the id of the first of these.

    Raises:
        StateError: if the program does not fit, saying what differs, or the checkpoint is continued elsewhere.
        ProgramError: if a file sink's directory holds other output than this job's.
    """
    started, committed = records_of(spark, location), last_committed(spark, location)
    refuse_continued(location, started)
    if not started and has_folder(spark, location, RESCALED):
        raise StateError(
            f"{location} is a new place for another checkpoint, and `eventide rescale` was interrupted before it was "
            "done: run the same command once more, and then start the program"
        )
    found = in_force(started, committed)
    paths = directories(spark, plan.sinks)
    refuse_used_directories(spark, paths, own={path for one in started for path in one["directories"]})
    identity = plan.identity()
    if found is not None:
        check_identity(location, found["program"], identity)
    checkpoint = started[0]["id"] if started else uuid.uuid4().hex
    this = {"program": identity, "description": describe(plan), "job": job, "directories": paths, "id": checkpoint}
    this |= {} if savepoint is None else {"savepoint": savepoint}
    counted = started[0].get(COUNTED, 0) if started else 0
    this |= {COUNTED: counted, KNOWN_AS: started[0].get(KNOWN_AS, checkpoint)} if counted else {}
    if not started or {what: started[-1].get(what) for what in this} != this:
        append_start(spark, location, {"after": committed, **this})
        written = records_of(spark, location)  # none where it lies on the disk of an executor alone
        checkpoint = written[0]["id"] if written else checkpoint
    known_as = str(started[0].get(KNOWN_AS, checkpoint)) if started else checkpoint
    planned = last_of(spark, location, "offsets")
    return checkpoint, planned if planned > committed else None, counted, known_as


def refuse_continued(location: str, started: Sequence[Record]) -> None:
    """Refuse a checkpoint, given its records, that goes on elsewhere: two jobs would write into the same sinks.

    Raises:
        StateError: naming where it goes on.
    """
    if started and CONTINUED_IN in started[-1]:
        target = started[-1][CONTINUED_IN]
        raise StateError(
            f"the checkpoint {location} was continued in {target} by eventide rescale: start the program with that one"
        )


def refuse_mixed_logs(spark: SparkSession, location: str) -> None:
    """Refuse a checkpoint with the commit of a micro-batch, and without its plan: Spark would run earlier ones again.

    Raises:
        StateError: naming both.
    """
    committed, planned = last_committed(spark, location), last_of(spark, location, "offsets")
    if committed > planned:
        raise StateError(
            f"the checkpoint {location} has the commit of micro-batch {committed}, and not its plan, as a copy may that"
            " was made while the job ran; put back a copy that was made while the job was stopped, or start with a new "
            "checkpoint location, from a savepoint if there is one"
        )


def append_start(spark: SparkSession, location: str, record: Record) -> None:
    """Write the record of a start after those that a checkpoint has."""
    append_record(spark, location, PLACE, {**record, "start": len(records_of(spark, location)) + 1})


def savepoint_of(spark: SparkSession, location: str, plan: JobPlan, settings: JobSettings) -> Outline | None:
    """Return the savepoint that a job began with: a subtask that has not run yet takes its share when it does.

    Raises:
        StateError: if there is no savepoint where it should be, or the program does not fit it.
    """
    started = records_of(spark, location)
    found = in_force(started, last_of(spark, location, "commits"))
    if found is not None:
        began = found.get("savepoint")
        return None if began is None else outline(spark, began)
    beginning = settings.beginning
    if started and BEGINS_WITH in started[0]:
        beginning = SavepointRestoreSettings(started[0]["savepoint"], False, frozenset())
    if beginning is None:
        return None
    savepoint = outline(spark, beginning.savepoint, [task.id for task in plan.operators], verify=True)
    allowed = beginning.allow_non_restored_state
    check_fit(savepoint, plan.identity(), plan.operators, allow_non_restored=allowed, placed=beginning.placed)
    return savepoint


def outline(spark: SparkSession, savepoint: str, operators: Sequence[str] = (), *, verify: bool = False) -> Outline:
    """Return the outline of a savepoint, for the operators, given by their ids, that have to fit it.

    With ``verify``, all of it is read through, and the checksums are compared.

    Raises:
        ProgramError: if Arrow cannot open it.
        StateError: if the savepoint is missing or incomplete.
    """
    location = resolved(spark, savepoint)
    return there(spark, partial(outlined, location, operators, verify=verify), OUTLINED)


def restore_sources(spark: SparkSession, savepoint: Outline, plan: JobPlan, location: str) -> None:
    """Give the sources of a plan what they remembered, below the checkpoint at a location.

    They have begun when a micro-batch is planned. Until then, what is there may be half of a copy.
    """
    if last_of(spark, location, "offsets") < 0:
        began, names = savepoint.location, [source.name for source in plan.sources]
        there(spark, lambda: Savepoint(began).restore_sources(names, location))


def recorded_program(spark: SparkSession, location: str) -> dict[str, Any] | None:
    """The program that the state of a checkpoint is of; None if no micro-batch has been committed yet."""
    found = in_force(records_of(spark, location), last_committed(spark, location))
    return None if found is None else found["program"]


def recorded_parallelism(spark: SparkSession, location: str) -> int | None:
    """The parallelism of the state of a checkpoint, or the one it is to begin with; None if neither is recorded."""
    started = records_of(spark, location)
    found = in_force(started, last_committed(spark, location))
    if found is None:
        return None if not started else started[0].get(BEGINS_WITH)
    return int(found["program"]["parallelism"])


def last_committed(spark: SparkSession, location: str) -> int:
    """The number of the micro-batch that was committed last; -1 if none was."""
    return last_of(spark, location, "commits")


def bytes_of_offsets(spark: SparkSession, location: str, plan: JobPlan) -> int:
    """The bytes that the offsets of a micro-batch take, by the last one and by the splits that the program expects."""
    return max(there(spark, partial(_plan_bytes, location)), plan.num_splits * _BYTES_OF_A_SPLIT)


def _plan_bytes(location: str) -> int:
    try:
        return CheckpointFiles(location).plan_bytes()
    except (ProgramError, OSError):  # a store that Arrow does not reach; Spark does
        return 0


def has_begun_more(spark: SparkSession, location: str) -> bool:
    """Whether a micro-batch was begun that is not committed."""
    return last_of(spark, location, "offsets") > last_committed(spark, location)


def records_of(spark: SparkSession, location: str) -> list[Record]:
    """The records of the programs that were started on a checkpoint, in their order."""
    return in_order(records_in(spark, location, PLACE))
