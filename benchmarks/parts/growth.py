"""Cost of a micro-batch that touches few keys, as the number of keys with state grows."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.queries import PARALLELISM, environment, query_of
from eventide.aggregates import count, sum_
from eventide.common import Duration, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import (
    EventTimeSessionWindows,
    GlobalWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from eventide.spark.host import settings_for_start
from eventide.spark.session.make import ROW_COUNT

_SPARK = "sums by key"
_FEW = 100
_PER_FILE = 250_000
_DAY_MS = 24 * 60 * 60 * 1_000
_START_MS = 19_675 * _DAY_MS
_BATCHES = 5
"""How many micro-batches of a kind; the first is not counted."""
_MOST_FOR_PERCENT = 1_000_000
"""With more keys than this, only few are touched."""
_SCHEMA = "key LONG, value LONG, ts LONG"
_PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
_NOTES = ValueStateDescriptor("n", Types.LONG())


@dataclass(frozen=True)
class Cost:
    """Cost of a micro-batch: its time, the CPU time of the JVM and all Python workers, and what it writes."""

    ms: float
    cpu_ms: float
    kilobytes: float


def growth(bench: Bench) -> list[Figure]:
    """State of many keys, of which a micro-batch touches 100, or 1%, or to which it adds many new ones."""
    sizes = bench.sizes.growth
    _costs(bench, sizes[0])  # not counted: meanwhile the JVM compiles what all of them run
    costs = {keys: _costs(bench, keys) for keys in sizes}
    figures: list[Figure] = []
    for keys, of_size in costs.items():
        for name in STREAMS:
            for kind, ours in of_size[name].items():
                spark = of_size[_SPARK][kind]
                touched = f"{_PER_FILE:,} new" if kind == "new" else f"{_kinds(keys)[kind]:,}"
                what = f"{name}, {touched} of {keys:,} keys"
                figures += [
                    Figure(what, "ms", ours.ms, spark.ms, _SPARK),
                    Figure(what, "CPU ms", ours.cpu_ms, spark.cpu_ms, _SPARK),
                    Figure(f"{what}: written", "kB", ours.kilobytes, spark.kilobytes),
                ]
    fewest, most_keys = sizes[0], sizes[-1]
    for name in STREAMS:
        before, after = costs[fewest][name]["few"].cpu_ms, costs[most_keys][name]["few"].cpu_ms
        what, beside = f"{name}, {_FEW} of {most_keys:,} keys", f"{_FEW} of {fewest:,}"
        figures.append(Figure(what, "CPU ms", after, before, beside, most=2.0))
    return figures


def _costs(bench: Bench, keys: int) -> dict[str, dict[str, Cost]]:
    """Costs of Spark and each stream, by what is touched, when there are `keys` keys."""
    files = bench.place / "data" / f"growth-{keys}"
    _write(files, keys)
    starters = {_SPARK: by_spark} | {name: _starter(build) for name, build in STREAMS.items()}
    costs = {name: _measured(bench, f"{keys:,} keys, {name}", files, keys, start) for name, start in starters.items()}
    shutil.rmtree(files)
    return costs


def _kinds(keys: int) -> dict[str, int]:
    """How many keys a micro-batch touches, by a name for it; always ending with few."""
    percent = {"1%": keys // 100} if keys // 100 > _FEW and keys <= _MOST_FOR_PERCENT else {}
    return percent | {"few": _FEW}


def _write(folder: Path, keys: int) -> None:
    """Files of one micro-batch each: all keys, then 1% of them several times, then 100."""
    kinds = _kinds(keys)
    folder.mkdir(parents=True)
    random = np.random.default_rng(keys)
    everyone = random.permutation(keys)
    parts = [everyone[start : start + _PER_FILE] for start in range(0, keys, _PER_FILE)]
    again = [random.choice(keys, number, replace=False) for number in kinds.values() for _ in range(_BATCHES)]
    for file, part in enumerate([*parts, *again, everyone[:1]]):  # with the last one the source ends
        first_ms = _START_MS + (0 if file < len(parts) else 600_000)
        times = np.sort(first_ms + random.integers(0, 600_000, len(part)))
        path = folder / f"part-{file:04d}.parquet"
        pq.write_table(pa.table({"key": part, "value": random.integers(0, 1_000, len(part)), "ts": times}), path)
        os.utime(path, (_START_MS // 1_000 + file,) * 2)


def _measured(
    bench: Bench, what: str, files: Path, keys: int, start: Callable[[SparkSession, Path, Path], StreamingQuery]
) -> dict[str, Cost]:
    """Run a query up to the micro-batch in which its source ends."""
    kinds = _kinds(keys)
    before = -(-keys // _PER_FILE)
    last = before + len(kinds) * _BATCHES - 1
    place = bench.place / f"growth-{time.monotonic_ns()}"
    query = start(bench.spark, files, place)
    spent: dict[int, float] = {}
    took: dict[int, float] = {}
    while query.isActive and last not in spent:
        time.sleep(0.02)
        progress = query.lastProgress
        if progress is not None and progress.batchId not in spent:
            spent[progress.batchId] = _cpu_seconds()
            took[progress.batchId] = progress.durationMs["triggerExecution"]
    query.stop()
    if last not in spent:
        raise RuntimeError(f"{what}: the query ended in micro-batch {max(spent, default=-1)}: {query.exception()}")
    written = written_by_batch(place / "checkpoint")
    shutil.rmtree(place)
    costs = {}
    firsts = {kind: before + place_of_kind * _BATCHES for place_of_kind, kind in enumerate(kinds)}
    if before > _BATCHES:
        firsts["new"] = before - _BATCHES
    for kind, first in firsts.items():
        counted = range(first + 1, first + _BATCHES)
        known = [batch for batch in spent if first <= batch < first + _BATCHES]
        costs[kind] = Cost(
            statistics.median(took[batch] for batch in counted if batch in took),
            (spent[max(known)] - spent[min(known)]) / (max(known) - min(known)) * 1_000,
            statistics.median(written.get(batch + 1, 0) for batch in counted) / 1_000,
        )
    said = (f"{k} {c.ms:,.0f} ms {c.cpu_ms:,.0f} CPU ms {c.kilobytes:,.0f} kB" for k, c in costs.items())
    bench.say(f"{what}: {', '.join(said)}")
    return costs


def _cpu_seconds() -> float:
    """CPU time so far of all processes below this one: the JVM, and the Python workers below it."""
    import psutil  # late: it is not needed to know which parts there are

    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has just ended
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def written_by_batch(checkpoint: Path) -> dict[int, int]:
    """Bytes of state that were logged, by the version that they lead to, over all partitions."""
    sizes: dict[int, int] = {}
    for path in (checkpoint / "state").rglob("*.changelog"):
        version = int(path.name.split(".")[0].split("_")[0])
        sizes[version] = sizes.get(version, 0) + path.stat().st_size
    return sizes


def _tumbling(rows: DataStream) -> DataStream:
    windows = rows.map(_pair, _PAIR).key_by(_first, Types.LONG()).window(TumblingEventTimeWindows.of(Time.days(1)))
    return windows.reduce(_sum)


def _sessions(rows: DataStream) -> DataStream:
    windows = rows.map(_pair, _PAIR).key_by(_first, Types.LONG()).window(EventTimeSessionWindows.with_gap(_DAY_MS // 2))
    return windows.reduce(_sum)


def _column_sessions(rows: DataStream) -> DataStream:
    return rows.key_by("key").window(EventTimeSessionWindows.with_gap(_DAY_MS // 2)).aggregate(count(), sum_("value"))


def _with_timers(rows: DataStream) -> DataStream:
    windows = rows.map(_pair, _PAIR).key_by(_first, Types.LONG()).window(GlobalWindows.create())
    return windows.trigger(CountsAndWaits()).reduce(_sum)


def _rolling(rows: DataStream) -> DataStream:
    return rows.key_by("key").max_by("ts")


STREAMS: dict[str, Callable[[DataStream], DataStream]] = {
    "rolling, max_by": _rolling,
    "tumbling, reduce": _tumbling,
    "sessions, reduce": _sessions,
    "sessions on columns": _column_sessions,
    "state and timers": _with_timers,
}


def _pair(row: Any) -> tuple[int, int]:
    return row["key"], row["value"]


def _first(pair: tuple[int, int]) -> int:
    return pair[0]


def _sum(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0], a[1] + b[1]


class CountsAndWaits(Trigger[Any, Any]):
    """Counts the elements of a key in a state of its own, and sets a timer a day after the first one."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """One more."""
        state = ctx.get_partitioned_state(_NOTES)
        known = state.value()
        if known is None:
            ctx.register_event_time_timer(timestamp + _DAY_MS)
        state.update((known or 0) + 1)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Nothing waits for the clock."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A day is over."""
        return TriggerResult.FIRE_AND_PURGE

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Forget the count."""
        ctx.get_partitioned_state(_NOTES).clear()


def _starter(build: Callable[[DataStream], DataStream]) -> Callable[[SparkSession, Path, Path], StreamingQuery]:
    def start(spark: SparkSession, files: Path, place: Path) -> StreamingQuery:
        env = environment(spark, place)
        behind = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1)).with_timestamp_assigner("ts")
        source = FileSource.parquet(str(files)).set_max_files_per_batch(1).build()
        build(env.from_source(source, behind, "rows")).sink_to(FormatSink("noop", {}))
        return query_of(env)

    return start


def by_spark(spark: SparkSession, files: Path, place: Path) -> StreamingQuery:
    """A count and a sum for each key, which Spark keeps without Python."""
    rows = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(files))
    sums = rows.groupBy("key").agg(F.count("*"), F.sum("value"))
    with settings_for_start(spark, PARALLELISM):
        spark.conf.set(ROW_COUNT, "true")  # as Spark has it
        writer = sums.writeStream.format("noop").outputMode("update")
        return writer.option("checkpointLocation", str(place / "checkpoint")).start()
