"""Frames as Spark rows, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from eventide.runtime.exchange.frames import Frame

FRAME_SCHEMA = "target INT, subtask INT, frame BINARY"
FRAME_ROW = Row("target", "subtask", "frame")
_ARROW = pa.schema([("target", pa.int32()), ("subtask", pa.int32()), ("frame", pa.binary())])
_ROWS_PER_BATCH = 64


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
