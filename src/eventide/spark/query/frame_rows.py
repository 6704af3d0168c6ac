"""Frames as Spark rows, and back; and the ids of subtasks that Spark deals rows out by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from eventide.plan.job import SinkSpec
from eventide.runtime.elements.codec import decode_table
from eventide.runtime.exchange.frames import Frame, Signal
from eventide.spark.query.types import schema_of
from eventide.spark.query.worker import settled

FRAME_SCHEMA = "target INT, subtask INT, frame BINARY"
FRAME_ROW = Row("target", "subtask", "frame")
_ARROW = pa.schema([("target", pa.int32()), ("subtask", pa.int32()), ("frame", pa.binary())])
_ROWS_PER_BATCH = 64
_MASK = 0xFFFFFFFF
_SEED = 42


def frame_batches(frames: Iterable[Frame], ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Frames as Arrow record batches of a few rows each: frames are large."""
    waiting: list[tuple[int, int, bytes]] = []
    for frame in frames:
        waiting.append((frame.target, ids[frame.subtask], frame.to_bytes()))
        if len(waiting) == _ROWS_PER_BATCH:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[tuple[int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW
    )


def frame_of(row: Any) -> Frame:
    """A row with the columns of ``FRAME_SCHEMA`` as a frame; its subtask stays Spark's id."""
    return Frame.from_bytes(row.target, row.subtask, bytes(row.frame))


def typed_rows(frames: DataFrame, sink: SinkSpec) -> DataFrame:
    """The elements of one sink, from frames of any, as columns; no Python object is made for an element.

    Raises:
        ProgramError: if their type is not declared.
    """
    schema = schema_of(sink)
    flat = pa.types.is_struct(sink.type_info.arrow_type())
    number = sink.number

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for target, data in zip(batch.column("target").to_pylist(), batch.column("frame"), strict=True):
                if target != number:
                    continue
                frame = Frame.from_bytes(number, 0, data.as_py())
                if frame.signal is Signal.ELEMENTS:
                    for value in decode_table(frame.content).column("value").chunks:
                        yield pa.RecordBatch.from_struct_array(value) if flat else pa.record_batch({"value": value})

    return frames.mapInArrow(lambda batches: settled(unpack(batches)), schema)


def murmur3(value: int) -> int:
    """Spark's hash of an INT column: Murmur3 of 32 bits with seed 42, as a signed integer.

    >>> murmur3(0), murmur3(1)
    (933211791, -559580957)
    """
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotate_left(k, 15) * 0x1B873593 & _MASK
    h = _rotate_left(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


@lru_cache(maxsize=64)
def subtask_ids(partitions: int) -> tuple[int, ...]:
    """For each shuffle partition the smallest id that lands in it.

    Small integers as they come would leave partitions empty and let others do the work of two, one after the other.

    >>> subtask_ids(2)
    (2, 0)
    """
    ids: dict[int, int] = {}
    candidate = 0
    while len(ids) < partitions:
        ids.setdefault(murmur3(candidate) % partitions, candidate)
        candidate += 1
    return tuple(ids[partition] for partition in range(partitions))
