"""Any Spark DataFrame as a source: its rows become elements, its columns name their split and event time.

The name of a split is one text of what the columns hold that identify it, for rows and expected values alike.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any, Self, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql import types as spark

from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.errors import ProgramError
from eventide.runtime.elements.elements import Elements
from eventide.runtime.sources.splits import columns_of
from eventide.runtime.sources.task import SourceTask
from eventide.spark.failures import in_our_words
from eventide.spark.query.data_source import FRAME_SCHEMA
from eventide.spark.query.frame_rows import OutputOfSink, batches_of, time_of_batch, type_info_of
from eventide.spark.query.worker import opened_source, settled

_OURS = "__eventide_"
_SPLIT = f"{_OURS}split"
_TIMESTAMP = f"{_OURS}timestamp"
_ORDER = f"{_OURS}order_"
_CLOCK = f"{_OURS}clock"
_ONE_SPLIT = "data frame"


@dataclass(frozen=True, slots=True)
class DataFrameReader:
    """A DataFrame with what identifies the split, the time and the order of its rows.

    ``rows`` has the user's columns, and after them, where there are any, the name of the split, the event time in
    milliseconds, and the columns to order by.
    """

    rows: DataFrame
    type_info: RowTypeInfo
    splits: tuple[str, ...]
    split_by: tuple[str, ...]
    order_columns: tuple[str, ...]

    @staticmethod
    def of(
        data_frame: DataFrame,
        timestamp: str | Column | None,
        split_by: Sequence[str | Column] | None,
        splits: Sequence[Any] | None,
        order_by: Sequence[str | Column] | None,
    ) -> DataFrameReader:
        """Check the columns, and prepare them.

        Raises:
            ProgramError: for something that is not a DataFrame or not a column, ``splits`` without ``split_by``, or a
                value in it that none of its columns can have.
        """
        if not isinstance(data_frame, DataFrame):
            raise ProgramError(f"from_data_frame needs a Spark DataFrame, not {data_frame!r}")
        if splits and not split_by:
            raise ProgramError("splits names expected values of the columns in split_by; give split_by too")
        type_info = Types.ROW_NAMED(
            data_frame.columns, [type_info_of(f.dataType, f"data frame.{f.name}") for f in data_frame.schema.fields]
        )
        split_columns = _typed(data_frame, [_column(data_frame, column) for column in split_by or ()])
        order_columns = [_column(data_frame, column) for column in order_by or ()]
        rows = data_frame.select(
            *[F.col(f"`{name}`") for name in data_frame.columns],
            *([split_name(split_columns).alias(_SPLIT)] if split_columns else []),
            *([] if timestamp is None else [_milliseconds(data_frame, timestamp).alias(_TIMESTAMP)]),
            *[column.alias(f"{_ORDER}{i}") for i, column in enumerate(order_columns)],
        )
        return DataFrameReader(
            rows=rows,
            type_info=type_info,
            splits=expected_splits(data_frame, split_columns, splits or ()) if split_by else (_ONE_SPLIT,),
            split_by=tuple(str(column) for column in split_by or ()),
            order_columns=tuple(f"{_ORDER}{i}" for i in range(len(order_columns))),
        )

    def with_columns(self, columns: Collection[str]) -> DataFrameReader:
        """Return the source without unused columns: columns that stay in the JVM cost nothing."""
        names = [name for name in self.type_info.field_names if name in columns]
        types = [self.type_info.field_types[self.type_info.field_names.index(name)] for name in names]
        behind = [name for name in self.rows.columns if name.startswith(_OURS)]
        rows = self.rows.select(*[F.col(f"`{name}`") for name in [*names, *behind]])
        return replace(self, rows=rows, type_info=Types.ROW_NAMED(names, types))

    def known_splits(self) -> tuple[str, ...]:
        """The splits that hold the watermark back from the start."""
        return self.splits

    def is_bounded(self) -> bool:
        """Whether the DataFrame is a batch DataFrame."""
        return not self.rows.isStreaming

    def describe(self) -> str:
        """One line for ``explain``."""
        kind = "streaming" if self.rows.isStreaming else "batch"
        split = f"split by {', '.join(self.split_by)}" if self.split_by else "one split"
        expected = f", expecting {', '.join(self.splits)}" if self.split_by and self.splits else ""
        return f"{kind} DataFrame, {split}{expected}" + (", ordered" if self.order_columns else "")

    def frames(self, payload: bytes, ids: tuple[int, ...], to: OutputOfSink | None, *, shows_time: bool) -> DataFrame:
        """The DataFrame of frames: chained functions run on the rows where Spark reads them.

        Args:
            payload: a ``ChainSpec``, as bytes.
            ids: the ids of the subtasks.
            to: the only sink, if it takes something else than frames.
            shows_time: whether a chained function can ask for the time of the micro-batch, which then lies in a column.
        """
        rows = self.rows
        if self.order_columns:
            # A split is in order where one task has all of it.
            rows = rows.repartition(len(ids), _SPLIT) if _SPLIT in rows.columns else rows.repartition(1)
        if shows_time:
            rows = rows.withColumn(_CLOCK, time_of_batch())
        schema = FRAME_SCHEMA if to is None else to.schema()
        return rows.mapInArrow(_reader(payload, ids, to, self.order_columns), schema)


def _column(data_frame: DataFrame, column: str | Column) -> Column:
    if not isinstance(column, str):
        return column
    if column not in data_frame.columns:
        raise ProgramError(f"the DataFrame has no column {column!r}; its columns are {data_frame.columns}")
    return F.col(f"`{column}`")


def _typed(data_frame: DataFrame, columns: list[Column]) -> list[tuple[Column, spark.DataType]]:
    types = [field.dataType for field in data_frame.select(*columns).schema.fields] if columns else []
    return list(zip(columns, types, strict=True))


def _milliseconds(data_frame: DataFrame, timestamp: str | Column) -> Column:
    """A timestamp column as milliseconds since the epoch; a timestamp without a zone is UTC."""
    column = _column(data_frame, timestamp)
    data_type = data_frame.select(column).schema[0].dataType
    if isinstance(data_type, spark.TimestampType):
        return F.unix_millis(column)
    if isinstance(data_type, spark.TimestampNTZType):
        return F.timestamp_diff("MILLISECOND", F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'"), column)
    if isinstance(data_type, spark.IntegralType):
        return column.cast("long")
    raise ProgramError(
        f"the timestamp column {timestamp!r} is of type {data_type.simpleString()}; it must be a timestamp, or whole "
        "milliseconds since the epoch"
    )


def _reader(
    payload: bytes, ids: tuple[int, ...], to: OutputOfSink | None, order_columns: tuple[str, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        place = 0 if context is None else context.partitionId()
        spec = opened_source(payload, place)
        if order_columns:
            batches = _sorted(batches, order_columns)
        clock_ms, batches = _clock_of(batches)
        task = SourceTask(spec, place, clock_ms)
        return settled(batches_of(task.send_rows(_splits(batches, spec.type_info)), ids, to))

    return read


def _clock_of(batches: Iterable[pa.RecordBatch]) -> tuple[int, Iterable[pa.RecordBatch]]:
    """Return the time of the micro-batch, in milliseconds, with all of its rows.

    Where rows have no column for it, no function sees it, and it says no more than when a meter was read.
    """
    remaining = (batch for batch in batches if batch.num_rows)
    first = next(remaining, None)
    if first is None or _CLOCK not in first.schema.names:
        clock_ms = time.time_ns() // 1_000_000
    else:
        clock_ms = first.column(_CLOCK)[0].as_py()
    return clock_ms, remaining if first is None else chain([first], remaining)


def _sorted(batches: Iterable[pa.RecordBatch], order_columns: tuple[str, ...]) -> list[pa.RecordBatch]:
    gathered = list(batches)
    if not gathered:
        return []
    by = [name for name in (_SPLIT, *order_columns) if name in gathered[0].schema.names]
    ordered: list[pa.RecordBatch] = (
        pa.Table.from_batches(gathered).sort_by([(name, "ascending") for name in by]).to_batches()
    )
    return ordered


def _splits(batches: Iterable[pa.RecordBatch], type_info: TypeInformation) -> Iterator[tuple[str, Elements]]:
    """The rows of each batch by split, each with its place in its split and task."""
    places: dict[str, int] = {}
    for batch in batches:
        for split, part in _parts(batch):
            start = places.get(split, 0)
            places[split] = start + len(part)
            users = [name for name in part.schema.names if not name.startswith(_OURS)]
            columns = columns_of(part.select(users), type_info, start)
            if _TIMESTAMP in part.schema.names:
                columns.timestamps = part.column(_TIMESTAMP)
            yield split, Elements(columns=columns)


def _parts(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    if _SPLIT not in batch.schema.names:
        yield _ONE_SPLIT, batch
        return
    splits = pc.unique(batch.column(_SPLIT)).to_pylist()
    if len(splits) == 1:
        yield splits[0], batch
        return
    for split in splits:
        yield split, batch.filter(pc.equal(batch.column(_SPLIT), split))


_NULL = "null"
_NUMBERS = (int, float, Decimal)


def split_name(columns: Sequence[tuple[Column, spark.DataType]]) -> Column:
    """The name of a row's split: its columns as text, with commas between.

    What a text has of commas, and one that reads like a null, is marked with a backslash, so that no two splits share a
    name; a single column of text is taken as it is.
    """
    is_alone = len(columns) == 1
    texts = [F.coalesce(_as_text(column, kind, escaped=not is_alone), F.lit(_NULL)) for column, kind in columns]
    return texts[0] if is_alone else F.concat_ws(",", *texts)


def expected_splits(
    data_frame: DataFrame, columns: Sequence[tuple[Column, spark.DataType]], values: Sequence[Any]
) -> tuple[str, ...]:
    """The names of splits that are expected, by the values of their columns: Spark itself names them, as it does rows.

    Raises:
        ProgramError: if a value cannot be one of its column, or there are more or fewer than columns.
    """
    rows = [_row(value, len(columns)) for value in values]
    if not rows:
        return ()
    one_row = data_frame.sparkSession.range(1)
    cells = [
        (_literal(value, kind), value, kind) for row in rows for value, (_, kind) in zip(row, columns, strict=True)
    ]
    cast = [literal.try_cast(kind) for literal, _, kind in cells]
    width = len(columns)
    names = [
        split_name([(cast[at + i], kind) for i, (_, kind) in enumerate(columns)]) for at in range(0, len(cells), width)
    ]
    fits = [_fits(literal, made, value, kind) for (literal, value, kind), made in zip(cells, cast, strict=True)]
    try:
        [answer] = one_row.select(F.array(*names).alias("names"), F.array(*fits).alias("fits")).collect()
    except AnalysisException as error:
        types = ", ".join(kind.simpleString() for _, kind in columns)
        raise ProgramError(
            f"splits: one of {list(values)!r} cannot be a value of its column; those of split_by are of type {types}"
        ) from error
    for (_, value, kind), fit in zip(cells, answer.fits, strict=True):
        if not fit:
            raise ProgramError(
                f"splits: {value!r} cannot be a value of a column of type {kind.simpleString()}, so no row would ever "
                "belong to it; give the values that the columns of split_by have"
            )
    return tuple(answer.names)


def _row(value: object, width: int) -> tuple[Any, ...]:
    row = tuple(value) if isinstance(value, tuple | list) else (value,)
    if len(row) != width:
        raise ProgramError(f"splits: {value!r} has {len(row)} value(s), and split_by names {width} column(s)")
    return row


def _literal(value: object, kind: spark.DataType) -> Column:
    """A value for a column; a time without a zone is text to Spark, which then brings its own zone to it or none."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None and isinstance(kind, spark.TimestampNTZType):
        return F.lit(value.isoformat(sep=" "))
    try:
        return F.lit(value)
    except Exception as error:
        raise ProgramError(f"splits: Spark has no value for {value!r}: {error}") from error


def _fits(literal: Column, cast: Column, value: object, kind: spark.DataType) -> Column:
    """Whether a value is one of a type: Spark casts it, and what it compares with does not change on the way."""
    if value is None:
        return F.lit(True)
    compares = isinstance(value, bool) == isinstance(kind, spark.BooleanType) and (
        (isinstance(value, _NUMBERS) and isinstance(kind, spark.NumericType) and not isinstance(kind, spark.FloatType))
        or (isinstance(value, datetime.date) and isinstance(kind, spark.DateType | spark.TimestampType))
    )
    there = cast.isNotNull()
    return there & F.coalesce(literal == cast, F.lit(False)) if compares else there


def _as_text(column: Column, kind: spark.DataType, *, escaped: bool) -> Column:
    """A value as text, in which a text that reads like a null is marked, and, if that is asked for, commas are."""
    if isinstance(kind, spark.BinaryType):
        return F.hex(column)
    text = column.cast("string")
    if not isinstance(kind, spark.StringType | spark.CharType | spark.VarcharType):
        return text
    if escaped:
        text = F.replace(F.replace(text, F.lit("\\"), F.lit("\\\\")), F.lit(","), F.lit("\\,"))
    return F.when(text == _NULL, F.lit(f"\\{_NULL}")).otherwise(text)


HandleBatches: TypeAlias = Callable[[int, Iterator[pa.RecordBatch]], bytes]
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
                "a streaming DataFrame has no end, so it cannot be measured; read the data with spark.read, or measure "
                "the rows that have arrived so far"
            )
        missing = [name for name in columns if name not in frame.columns]
        if missing:
            raise ProgramError(f"the DataFrame has no column {missing[0]!r}; it has {', '.join(frame.columns)}")
        # Where stretches begin is found by a sample, which would be another one each time: so they are kept.
        self._rows = frame.select(*(frame[name] for name in columns)).sort(order_by).persist()

    def map(self, handle: HandleBatches) -> dict[int, bytes]:
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
