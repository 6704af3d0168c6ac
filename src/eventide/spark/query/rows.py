"""From the frames of a sink to the rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from eventide.plan.job import SinkSpec
from eventide.runtime.elements.codec import decode_table
from eventide.runtime.exchange.frames import Frame, Signal
from eventide.spark.query.types import schema_of
from eventide.spark.query.worker import settled


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
