"""The rows of a DataFrame in the order of a column, as stretches that workers handle side by side, more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from eventide.errors import ProgramError
from eventide.spark.failures import in_our_words

Handle: TypeAlias = Callable[[int, Iterator[pa.RecordBatch]], bytes]
"""Function of a worker for a stretch: given its place among all stretches, and its rows."""

_RESULT = "place INT, found BINARY"


class OrderedStretches:
    """Some columns of a DataFrame, sorted once and kept while this is open; each stretch is one of Spark's partitions.

    Args:
        frame: a DataFrame that is not a stream.
        columns: the names of the columns.
        order_by: the one of them to sort by; rows with the same value are in no order.

    Raises:
        ProgramError: if the DataFrame is a stream, or a column is not there.
    """

    def __init__(self, frame: DataFrame, columns: Sequence[str], order_by: str) -> None:
        if frame.isStreaming:
            raise ProgramError(
                "a streaming DataFrame has no end to measure up to; read the data with spark.read, or what it has "
                "brought so far"
            )
        missing = [name for name in columns if name not in frame.columns]
        if missing:
            raise ProgramError(f"the DataFrame has no column {missing[0]!r}; it has {', '.join(frame.columns)}")
        # Where stretches begin is found by a sample, which would be another one each time: so they are kept.
        self._rows = frame.select(*(frame[name] for name in columns)).sort(order_by).persist()

    def map(self, handle: Handle) -> dict[int, bytes]:
        """Return the result of each stretch, by its place, in the order of places; empty stretches may be missing.

        Raises:
            EventideError: the error of ``handle``, where it is one.
        """

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            place = 0 if context is None else context.partitionId()
            found = handle(place, batches)
            yield pa.record_batch([pa.array([place], pa.int32()), pa.array([found], pa.binary())], ["place", "found"])

        with in_our_words():
            rows = self._rows.mapInArrow(run, _RESULT).collect()
        return {row["place"]: bytes(row["found"]) for row in sorted(rows, key=lambda row: row["place"])}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.unpersist()
