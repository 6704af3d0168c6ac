"""Savepoints by Spark: of the checkpoint of a stopped job, by its own reader of state; and of a DataFrame.

The rows of a DataFrame are partitioned by key and become state in parallel. A job that goes on under another
parallelism begins with a savepoint too, which lies below its new checkpoint.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from eventide import __version__
from eventide.common.execution_config import check_parallelisms
from eventide.connectors.file_system.sink import PartFiles
from eventide.errors import ProgramError, StateError
from eventide.pickling.pickles import dumps, loads
from eventide.plan.identity import dealt_out_into
from eventide.runtime.elements.keys import hashes_of, subtasks_of_hashes
from eventide.runtime.pickles import classes_of, dumps_program, loads_program
from eventide.savepoint import Header, Outline, SavedSource, StateWriter
from eventide.savepoint.bootstrapping import Bootstrap
from eventide.savepoint.directory import SOURCES, Directory, copy_files
from eventide.savepoint.fitting import DATA_FRAME
from eventide.savepoint.rows import TASKS, Small, elements_of
from eventide.savepoint.saved import OUTLINED, outlined
from eventide.spark.checkpoint.files import BEGINS_WITH, CONTINUED_IN, COUNTED, KNOWN_AS, RESCALED, Record
from eventide.spark.checkpoint.inspection import Inspection, committed_offsets
from eventide.spark.checkpoint.owner import Ownership
from eventide.spark.checkpoint.record import append_start, outline, recorded_program, records_of, refuse_continued
from eventide.spark.checkpoint.state_reader import inspected, reading_state, stages_of_state
from eventide.spark.connect import there
from eventide.spark.failures import in_our_words
from eventide.spark.query.frame_rows import subtask_ids
from eventide.spark.session.locations import is_used_here, resolved
from eventide.spark.session.python_files import ship

_TRIES = 20
"""How often the sources of a running job are looked at before it is said that they change too quickly."""


def take_savepoint(
    spark: SparkSession,
    checkpoint: str,
    target: str,
    *,
    parallelism: int | None = None,
    max_parallelism: int | None = None,
    repeat: bool = False,
    running: bool = False,
) -> Outline:
    """Write a savepoint of what the last micro-batch that was committed has left.

    Args:
        spark: the session.
        checkpoint: the checkpoint's directory.
        target: a new directory.
        parallelism: that of a job that begins with it and does not say its own; by default as before.
        max_parallelism: the number of key groups for a job that begins with it; by default as
            before.
        repeat: whether a micro-batch that was begun and not finished may be left out though sinks may have some of it:
            that comes twice then. One that no sink has anything of is left out in any case, and is read again.
        running: whether the job may be running, and go on meanwhile. What it does after that micro-batch is left out.

    Raises:
        ProgramError: if a location cannot be opened, a parallelism or a max parallelism is out of range, or the
            parallelism is above the max parallelism.
        StateError: if it is not an eventide checkpoint, if nothing is committed, if the job is running, if sinks may
            have some of a micro-batch that is not finished, or if there is something at the target.
    """
    check_parallelisms(parallelism, max_parallelism)
    location, target = resolved(spark, checkpoint), resolved(spark, target)
    if is_used_here(location) and not running:
        raise _runs(checkpoint)
    found = inspected(spark, location)
    program = recorded_program(spark, location)
    if found.committed is None or program is None:
        raise StateError(f"no micro-batch of the job in {checkpoint} is committed yet, so there is nothing to save")
    if not (repeat or running) and there(spark, partial(may_be_in_sinks, found)):
        raise StateError(
            f"the job in {checkpoint} has begun micro-batch {_last(found)} and not finished it. If it is running, stop "
            "it. If it ended there, its sinks may have some of that: run it once more with env.set_available_now(), "
            "which finishes it; or have it read again with --repeat, and accept that its results come twice"
        )
    key_groups = max_parallelism or found.max_parallelism
    check_parallelisms(parallelism or found.parallelism, key_groups)
    ship(spark)
    program = dealt_out_into(key_groups, program)
    writer = StateWriter(target, key_groups)
    there(spark, writer.begin)
    try:
        found, sources = saved_sources(spark, found, program, target)
        small = _write_state(spark, found, writer)
        if not running and _last(inspected(spark, location)) != _last(found):
            raise _runs(checkpoint)
        there(spark, partial(writer.finish, _header(found, parallelism, program, sources), small))
    except BaseException:
        there(spark, writer.abandon)
        raise
    return outline(spark, target)


def _write_state(spark: SparkSession, found: Inspection, writer: StateWriter) -> list[Small]:
    """Write the state after the last micro-batch that is committed, stage by stage, and return its small values."""
    small: list[Small] = []
    with reading_state(found.location):
        stages = stages_of_state(spark, found.location, _committed(found)) if found.operators else []
        for number, stage in enumerate(stages):
            small += _collected(stage, _writing(writer, number, subtask_ids(found.parallelism)))
    return small


def saved_sources(
    spark: SparkSession, found: Inspection, program: Mapping[str, Any], target: str
) -> tuple[Inspection, tuple[SavedSource, ...]]:
    """The positions of the sources after the last commit; their own memory is copied.

    A job that runs changes both. The memory of sources fits a commit if the next one has not changed it: sources write
    down what is finished when they plan the micro-batch after it, and delete what they have merged.

    Raises:
        StateError: if micro-batches follow each other faster than that can be copied.
    """
    types = {source["name"]: source["element type"] for source in program["sources"]}
    for _ in range(_TRIES):
        files = there(spark, partial(_files_of_sources, found.location, len(types)))
        before, found = found, inspected(spark, found.location)
        if _committed(before) == _committed(found) and there(
            spark, partial(_copy_sources, found.location, target, files)
        ):
            folders = {name: folder for name, folder in zip(types, files, strict=True) if files[folder]}
            return found, _described_sources(found, types, folders)
    raise StateError(
        f"the job in {found.location} commits micro-batches faster than the state of its sources can be read; stop it, "
        "or make it pause between them with set_auto_watermark_interval(...)"
    )


def _described_sources(
    found: Inspection, types: Mapping[str, str], storage: Mapping[str, str]
) -> tuple[SavedSource, ...]:
    return tuple(
        SavedSource(
            source["name"],
            source["kind"],
            types[source["name"]],
            offsets[0] if source["kind"] != "DataFrame" and offsets else offsets,
            storage.get(source["name"]),
        )
        for source, offsets in zip(found.description["sources"], committed_offsets(found), strict=True)
    )


def _committed(found: Inspection) -> int:
    """The number of the last micro-batch that is committed.

    Raises:
        StateError: if none is.
    """
    if found.committed is None:
        raise StateError(f"nothing is committed in {found.location}")
    return found.committed.number


def _last(found: Inspection) -> int | None:
    """The number of the last micro-batch that was begun."""
    last = found.unfinished or found.committed
    return None if last is None else last.number


def may_be_in_sinks(found: Inspection) -> bool:
    """Whether sinks may have something of a micro-batch that is not finished; directories of files show it.

    Raises:
        ProgramError: if Arrow cannot open a directory.
    """
    if found.unfinished is None:
        return False
    are_all_files = len(found.directories) == len(found.sinks) and not found.has_newer_program
    return not are_all_files or any(
        PartFiles.at(path).names_of(found.counted + found.unfinished.number) for path in found.directories
    )


def _runs(checkpoint: str) -> StateError:
    return StateError(
        f"the job in {checkpoint} is running, and a job that begins with the savepoint would repeat its further "
        "work; stop it, and then take the savepoint"
    )


def _header(
    found: Inspection, parallelism: int | None, program: dict[str, Any], sources: tuple[SavedSource, ...]
) -> Header:
    return Header(
        found.location,
        _committed(found),
        parallelism or found.parallelism,
        program,
        {**found.description, "max_parallelism": program["max parallelism"]},
        sources,
        {"eventide": __version__, "spark": pyspark.__version__},
        found.id,
    )


def _files_of_sources(checkpoint: str, count: int) -> dict[str, list[str]]:
    """The folder of each source below a checkpoint, and the files in it with what the source remembers."""
    of_job = Directory(checkpoint)
    return {folder: of_job.names(folder) for folder in (f"{SOURCES}/{number}" for number in range(1, count + 1))}


def _copy_sources(checkpoint: str, target: str, files: Mapping[str, list[str]]) -> bool:
    """Copy files of sources, all of them or none; return whether all are still there."""
    try:
        for folder, names in files.items():
            copy_files(Directory(checkpoint), folder, names, Directory(target).below(folder))
    except FileNotFoundError:
        Directory(target).below(SOURCES).delete()
        return False
    return True


_Write: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _collected(frame: DataFrame, write: _Write) -> list[Small]:
    """Let the tasks of a DataFrame write state, and return the small parts of it."""
    rows = frame.mapInArrow(write, _sql(TASKS)).collect()
    return [(row.operator, row.subtask, row.name, bytes(row.content)) for row in rows]


def _batches(small: Sequence[Small]) -> Iterator[pa.RecordBatch]:
    """The small values, for the driver."""
    if small:
        columns = zip(TASKS, zip(*small, strict=True), strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(column, field.type) for field, column in columns], schema=TASKS)


def _writing(writer: StateWriter, stage: int, ids: tuple[int, ...]) -> _Write:
    """Return the function that writes the state of a Spark task's subtasks of a stage: all of each of them."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values: dict[int, dict[str, bytes]] = {}
        for batch in batches:
            for subtask, name, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                values.setdefault(subtask, {})[name] = content
        for key, of_subtask in values.items():
            subtask = ids.index(key)
            yield from _batches(writer.write(str(stage), subtask, of_subtask))

    return write


_DEALT = pa.schema([("subtask", pa.int32()), ("place", pa.int64()), ("elements", pa.binary())])
_BATCHES_OF_TASK = 1 << 32


def bootstrap_on_spark(
    data_frame: DataFrame, bootstrap: Bootstrap, writer: StateWriter, place: str, parallelism: int | None
) -> list[Small]:
    """Write the state that a function makes of the rows of a DataFrame, and return what is small of it.

    Args:
        data_frame: the rows, which become elements.
        bootstrap: the function, and how keys are found.
        writer: writes the savepoint.
        place: the beginning of the names of its files, which no other has.
        parallelism: how many tasks share the work; by default as many as Spark's shuffles have.

    Raises:
        ProgramError: if the function cannot be sent to the workers.
        UserFunctionError: if a function raised.
    """
    ship(data_frame.sparkSession)
    count = parallelism or int(data_frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    what = f"the function that makes the state of {bootstrap.operator!r}"
    payload = dumps_program(bootstrap, what, classes=classes_of([(bootstrap, what)]))
    dealt = data_frame.mapInArrow(_dealing(payload, writer.max_parallelism, count), _sql(_DEALT))
    together = dealt.repartition(count, "subtask").sortWithinPartitions("subtask", "place")
    with in_our_words():
        return _collected(together, _making(payload, writer, place, count))


def _sql(schema: pa.Schema) -> str:
    names = {pa.int32(): "INT", pa.int64(): "BIGINT", pa.string(): "STRING", pa.binary(): "BINARY"}
    return ", ".join(f"{field.name} {names[field.type]}" for field in schema)


def _dealing(payload: bytes, max_parallelism: int, count: int) -> _Write:
    """Return the function that deals the rows of a task out by key, in their order."""

    def deal(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bootstrap: Bootstrap = loads_program(payload).part
        context = TaskContext.get()
        first = (0 if context is None else context.partitionId()) * _BATCHES_OF_TASK
        for number, batch in enumerate(batches):
            keyed = [*bootstrap.keyed(elements_of(batch))]
            if keyed:
                subtasks = subtasks_of_hashes(hashes_of([key for _, key in keyed]), max_parallelism, count)
                of_each = [(s, [keyed[i] for i in np.flatnonzero(subtasks == s)]) for s in np.unique(subtasks).tolist()]
                yield pa.RecordBatch.from_pylist(
                    [{"subtask": s, "place": first + number, "elements": dumps(own)} for s, own in of_each], _DEALT
                )

    return deal


def _making(payload: bytes, writer: StateWriter, place: str, count: int) -> _Write:
    """Return the function that makes and writes the state of a task's subtasks: all of each of them, in its order."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = chain.from_iterable(
            zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in batches
        )
        for subtask, parts in groupby(rows, itemgetter(0)):
            bootstrap: Bootstrap = loads_program(payload).part
            keyed = chain.from_iterable(loads(content) for _, _, content in parts)
            values = bootstrap.run(keyed, writer.max_parallelism, subtask, count)
            yield from _batches(writer.write(place, subtask, values))

    return write


def rescale(
    spark: SparkSession, checkpoint: str, target: str, *, parallelism: int, max_parallelism: int | None = None
) -> Outline:
    """Make a new checkpoint of that of a stopped job, for another parallelism.

    The new one begins with a savepoint, which lies below it, and counts on from the micro-batches of the old one: so it
    writes into the same sinks, and nothing comes twice. The old one is told first, and no job starts on it any more: at
    no moment could jobs start on both. A call that was interrupted after that is finished by the same call.

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
            f"the job in {checkpoint} reads a DataFrame, whose position only its program can restore: take a "
            "savepoint, and begin with it by env.from_savepoint(...) and env.saved_position()"
        )
    last, place = records_of(spark, location)[-1], f"{target}/{RESCALED}"
    if records_of(spark, target):
        refuse_continued(location, [last])
        raise StateError(f"there is a checkpoint at {target} already; give a new directory")
    if last.get(CONTINUED_IN) == target:  # and then the call was interrupted
        saved = there(spark, partial(outlined, place), OUTLINED)
        groups = saved.header.program["max parallelism"]
        if max_parallelism not in (None, groups):
            raise StateError(
                f"the call that was interrupted has made a savepoint with {groups} key groups at {place}, and this one "
                f"asks for {max_parallelism}; call it with a max parallelism of {groups}, or with none"
            )
    else:
        refuse_continued(location, [last])
        there(spark, Directory(place).delete)  # that of a call that was interrupted
        saved = take_savepoint(spark, location, place, parallelism=parallelism, max_parallelism=max_parallelism)
        # A driver that was thought dead finds another owner from here on; what it has done before, is seen.
        there(spark, Ownership(location, f"rescale {uuid.uuid4().hex}").claim, [Ownership])
        if _last(inspected(spark, location)) != _last(found):
            raise _runs(checkpoint)
        append_start(spark, location, {**last, CONTINUED_IN: target})
    _begin(spark, last, saved, target, parallelism)
    return saved


def _begin(spark: SparkSession, last: Record, saved: Outline, target: str, parallelism: int) -> None:
    """Write the first record of a checkpoint that follows another, given the last one of that.

    It has an id of its own, by which sinks with transactions know it.
    """
    before = {KNOWN_AS: last["id"], **{name: value for name, value in last.items() if name != CONTINUED_IN}}
    counted = before.get(COUNTED, 0) + (saved.header.batch or 0) + 1
    begins = {"start": 0, "after": -1, "id": uuid.uuid4().hex, "savepoint": saved.location}
    program = {**saved.header.program, "parallelism": parallelism}
    append_start(spark, target, {**before, **begins, "program": program, BEGINS_WITH: parallelism, COUNTED: counted})
