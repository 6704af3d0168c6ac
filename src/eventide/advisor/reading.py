"""Reading of data as stretches: files, topics of Kafka, and DataFrames of Spark."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Self

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from eventide.advisor.disorder import Disorder, DisorderMeter, Fronts, Split, Stretch
from eventide.advisor.time_columns import ColumnRoles, Stretches, TimeColumn, Unit, in_order
from eventide.api.source import PartRange, TimestampedBatch, Unreadable
from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.common.words import count
from eventide.connectors.file_system import FileSource, FileSourceBuilder
from eventide.connectors.file_system.files import FileTree
from eventide.connectors.kafka import KafkaOffsetsInitializer, KafkaRecordDeserializationSchema, KafkaSource
from eventide.errors import ProgramError
from eventide.pickling.pickles import dumps, loads, register
from eventide.runtime.chain.outputs import cannot_be_read
from eventide.runtime.observation.histograms import DurationHistogram

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
