"""Frames as Spark rows, and back; types of eventide as types of Spark, and back.

Here are also the ids of subtasks that Spark deals rows out by, and the time of a micro-batch as a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql import types as spark

from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec
from eventide.runtime.elements.codec import decode_table
from eventide.runtime.elements.elements import Elements, frame_slices
from eventide.runtime.exchange.frames import METRICS, Frame, Signal, metrics_frame
from eventide.spark.query.worker import settled

FRAME_ROW = Row("target", "subtask", "frame")
_ROW = "row_"
COUNTED = "counted"
"""The column of what tasks have counted, among those of a sink."""
_BATCH_BYTES = 8 << 20
_UTC = pa.timestamp("us", "UTC")
_ARROW = pa.schema([("target", pa.int32()), ("subtask", pa.int32()), ("frame", pa.binary())])
_ROWS_PER_BATCH = 64
_MASK = 0xFFFFFFFF
_SEED = 42


def frame_batches(frames: Iterable[Frame], ids: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Frames as Arrow record batches of a few rows each: frames are large."""
    waiting: list[tuple[int, int, bytes]] = []
    size = 0
    for frame in frames:
        content = frame.to_bytes()
        if waiting and (len(waiting) == _ROWS_PER_BATCH or size + len(content) > _BATCH_BYTES):
            yield _batch(waiting)
            waiting, size = [], 0
        waiting.append((frame.target, ids[frame.subtask], content))
        size += len(content)
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


def in_channels(frames: Iterable[Frame], sinks: Mapping[int, SinkSpec]) -> Iterator[tuple[SinkSpec, Elements]]:
    """The elements of the sinks with some numbers, from frames of all sinks.

    Elements of a channel are in the order of their sequence numbers, whatever the order of its frames.
    """
    mine = [frame for frame in frames if frame.target in sinks and frame.signal is Signal.ELEMENTS]
    for (target, *_), of_channel in groupby(sorted(mine, key=_channel), key=_channel):
        sink = sinks[target]
        decoded = [sink.codec.decode(frame.content) for frame in of_channel]
        for elements in sorted(decoded, key=lambda elements: elements.first):
            yield sink, elements


def _channel(frame: Frame) -> tuple[int, int, int, str, int]:
    return frame.target, frame.point, frame.edge, frame.channel, frame.task


class OutputOfSink(Protocol):
    """The only sink of a job without stages, as sources see it whose elements go there alone.

    ``is_of_rows`` says that Spark gets a row for each element.
    """

    is_of_rows: ClassVar[bool]

    def schema(self) -> spark.StructType:
        """The columns of what sources give in place of frames."""

    def batches(self, frames: Iterable[Frame]) -> Iterator[pa.RecordBatch]:
        """Elements of a source as the sink takes them, and what was counted."""


@dataclass(frozen=True, slots=True)
class RowsOfSink:
    """The elements of one sink in columns of their own, and beside them one for what tasks have counted.

    A source whose elements go to this sink alone produces these columns: they reach the sink without entering Python
    a second time.

    Attributes:
        number: the target of the sink's frames.
        types: those of its columns.
    """

    is_of_rows: ClassVar[bool] = True
    number: int
    types: tuple[pa.DataType, ...]

    @staticmethod
    def of(sink: SinkSpec) -> RowsOfSink | None:
        """The columns of a sink; None if one is nested: Spark and Arrow name the parts of these differently.

        Raises:
            ProgramError: if the type of its elements is not declared.
        """
        sink.check_columns()
        kind = sink.type_info.arrow_type()
        types = [field.type for field in kind] if pa.types.is_struct(kind) else [kind]
        if any(pa.types.is_nested(kind) for kind in types):
            return None
        zoned = tuple(_UTC if pa.types.is_timestamp(kind) else kind for kind in types)
        return RowsOfSink(sink.number, zoned)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, which are no names of the user's."""
        return tuple(f"{_ROW}{i}" for i in range(len(self.types)))

    def schema(self) -> spark.StructType:
        """The Spark schema of the rows: their columns, and the one for counts."""
        columns = zip(self.names, self.types, strict=True)
        of_rows = [spark.StructField(name, spark_type_of(kind)) for name, kind in columns]
        return spark.StructType([spark.StructField(COUNTED, spark.StringType()), *of_rows])

    def batches(self, frames: Iterable[Frame]) -> Iterator[pa.RecordBatch]:
        """Elements of the sink as rows, and what was counted; no other frames are read after it."""
        for frame in frames:
            if frame.target == METRICS:
                counted = pa.array([json.dumps(frame.content)], pa.string())
                yield self._batch([counted, *(pa.nulls(1, kind) for kind in self.types)])
            elif frame.target == self.number and frame.signal is Signal.ELEMENTS:
                yield from self._rows_of(frame.content.values)

    def _rows_of(self, values: pa.Array) -> Iterator[pa.RecordBatch]:
        rows = as_rows(values)
        for start, count in frame_slices(rows, _BATCH_BYTES):
            part = rows.slice(start, count)
            columns = (column.cast(kind) for column, kind in zip(part.columns, self.types, strict=True))
            yield self._batch([pa.nulls(count, pa.string()), *columns])

    def select(self, frames: DataFrame, columns: spark.StructType) -> DataFrame:
        """The rows of the sink, under the names of its own columns."""
        rows = frames.where(frames[COUNTED].isNull())
        return rows.select(*[rows[place].alias(field.name) for place, field in zip(self.names, columns, strict=True)])

    def _batch(self, columns: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(columns, names=[COUNTED, *self.names])


def counted_in(frames: DataFrame) -> Column:
    """The counts of tasks, as text; null in rows that say something else.

    Spark looks at this for each row without compiling it, so among the rows of a sink it is no more than a column.
    """
    if COUNTED in frames.columns:
        return frames[COUNTED]
    begin = len(metrics_frame({}).to_bytes()) - len("{}") + 1  # such frames are sent without a channel
    return F.when(frames["target"] == METRICS, F.expr(f"cast(substring(frame, {begin}) as string)"))


def batches_of(frames: Iterable[Frame], ids: Sequence[int], to: OutputOfSink | None) -> Iterator[pa.RecordBatch]:
    """The record batches of a source for Spark: frames, or what its only sink takes in their place."""
    return frame_batches(frames, ids) if to is None else to.batches(frames)


def typed_rows(frames: DataFrame, sink: SinkSpec) -> DataFrame:
    """The elements of one sink, from frames of any, as columns; no Python object is made for an element.

    Raises:
        ProgramError: if their type is not declared.
    """
    schema = schema_of(sink)
    rows = RowsOfSink.of(sink)
    if rows is not None and set(rows.names) <= set(frames.columns):
        return rows.select(frames, schema)
    number = sink.number
    return frames.mapInArrow(lambda batches: settled(map(as_rows, elements_of(batches, number))), schema)


def elements_of(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.Array]:
    """The elements for a sink in rows with the columns of ``FRAME_SCHEMA``."""
    for batch in batches:
        for target, data in zip(batch.column("target").to_pylist(), batch.column("frame"), strict=True):
            if target != number:
                continue
            frame = Frame.from_bytes(number, 0, data.as_py())
            if frame.signal is Signal.ELEMENTS:
                yield from decode_table(frame.content).column("value").chunks


def as_rows(values: pa.Array) -> pa.RecordBatch:
    """Elements as a record batch: of their fields, or of one column ``value``."""
    flat = pa.types.is_struct(values.type)
    return pa.RecordBatch.from_struct_array(values) if flat else pa.record_batch({"value": values})


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


def time_of_batch() -> Column:
    """Return the time of the micro-batch, from Spark's log, in milliseconds; in a batch query, that of its start.

    Spark writes a number into the Java source that it makes for an expression, so a clock as it is would have two
    classes compiled in every micro-batch: 20 ms. It interprets ``array_sort`` and what is in it, at 60 ns for a row.
    """
    return F.array_sort(F.array(F.unix_millis(F.current_timestamp())))[0]


_SIMPLE: list[tuple[type[spark.DataType], TypeInformation]] = [
    (spark.StringType, Types.STRING()),
    (spark.BooleanType, Types.BOOLEAN()),
    (spark.ByteType, Types.BYTE()),
    (spark.ShortType, Types.SHORT()),
    (spark.IntegerType, Types.INT()),
    (spark.LongType, Types.LONG()),
    (spark.FloatType, Types.FLOAT()),
    (spark.DoubleType, Types.DOUBLE()),
    (spark.DateType, Types.SQL_DATE()),
    (spark.TimestampType, Types.SQL_TIMESTAMP()),
    (spark.TimestampNTZType, Types.SQL_TIMESTAMP()),
    (spark.BinaryType, Types.PRIMITIVE_ARRAY(Types.BYTE())),
]


def type_info_of(data_type: spark.DataType, path: str = "data frame") -> TypeInformation:
    """The eventide type of a Spark type; a struct is a ``Row`` with names.

    Raises:
        ProgramError: for a type that elements cannot have, naming the column.
    """
    for spark_type, type_info in _SIMPLE:
        if type(data_type) is spark_type:
            return type_info
    if isinstance(data_type, spark.DecimalType):
        return Types.BIG_DEC(data_type.precision, data_type.scale)
    if isinstance(data_type, spark.StructType):
        types = [type_info_of(field.dataType, f"{path}.{field.name}") for field in data_type.fields]
        return Types.ROW_NAMED(data_type.names, types)
    if isinstance(data_type, spark.ArrayType):
        return Types.LIST(type_info_of(data_type.elementType, f"{path}[]"))
    if isinstance(data_type, spark.MapType):
        return Types.MAP(type_info_of(data_type.keyType, f"{path}.key"), type_info_of(data_type.valueType, f"{path}[]"))
    raise ProgramError(
        f"the column {path} has Spark's type {data_type.simpleString()}, which eventide's elements cannot have; "
        "cast or drop it before from_data_frame"
    )


def spark_type_of(arrow_type: pa.DataType) -> spark.DataType:
    """The Spark type of an Arrow type that a :class:`TypeInformation` gives."""
    if pa.types.is_struct(arrow_type):
        return spark.StructType([spark.StructField(f.name, spark_type_of(f.type)) for f in arrow_type])
    if pa.types.is_list(arrow_type):
        return spark.ArrayType(spark_type_of(arrow_type.value_type))
    if pa.types.is_map(arrow_type):
        return spark.MapType(spark_type_of(arrow_type.key_type), spark_type_of(arrow_type.item_type))
    if pa.types.is_decimal(arrow_type):
        return spark.DecimalType(arrow_type.precision, arrow_type.scale)
    if pa.types.is_timestamp(arrow_type):
        return spark.TimestampType()
    for spark_type, type_info in _SIMPLE:
        if type_info.arrow_type() == arrow_type:
            return spark_type()
    raise ProgramError(f"Spark has no type for {arrow_type}; declare another output_type")


def schema_of(sink: SinkSpec) -> spark.StructType:
    """The columns of a sink as a DataFrame: the fields of a tuple or row, or one column ``value``.

    Raises:
        ProgramError: if the type is not declared.
    """
    sink.check_columns()
    data_type = spark_type_of(sink.type_info.arrow_type())
    if isinstance(data_type, spark.StructType):
        return data_type
    return spark.StructType([spark.StructField("value", data_type)])
