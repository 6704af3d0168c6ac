"""Reading of data as stretches to measure: files, topics of Kafka, and DataFrames of Spark.

Batches of columns become stretches in the order of arrival, with their times as milliseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eventide.advisor.disorder import Disorder, DisorderMeter, Fronts, Split, Stretch
from eventide.api.source import PartRange, TimestampedBatch, Unreadable
from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.common.words import PER_S, UNIT_NAMES, count, moment, other_unit_of
from eventide.connectors.file_system import FileSource, FileSourceBuilder
from eventide.connectors.file_system.files import FileTree
from eventide.connectors.file_system.format import points_in_time
from eventide.connectors.kafka import KafkaOffsetsInitializer, KafkaRecordDeserializationSchema, KafkaSource
from eventide.errors import DataError, ProgramError
from eventide.pickling.pickles import dumps, loads, register
from eventide.runtime.chain.outputs import cannot_be_read
from eventide.runtime.chain.timestamps import checked_column
from eventide.runtime.observation.histograms import DurationHistogram, Ints

_ONE = "all"
_ROWS_AT_A_TIME = 1 << 20

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""Unit of whole numbers: seconds, milliseconds, microseconds or nanoseconds since the epoch."""

_FURTHEST_MS = 1 << 51  # lengths between two times must be whole numbers of a float: the year 73,000
_FORMATS: dict[str, Callable[..., FileSourceBuilder]] = {
    "parquet": FileSource.parquet,
    "orc": FileSource.orc,
    "csv": FileSource.csv,
    "json": FileSource.json_lines,
}
_ENDINGS = {"jsonl": "json", "ndjson": "json", "pq": "parquet"}
_COMPRESSED = {"gz", "bz2", "zst", "zstd", "lz4", "snappy"}
_AT_ONCE = 2
_AHEAD = 4
_TIME = "time"
_AT_A_TIME = 1 << 18


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Which columns say what.

    Args:
        time: the event time.
        split_by: the columns that tell splits apart; nothing: all elements are of one split.
        order_by: the order of arrival; if it holds times, they are those of arrival. None: rows are in that order.
        unit: the unit of numbers in ``time`` and ``order_by``; see :class:`TimeColumn`.
    """

    time: str
    split_by: tuple[str, ...] = ()
    order_by: str | None = None
    unit: Unit | None = None

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once."""
        return list(dict.fromkeys([self.time, *self.split_by, *([] if self.order_by is None else [self.order_by])]))


class Stretches:
    """Makes stretches of record batches that have the columns.

    Attributes:
        order_is_time: whether the order of arrival is one of times, as far as has been seen; numbers are places in a
            log, say.
    """

    def __init__(self, columns: ColumnRoles) -> None:
        self.order_is_time = False
        self._columns = columns
        self._time = TimeColumn(columns.time, columns.unit)
        self._arrival = None if columns.order_by is None else TimeColumn(columns.order_by, columns.unit)

    def of(self, batch: pa.RecordBatch) -> Stretch:
        """The rows of a batch that have a time; ``clock`` is whatever ``order_by`` holds, as numbers.

        Raises:
            DataError: if a column does not say what it should; see :meth:`TimeColumn.times`.
        """
        times, nulls = batch.column(self._columns.time), 0
        if times.null_count:
            nulls = times.null_count
            batch = batch.filter(times.is_valid())
            times = batch.column(self._columns.time)
        names, places = self._splits(batch)
        return Stretch(self._time.times(times), names, places, self._order(batch), nulls)

    def _order(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        if self._arrival is None:
            return None
        order = batch.column(self._arrival.column)
        if order.null_count:
            raise DataError(
                f"the column {self._arrival.column!r} is null in {order.null_count:,} rows, so that it is not known "
                "when these arrived; order by a column that all rows have"
            )
        if pa.types.is_integer(order.type):
            found: npt.NDArray[np.int64] = order.cast(pa.int64()).to_numpy()
            return found
        self.order_is_time = True
        return self._arrival.times(order)

    def _splits(self, batch: pa.RecordBatch) -> tuple[list[str], npt.NDArray[np.int32]]:
        columns = [batch.column(name) for name in self._columns.split_by]
        if not columns:
            return [_ONE], np.zeros(len(batch), np.int32)
        texts = [pc.fill_null(column.cast(pa.string()), "null") for column in columns]
        whole = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, ", ")
        encoded = whole.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def in_order(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """All elements by their clock, those of one time in the order in which they came.

    What is not in order already is sorted in memory, which takes some 50 bytes for each element.
    """
    gathered = list(stretches)
    if not gathered:
        return
    clock = np.concatenate([_clock(one) for one in gathered])
    order = None if np.all(clock[1:] >= clock[:-1]) else np.argsort(clock, kind="stable")
    nulls = sum(one.nulls for one in gathered)
    names, places = _together(gathered)
    times = np.concatenate([one.times for one in gathered])
    gathered.clear()
    for start in range(0, max(len(times), 1), _ROWS_AT_A_TIME):
        these = slice(start, start + _ROWS_AT_A_TIME) if order is None else order[start : start + _ROWS_AT_A_TIME]
        yield Stretch(times[these], names, places[these], clock[these], 0 if start else nulls)


@dataclass(slots=True)
class TimeColumn:
    """The form in which one column holds times.

    Args:
        column: its name.
        unit: the unit of its numbers; None if the first of them shows it: milliseconds, and numbers
            that would be a date of these decades in another unit are an error.
    """

    column: str
    unit: Unit | None = None
    _is_checked: bool = False

    def __post_init__(self) -> None:
        if self.unit not in (*UNIT_NAMES, None):
            raise ProgramError(f"unit: expected one of {', '.join(map(repr, UNIT_NAMES))}, got {self.unit!r}")

    def times(self, values: pa.Array) -> Ints:
        """The values as milliseconds.

        Args:
            values: timestamps (those without a zone are UTC), text in ISO 8601 (the same), or whole numbers; no nulls.

        Raises:
            DataError: if they are something else, count another unit, or are out of range.
        """
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = self._points_in_time(values)
        if pa.types.is_integer(values.type):
            values = self._in_milliseconds(values)
        elif not pa.types.is_timestamp(values.type):
            raise DataError(
                f"the column {self.column!r} has the type {values.type}, and not times; it must have timestamps, text "
                "in ISO 8601, or whole numbers of milliseconds since the epoch"
            )
        found: Ints = checked_column(values).to_numpy()
        if len(found) and max(int(found.max()), -int(found.min())) > _FURTHEST_MS:
            raise DataError(f"the column {self.column!r} has times beyond the year 73,000, such as {found.max()} ms")
        return found

    def _points_in_time(self, texts: pa.Array) -> pa.Array:
        try:
            return points_in_time(texts, pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid as error:
            raise DataError(f"the column {self.column!r} has text that is not a time in ISO 8601: {error}") from error

    def _in_milliseconds(self, numbers: pa.Array) -> pa.Array:
        per_s = PER_S[self.unit or "ms"]
        try:
            numbers = pc.multiply_checked(numbers.cast(pa.int64()), max(PER_S["ms"] // per_s, 1))
        except pa.ArrowInvalid as error:
            raise DataError(f"the column {self.column!r} has times beyond the year 73,000: {error}") from error
        if self.unit is None and not self._is_checked and len(numbers):
            self._check_unit(numbers)
        if per_s <= PER_S["ms"]:
            return numbers
        return pa.array(np.floor_divide(numbers.to_numpy(), per_s // PER_S["ms"]))

    def _check_unit(self, numbers: pa.Array) -> None:
        middle = int(np.median(numbers.to_numpy()))
        unit = other_unit_of(middle)
        if unit is not None:
            raise DataError(
                f"the numbers of the column {self.column!r} look like {UNIT_NAMES[unit]}: {middle} is "
                f"{moment(middle * 1_000 // PER_S[unit])} in {UNIT_NAMES[unit]}, and "
                f"{_in_milliseconds_that_is(middle)} in milliseconds, which eventide counts. If they are "
                f"{UNIT_NAMES[unit]}, say so with unit={unit!r} (--unit {unit}), and convert them in the job too; "
                "unit='ms' takes them as they are"
            )
        self._is_checked = True


def _clock(stretch: Stretch) -> npt.NDArray[np.int64]:
    if stretch.clock is None:
        raise DataError("there is no order of arrival to sort by")
    return stretch.clock


def _together(stretches: Sequence[Stretch]) -> tuple[list[str], npt.NDArray[np.int32]]:
    numbers: dict[str, int] = {}
    places = []
    for one in stretches:
        places.append(np.array([numbers.setdefault(name, len(numbers)) for name in one.names], np.int32)[one.places])
    return list(numbers), np.concatenate(places)


def _in_milliseconds_that_is(number: int) -> str:
    text = moment(number)
    return "far beyond the year 9999" if text.endswith(" ms") else text


def read_files(paths: Sequence[str], columns: ColumnRoles, format: str | None, watch: Watch) -> Iterator[Stretch]:
    """The rows of the files below some paths.

    Args:
        paths: files and directories: local paths, or URIs that Arrow knows.
        columns: which columns say what.
        format: "parquet", "orc", "csv" or "json"; None: the ending of the first file says it.
        watch: is told how far it is.

    Raises:
        ProgramError: if there are no files, the format is not known, or a column is not there.
        DataError: if a file cannot be read, or a column does not say what it should.
    """
    source = _source(paths, columns, format)
    parts = sorted(source.parts({}))
    ends = source.ends(parts)
    watch.expect(len(parts))
    made = Stretches(columns)

    def read(part: str) -> Iterator[Stretch]:
        for batch in source.read(part, 0, ends[part]):
            yield made.of(batch)

    stretches = _ahead(parts, read, watch)
    if columns.order_by is None:
        yield from stretches
        return
    for stretch in in_order(stretches):
        yield stretch if made.order_is_time else replace(stretch, clock=None)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of Kafka, which is read from its earliest records to its present end.

    Args:
        servers: The brokers to ask first, such as ``"localhost:9092"``.
        name: The topic.
        properties: More settings of the client, such as how to log in; see ``KafkaSourceBuilder.set_properties``.

    >>> Topic("localhost:9092", "orders").name
    'orders'
    """

    servers: str
    name: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


class _RecordTimes(KafkaRecordDeserializationSchema):
    """The timestamps of records, and nothing of their values."""

    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([records.column("timestamp")], [_TIME])

    def get_produced_type(self) -> TypeInformation:
        return Types.ROW_NAMED([_TIME], [Types.LONG()])


class TimeField(_RecordTimes):
    """The times in one field of JSON values, null where there is none."""

    def __init__(self, name: str, unit: Unit | None) -> None:
        self._name = name
        self._clock = TimeColumn(name, unit)

    def deserialize_batch(self, records: pa.RecordBatch) -> pa.RecordBatch:
        values = pa.array(map(self._value, records.column("value").to_pylist()))
        there = values.is_valid()
        times = np.zeros(len(values), np.int64)
        if there.true_count:
            times[there.to_numpy(zero_copy_only=False)] = self._clock.times(values.drop_null())
        column = pa.array(times, mask=~there.to_numpy(zero_copy_only=False))
        return pa.RecordBatch.from_arrays([column], [_TIME])

    def _value(self, message: bytes | None) -> object:
        import msgspec

        found = None if message is None else msgspec.json.decode(message)
        return found.get(self._name) if isinstance(found, dict) else None


def read_topic(topic: Topic, columns: ColumnRoles, watch: Watch) -> Iterator[Stretch]:
    """The records of a topic.

    Partitions have no order among each other. Where the event time is a field, records are taken in the order of their
    timestamps, which is that of their arrival. Where it is that timestamp itself, partitions are compared as if they
    were read at one pace: at the same share of their records.

    Raises:
        ProgramError: if other columns than the time are named, or Kafka refuses the client.
        DataError: if the topic cannot be read, or the field does not say a time.
    """
    if columns.split_by or columns.order_by is not None:
        raise ProgramError("the splits of a topic are its partitions, in their order: leave out split_by and order_by")
    source = _source_of(topic, columns)
    try:
        parts = source.parts({})
        starts = {part: beginning.start for part, beginning in source.beginnings(parts).items()}
        ends = source.ends(parts)
        read = _records(source, [PartRange(part, starts[part], ends[part]) for part in parts], watch)
        if columns.time:
            yield from in_order(read)
        else:
            yield from _at_one_pace(list(read))
        yield Stretch(np.array([], np.int64), parts, np.array([], np.int32))
    finally:
        source.stop()


def measure_frame(frame: Any, columns: ColumnRoles) -> Disorder:
    """Measure a DataFrame, with Spark: its rows are sorted into stretches, and each of these is read twice.

    First it is found out where each stretch leaves the splits, and then it is measured with what those before it have
    left; so all is as exact as in one pass over the whole.

    Raises:
        ProgramError: if the DataFrame is a stream, or no order of arrival is named.
        DataError: if a column does not say what it should.
    """
    from eventide.spark.query.data_frame import OrderedStretches

    if columns.order_by is None:
        raise ProgramError(
            "the rows of a DataFrame have no order; name the column that has the order of arrival: order_by="
        )
    register((Disorder, Fronts, DurationHistogram, Split))
    with OrderedStretches(frame, columns.names, columns.order_by) as stretches:
        before, fronts = Fronts({}, {}), {}
        for place, left in stretches.map(lambda _, batches: dumps(_metered(batches, columns).fronts)).items():
            fronts[place] = before
            before = before.followed_by(loads(left))
        disorder = Disorder()
        for found in stretches.map(
            lambda place, batches: dumps(_metered(batches, columns, fronts.get(place)).disorder)
        ).values():
            disorder.follow(loads(found))
    return disorder


class Watch:
    """Shows rows and files on standard error while it is open; nothing where that is not a terminal.

    >>> with Watch() as watch:
    ...     watch.rows_read(5)
    >>> watch.rows
    5
    """

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("reading", total=None)
        self.rows = self._files = self._all_files = 0

    def expect(self, files: int) -> None:
        """Say how many files there are."""
        self._all_files = files
        self._progress.update(self._task, total=files if files > 1 else None)

    def rows_read(self, rows: int) -> None:
        """Say that so many more rows have been read."""
        self.rows += rows
        self._show()

    def file_read(self) -> None:
        """Say that one more file has been read."""
        self._files += 1
        self._progress.update(self._task, advance=1)
        self._show()

    def _show(self) -> None:
        files = f", {self._files:,} of {count(self._all_files, 'file')}" if self._all_files else ""
        self._progress.update(self._task, description=f"{count(self.rows, 'row')}{files}")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


def _source(paths: Sequence[str], columns: ColumnRoles, format: str | None) -> FileSource:
    found = list(FileTree(paths).list())
    if not found:
        raise ProgramError(f"there are no files below {', '.join(paths)}; name files, or a directory that has some")
    source = _FORMATS[_format(found[0], format)](*paths).build()
    produced = source.get_produced_type()
    there = produced.field_names if isinstance(produced, RowTypeInfo) else []
    missing = [name for name in columns.names if name not in there]
    if missing:
        raise ProgramError(f"the file {found[0]} has no column {missing[0]!r}; it has {', '.join(there) or 'none'}")
    return source.with_columns(columns.names)


def _format(path: str, declared: str | None) -> str:
    if declared in _FORMATS:
        return declared
    if declared is not None:
        raise ProgramError(f"format: expected one of {', '.join(map(repr, _FORMATS))}, got {declared!r}")
    endings = path.rpartition("/")[2].lower().split(".")[1:]
    found = next((_ENDINGS.get(one, one) for one in reversed(endings) if one not in _COMPRESSED), "")
    if found not in _FORMATS:
        raise ProgramError(
            f"the name of {path} does not end with the name of a format; say which it is: format= (--format), one of "
            f"{', '.join(_FORMATS)}"
        )
    return found


def _ahead(parts: Iterable[str], read: Callable[[str], Iterator[Stretch]], watch: Watch) -> Iterator[Stretch]:
    """Read each part, in the order of parts, while threads read this one and the next one further."""
    with ThreadPoolExecutor(_AT_ONCE, "eventide advise") as threads:

        def more_of(rest: Iterator[Stretch]) -> tuple[Iterator[Stretch], Future[list[Stretch]]]:
            return rest, threads.submit(lambda: list(islice(rest, _AHEAD)))

        begun = map(more_of, map(read, parts))
        reading = deque(islice(begun, _AT_ONCE))
        while reading:
            rest, found = reading.popleft()
            if stretches := found.result():
                reading.appendleft(more_of(rest))
            else:
                watch.file_read()
                reading.extend(islice(begun, 1))
            for stretch in stretches:
                watch.rows_read(len(stretch.times))
                yield stretch


def _source_of(topic: Topic, columns: ColumnRoles) -> KafkaSource:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(topic.servers)
        .set_topics(topic.name)
        .set_properties(dict(topic.properties))
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_deserializer(TimeField(columns.time, columns.unit) if columns.time else _RecordTimes())
        .build()
    )


def _records(source: KafkaSource, ranges: list[PartRange], watch: Watch) -> Iterator[Stretch]:
    for part, items in source.read_together(ranges):
        for item in items:
            if isinstance(item, Unreadable):
                raise cannot_be_read(item) from item.error
            if not isinstance(item, TimestampedBatch):
                continue
            times, written = item.rows.column(0), item.timestamps
            nulls = times.null_count
            if nulls:
                written, times = written.filter(times.is_valid()), times.drop_null()
            watch.rows_read(len(times))
            places = np.zeros(len(times), np.int32)
            yield Stretch(times.to_numpy(), [part], places, written.to_numpy(), nulls)


def _at_one_pace(read: list[Stretch]) -> Iterator[Stretch]:
    """Partitions side by side, each from its beginning to its end."""
    rows: dict[str, int] = {}
    for one in read:
        rows[one.names[0]] = rows.get(one.names[0], 0) + len(one.times)
    begun = dict.fromkeys(rows, 0)
    paced = []
    for one in read:
        name = one.names[0]
        place = begun[name] + np.arange(len(one.times))
        begun[name] += len(one.times)
        share = (place * (1 << 40) // max(1, rows[name])).astype(np.int64)
        paced.append(Stretch(one.times, one.names, one.places, share, one.nulls))
    for one in in_order(paced):
        yield Stretch(one.times, one.names, one.places, None, one.nulls)


def _metered(batches: Iterator[pa.RecordBatch], columns: ColumnRoles, fronts: Fronts | None = None) -> DisorderMeter:
    meter, made = DisorderMeter(fronts), Stretches(columns)
    for batch in _gathered(batches):
        stretch = made.of(batch)
        meter.take(stretch if made.order_is_time else replace(stretch, clock=None))
    return meter


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark hands over ten thousand rows at a time; work for each stretch and split is better done seldom."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _AT_A_TIME:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
