"""Contents of a checkpoint, from its files alone: the program, the sources and where they are, the micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.errors import StateError, as_state_error
from eventide.runtime.state.operators import check_format
from eventide.spark.checkpoint.files import (
    COUNTED,
    KAFKA_PLACE,
    PLACE,
    CheckpointFiles,
    Listing,
    Planned,
    in_force,
    in_order,
)

_DATA_FRAME = "DataFrame"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch.

    Its number; when Spark began to plan it, by the clock of the driver; when its plan was written down, and when it was
    committed, if it was, by that of the store. In milliseconds since the epoch; None if the log has them no longer.
    """

    number: int
    planned_ms: int | None
    logged_ms: int | None
    committed_ms: int | None


@dataclass(frozen=True, slots=True)
class SourcePart:
    """The positions of a part of a source, most often a split: the ``committed`` one, and the ``planned`` one.

    Positions are those of the source, or of Spark's for a DataFrame; None if the part is not there yet, or any more.
    """

    name: str
    committed: object
    planned: object
    ended: bool


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source: its name, which kind it is of, and its parts."""

    name: str
    kind: str
    parts: tuple[SourcePart, ...]


@dataclass(frozen=True, slots=True)
class InspectedOperator:
    """An operator: the id that its state lies under, its name and stage, and all that its state depends on."""

    id: str
    name: str
    stage: int
    parallelism: int
    identity: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Inspection:
    """Contents of a checkpoint.

    Attributes:
        location: its directory.
        id: the id of the checkpoint, by which sinks know it.
        query: the id of Spark's query, which is that of the job; None before its first start.
        created_ms: when the query was started for the first time.
        job: the name that the job was last started under.
        format: the form in which state is stored.
        parallelism: the number of subtasks.
        max_parallelism: that of the job.
        programs: how many different programs have been started on it.
        description: the graph of the last that counts, as `eventide.plan.description.describe` has it.
        sources: its sources, in the order of Spark's log.
        operators: its operators, stage by stage.
        sinks: the names of its sinks.
        directories: where its file sinks write.
        transactions: the groups of its transactions in Kafka.
        committed: the last micro-batch that is committed.
        unfinished: the micro-batch after it, if one was begun: the job is in it, or ended in it and will repeat it.
        listing: how large it is.
        has_newer_program: whether another program was started after the last micro-batch that is committed, so that
            what there is of the next one is in its sinks.
        counted: how many micro-batches sinks have had before the first one of the checkpoint.
    """

    location: str
    id: str
    query: str | None
    created_ms: int | None
    job: str
    format: int
    parallelism: int
    max_parallelism: int
    programs: int
    description: Mapping[str, Any]
    sources: tuple[SourceState, ...]
    operators: tuple[InspectedOperator, ...]
    sinks: tuple[str, ...]
    directories: tuple[str, ...]
    transactions: tuple[str, ...]
    committed: MicroBatch | None
    unfinished: MicroBatch | None
    listing: Listing
    has_newer_program: bool = False
    counted: int = 0


INSPECTED = (Inspection, SourceState, SourcePart, InspectedOperator, MicroBatch, Listing)
"""The tables of an answer."""


def inspect(location: str) -> Inspection:
    """Read what is in a checkpoint, of a job that runs or does not. Nothing is written, and Spark is not needed.

    Args:
        location: its directory, on a local disk or any store that Arrow can open.

    Raises:
        ProgramError: if Arrow cannot open the location.
        StateError: if it is not an eventide checkpoint, one of another format, or one that cannot be read.
    """
    remedy = "check that you may read all of it, and that it is complete"
    with as_state_error(lambda error: f"the checkpoint {location} cannot be read: {error}; {remedy}"):
        return _inspected(CheckpointFiles(location))


def _inspected(files: CheckpointFiles) -> Inspection:
    started = in_order(files.records(PLACE))
    if not started:
        raise StateError(_no_checkpoint(files))
    commits = files.committed()  # before the plans: what is committed has been planned
    plans = files.planned()
    committed, last = max(commits, default=-1), max(plans, default=-1)
    record = in_force(started, committed) or started[-1]
    program = record["program"]
    check_format(program["format"])
    before = files.plan_of(committed) if committed in plans else None
    behind = files.plan_of(last) if last > committed else None
    if commits:
        files.check_commit(committed)
    query = files.query()
    return Inspection(
        location=files.location,
        id=started[0]["id"],
        query=query[0] if query else None,
        created_ms=query[1] if query else None,
        job=record["job"],
        format=program["format"],
        parallelism=program["parallelism"],
        max_parallelism=program["max parallelism"],
        programs=len(started),
        description=record["description"],
        sources=tuple(_sources(record["description"]["sources"], before, behind)),
        operators=tuple(_operators(program["operators"])),
        sinks=tuple(sink["name"] for sink in program["sinks"]),
        directories=tuple(record["directories"]),
        transactions=tuple(sorted({record["group"] for record in files.records(KAFKA_PLACE)})),
        committed=_micro_batch(committed, before, plans, commits) if commits else None,
        unfinished=_micro_batch(last, behind, plans, commits) if behind else None,
        listing=files.listing(),
        has_newer_program=record is not started[-1],
        counted=started[0].get(COUNTED, 0),
    )


def committed_offsets(found: Inspection) -> list[list[Any]]:
    """Where each source stands after the last micro-batch that is committed, as Spark's log has it.

    An eventide source has one entry, a DataFrame as many as it reads from.
    """
    named = found.description["sources"]
    if found.committed is None:
        return [[] for _ in named]
    plan = CheckpointFiles(found.location).plan_of(found.committed.number)
    dealt = _dealt_out(named, [(offset, None) for offset in plan.offsets])
    return [[offset for offset, _ in of_it] for of_it in dealt]


def _no_checkpoint(files: CheckpointFiles) -> str:
    """Why a location is not what was asked for, and what may have been meant."""
    where = files.location
    if not files.exists():
        return f"there is nothing at {where}; give the directory that the job has from set_checkpoint_storage_dir(...)"
    if files.planned() or files.committed():
        return (
            f"{where} is the checkpoint of a Spark query that eventide did not start: it has no record of a program. A "
            "query on to_data_frame() has none either, because you start it yourself"
        )
    folders = files.folders()
    inside = [folder for folder in folders if PLACE in files.folders(folder)]
    hint = f"; there is one in it: {where.rstrip('/')}/{inside[0]}" if inside else ""
    return (
        f"{where} is not a checkpoint: it has none of the folders {PLACE}, offsets and commits{hint}. Give the "
        "directory that the job has from set_checkpoint_storage_dir(...)"
    )


def _micro_batch(number: int, plan: Planned | None, plans: Mapping[int, int], commits: Mapping[int, int]) -> MicroBatch:
    return MicroBatch(number, plan.at_ms if plan else None, plans.get(number), commits.get(number))


def _operators(program: Mapping[str, Mapping[str, str]]) -> list[InspectedOperator]:
    found = [
        # The operator of a watermark alignment has one subtask, which its identity does not say.
        InspectedOperator(
            operator, one["name"], int(one["level"]), int(one.get("parallelism", 1)), dict(sorted(one.items()))
        )
        for operator, one in program.items()
    ]
    return sorted(found, key=lambda one: (one.stage, one.name, one.id))


def _sources(
    named: Sequence[Mapping[str, str]], before: Planned | None, behind: Planned | None
) -> Iterator[SourceState]:
    """The sources, each with what the log has for it."""
    count = max((len(plan.offsets) for plan in (before, behind) if plan), default=0)
    committed, planned = (
        [*plan.offsets, *[None] * count][:count] if plan else [None] * count for plan in (before, behind)
    )
    lines = list(zip(committed, planned, strict=True))
    for source, of_it in zip(named, _dealt_out(named, lines), strict=True):
        yield SourceState(source["name"], source["kind"], tuple(part for line in of_it for part in _parts(*line)))


def _dealt_out(named: Sequence[Mapping[str, str]], lines: Sequence[tuple[Any, Any]]) -> list[list[tuple[Any, Any]]]:
    """Which lines of the log are of which source. An eventide source has one, a DataFrame as many as it reads from.

    Where several DataFrames read from several places, nothing tells whose a line is: then the first of them has all.
    """
    if len(lines) == len(named):
        return [[line] for line in lines]
    ours = [line for line in lines if is_ours(line)]
    others = [line for line in lines if not is_ours(line)]
    dealt: list[list[tuple[Any, Any]]] = []
    for source in named:
        if source["kind"] != _DATA_FRAME:
            dealt.append([ours.pop(0)] if ours else [])
        else:
            dealt.append(others)
            others = []
    return dealt


def is_ours(line: tuple[Any, Any]) -> bool:
    """Whether a line of the log, before and after a micro-batch, is that of an eventide source."""
    return all(
        offset is None
        or (isinstance(offset, dict) and all(isinstance(at, dict) and "position" in at for at in offset.values()))
        for offset in line
    )


def _parts(committed: Any, planned: Any) -> Iterator[SourcePart]:
    """The parts that one line of the log tells of."""
    if is_ours((committed, planned)):
        before, behind = committed or {}, planned or {}
        for name in {**before, **behind}:
            is_now = before.get(name) or behind[name]
            yield SourcePart(
                name, before.get(name, {}).get("position"), behind.get(name, {}).get("position"), is_now["ended"]
            )
    else:
        before, behind = dict(_leaves(committed)), dict(_leaves(planned))
        for name in {**before, **behind}:
            yield SourcePart(name, before.get(name), behind.get(name), ended=False)


def _leaves(offset: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in an offset of Spark's own sources, named by the way to them: ``orders-0`` for Kafka."""
    if isinstance(offset, dict):
        for key, value in offset.items():
            yield from _leaves(value, f"{name}-{key}" if name else key)
    elif offset is not None:
        yield name, offset
