"""From the checkpoint of a stopped job to a savepoint, by Spark's own reader of state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from eventide import __version__
from eventide.errors import StateError
from eventide.savepoint import Header, SavedSource, Savepoint, StateWriter
from eventide.savepoint.files import Directory, copy_files
from eventide.savepoint.header import SOURCES
from eventide.spark.checkpoint import recorded_program
from eventide.spark.inspection import Inspection, committed_offsets, inspect
from eventide.spark.locations import resolved
from eventide.spark.state_reader import levels_of_state, reading_state
from eventide.spark.subtasks import subtask_ids

_SMALL = "operator STRING, subtask INT, name STRING, content BINARY"


def take_savepoint(
    spark: SparkSession, checkpoint: str, target: str, *, parallelism: int | None = None, repeat: bool = False
) -> Savepoint:
    """Write a savepoint of what the last micro-batch that was committed has left. The job must not be running.

    Args:
        spark: the session.
        checkpoint: the checkpoint's directory.
        target: a new directory.
        parallelism: that of a job that begins with it and does not say its own; by default as before.
        repeat: whether a micro-batch that was begun and not finished may be left out, to be read again: what it has
            given to sinks comes twice then.

    Raises:
        ProgramError: if a location cannot be opened.
        StateError: if it is no checkpoint of eventide's, if nothing is committed, if a micro-batch is not finished, or
            if there is something at the target.
    """
    location, target = resolved(spark, checkpoint), resolved(spark, target)
    found = inspect(location)
    program = recorded_program(spark, location)
    if found.committed is None or program is None:
        raise StateError(f"no micro-batch of the job in {checkpoint} is committed yet, so there is nothing to save")
    if found.description is None:
        raise StateError(f"the checkpoint {checkpoint} is of an earlier version; start its job once with this one")
    if found.unfinished is not None and _reads(found) and not repeat:
        raise StateError(
            f"the job in {checkpoint} has begun micro-batch {found.unfinished.number} and not finished it, so its "
            "sinks may have some of it. Run it once more with env.set_available_now(), which finishes it; or have it "
            "read again with --repeat, and take it that results of it come twice"
        )
    writer = StateWriter(target, found.max_parallelism)
    writer.begin()
    small = []
    with reading_state(location):
        levels = levels_of_state(spark, location, found.committed.number) if found.operators else []
        for number, level in enumerate(levels):
            written = level.mapInArrow(_writing(writer, number, subtask_ids(found.parallelism)), _SMALL).collect()
            small += [(row.operator, row.subtask, row.name, bytes(row.content)) for row in written]
    types = {source["name"]: source["element type"] for source in program["sources"]}
    storage = _saved_storage(location, target, [*types])
    sources = tuple(
        SavedSource(
            source["name"],
            source["kind"],
            types[source["name"]],
            offsets[0] if source["kind"] != "DataFrame" and offsets else offsets,
            storage.get(source["name"]),
        )
        for source, offsets in zip(found.description["sources"], committed_offsets(found), strict=True)
    )
    writer.finish(_header(found, parallelism, program, sources), small)
    return Savepoint(target)


def _reads(found: Inspection) -> bool:
    """Whether the unfinished micro-batch reads anything; one for the clock alone is left out, and comes again."""
    return any(part.planned != part.committed for source in found.sources for part in source.parts)


def _header(
    found: Inspection, parallelism: int | None, program: dict[str, Any], sources: tuple[SavedSource, ...]
) -> Header:
    if found.committed is None:
        raise StateError(f"nothing is committed in {found.location}")
    return Header(
        found.location,
        found.committed.number,
        parallelism or found.parallelism,
        program,
        found.description,
        sources,
        {"eventide": __version__, "spark": pyspark.__version__},
    )


def _saved_storage(checkpoint: str, target: str, names: list[str]) -> dict[str, str]:
    """Copy what sources remember below the checkpoint; where it is in the savepoint, by the source's name."""
    saved = {}
    for number, name in enumerate(names, start=1):
        there, folder = Directory(checkpoint), f"{SOURCES}/{number}"
        if there.names(folder):
            copy_files(there, folder, Directory(target).below(folder))
            saved[name] = folder
    return saved


def _writing(
    writer: StateWriter, level: int, ids: tuple[int, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What writes the state of those subtasks of a level that a task of Spark's has: all of each of them."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values: dict[int, dict[str, bytes]] = {}
        for batch in batches:
            for subtask, name, content in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                values.setdefault(subtask, {})[name] = content
        for key, of_subtask in values.items():
            subtask = ids.index(key)
            small = writer.write(f"{level}-{subtask}", subtask, of_subtask)
            if small:
                columns = [pa.array(column) for column in zip(*small, strict=True)]
                columns[1] = columns[1].cast(pa.int32())
                yield pa.RecordBatch.from_arrays(columns, names=["operator", "subtask", "name", "content"])

    return write
