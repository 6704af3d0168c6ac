"""Functions with state and timers: what they cost beside those of PySpark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks.bench import Bench
from benchmarks.data import FILES_PER_BATCH, SCHEMA, DataSet
from benchmarks.figures import Figure
from benchmarks.queries import DISORDER_S, environment, started, submitted
from eventide.common import Duration, Types, WatermarkStrategy
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource
from eventide.datastream.functions import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
)
from eventide.datastream.state import MapStateDescriptor, ValueStateDescriptor

_KEYS = (1_000, 100_000, 1_000_000)
_QUIET_MS = 60_000
_EVENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
_QUIET = Types.TUPLE([Types.STRING(), Types.LONG()])
_LAST = ValueStateDescriptor("last", Types.LONG())
_RULES = MapStateDescriptor("rules", Types.LONG(), Types.LONG())
_RULE_COUNT = 10


class Quiet(KeyedProcessFunction):
    """Tells of keys that have been quiet for a minute: the last time in a state, and a timer for each element."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(_LAST)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        at, known = ctx.timestamp(), self.last.value()
        if known is None or at > known:
            self.last.update(at)
        ctx.timer_service().register_event_time_timer(at + _QUIET_MS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[tuple[str, int]]:
        if timestamp == self.last.value() + _QUIET_MS:
            yield ctx.get_current_key(), timestamp


class QuietBySpark(StatefulProcessor):
    """Quiet keys with PySpark's state and timers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._last = handle.getValueState("last", "at LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        for row in rows:
            known = self._last.get()
            if known is None or row.at > known[0]:
                self._last.update((row.at,))
            self._handle.registerTimer(row.at + _QUIET_MS)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        at = expiredTimerInfo.getExpiryTimeInMs()
        if at == self._last.get()[0] + _QUIET_MS:
            yield Row(user=key[0], at=at)

    def close(self) -> None:
        pass


def quiet_keys(bench: Bench) -> list[Figure]:
    """A KeyedProcessFunction with a ValueState and an event-time timer for each element."""
    figures = []
    for keys in _KEYS:
        data = DataSet(keys, bench.sizes.few_batches, bench.sizes.function_rows)
        rate, beside = (_quiet(bench, data, side, start) for side, start in _SIDES.items())
        figures.append(Figure(f"{keys:,} keys", "rows/s", rate, beside, "transformWithState", least=10))
    return figures


def quiet_keys_by_itself(bench: Bench) -> list[Figure]:
    """Quiet keys in larger micro-batches, with nothing beside them, 1,000 keys."""
    data = DataSet(_KEYS[0], bench.sizes.few_batches, bench.sizes.join_rows)
    files = bench.files(data)
    runs = bench.in_turn({f"{data.name}, quiet keys": lambda place: _by_eventide(bench, files, place)})
    [of_eventide] = runs.values()
    _check(bench, files, bench.spark.read.parquet(str(of_eventide[-1].output)).toDF("user", "at"))
    bench.clear(of_eventide[-1])
    rate = max(bench.throughput(run, data) for run in of_eventide)
    return [Figure(f"{_KEYS[0]:,} keys", "rows/s", rate, least=300_000)]


def _quiet(bench: Bench, data: DataSet, side: str, start: Callable[[Bench, Path, Path], StreamingQuery]) -> float:
    """Rows a second on one side, after a check of its results."""
    files = bench.files(data)
    run = bench.run(f"{data.name}, quiet keys, {side}", lambda place: start(bench, files, place))
    _check(bench, files, bench.spark.read.parquet(str(run.output)).toDF("user", "at"))
    rate = bench.throughput(run, data)
    bench.clear(run)
    return rate


def _by_eventide(bench: Bench, files: Path, place: Path) -> StreamingQuery:
    env = environment(bench.spark, place)
    quiet = _events(env, files).key_by(lambda event: event[0], Types.STRING()).process(Quiet(), _QUIET)
    return submitted(env, quiet, place)


def _by_spark(bench: Bench, files: Path, place: Path) -> StreamingQuery:
    rows = bench.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(str(files))
    timed = rows.withWatermark("ts", f"{DISORDER_S} seconds").select("user", "ts", F.unix_millis("ts").alias("at"))
    quiet = timed.groupBy("user").transformWithState(QuietBySpark(), "user STRING, at LONG", "Append", "EventTime")
    return started(bench.spark, quiet, place)


_SIDES = {"eventide": _by_eventide, "transformWithState": _by_spark}


def _check(bench: Bench, files: Path, found: DataFrame) -> None:
    """Check that every key that is told of was quiet, and that none is told of twice for one time.

    Which ones are told of depends on when a watermark comes between two elements of a key, so the sides may differ.
    """
    rows = bench.spark.read.schema(SCHEMA).parquet(str(files)).select("user", F.unix_millis("ts").alias("time"))
    following = F.lead("time").over(Window.partitionBy("user").orderBy("time"))
    gaps = rows.withColumn("next", following).where(F.expr(f"next is null or next > time + {_QUIET_MS}"))
    quiet = gaps.select("user", (F.col("time") + _QUIET_MS).alias("at"))
    if wrong := found.exceptAll(quiet).head(3):
        raise ValueError(f"these keys were not quiet: {wrong}")


class Follows(KeyedCoProcessFunction):
    """Keeps the last value of the second stream, and gives elements of the first with it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(_LAST)

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[tuple[str, int]]:
        yield value[0], value[2] + (self.last.value() or 0)

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> None:
        self.last.update(value[2])


class Ruled(KeyedBroadcastProcessFunction):
    """Looks up the rule for each element."""

    def process_element(
        self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[tuple[str, int]]:
        factor = ctx.get_broadcast_state(_RULES).get(value[2] % _RULE_COUNT)
        yield value[0], value[2] * (factor or 0)

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(_RULES).put(value[0], value[1])


def two_inputs(bench: Bench) -> list[Figure]:
    """Connected streams, and rules that are broadcast, 1,000 keys."""
    one = DataSet(1_000, bench.sizes.few_batches, bench.sizes.join_rows)
    other = DataSet(1_000, bench.sizes.few_batches, bench.sizes.join_rows, other=True)
    files = bench.files(one), bench.files(other)

    def connected(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place)
        first, second = (_events(env, folder).key_by(lambda event: event[0], Types.STRING()) for folder in files)
        return submitted(env, first.connect(second).process(Follows(), _QUIET), place)

    def broadcast(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place)
        rules = env.from_collection([(number, number) for number in range(_RULE_COUNT)]).broadcast(_RULES)
        keyed = _events(env, files[0]).key_by(lambda event: event[0], Types.STRING())
        return submitted(env, keyed.connect(rules).process(Ruled(), _QUIET), place)

    both, ruled = (bench.run(f"{one.name}, {what}", start) for what, start in
                   (("connected", connected), ("broadcast", broadcast)))  # fmt: skip
    rates = 2 * bench.throughput(both, one), bench.throughput(ruled, one)
    values = bench.spark.read.schema(SCHEMA).parquet(str(files[0])).agg(F.sum(F.expr("value * (value % 10)"))).first()
    if bench.spark.read.parquet(str(ruled.output)).toDF("user", "value").agg(F.sum("value")).first() != values:
        raise ValueError("rules that are broadcast gave other sums than Spark")
    rows = bench.spark.read.parquet(str(both.output)).count()
    if rows != one.batches * one.rows_per_batch:
        raise ValueError(f"connected streams gave {rows} rows")
    bench.clear(both, ruled)
    return [
        Figure("connected streams, a KeyedCoProcessFunction with state", "rows/s", rates[0], least=300_000),
        Figure("broadcast rules, a KeyedBroadcastProcessFunction", "rows/s", rates[1], least=300_000),
    ]


def _events(env: StreamExecutionEnvironment, files: Path) -> DataStream:
    """Tuples of user, time in microseconds and value, as Python sees them."""
    source = FileSource.parquet(str(files), type_info=_EVENT).set_max_files_per_batch(FILES_PER_BATCH).build()
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(DISORDER_S))
    timed = bounded.with_timestamp_assigner(lambda event, _: event[1] // 1_000)
    return env.from_source(source, timed, files.name)
