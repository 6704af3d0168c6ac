"""How many micro-batches three windows in a row need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.data import in_small_files
from benchmarks.figures import Figure
from benchmarks.queries import DISORDER_S, PARALLELISM, TUMBLING, Job, environment, query_of
from eventide.aggregates import sum_
from eventide.common import Time
from eventide.datastream.connectors import DataFrameSink
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.spark.host import settings_for_start

_SIZES_S = (5, 10, 20)
_LAST = max(_SIZES_S) + DISORDER_S
"""The file, of a second each, in which the element comes that lets the last window close."""

Take = Callable[[DataFrame, int], None]


def chained(bench: Bench) -> list[Figure]:
    """Three windows in a row, of 5, 10 and 20 s: when the result comes."""
    files = bench.place / "data" / "chained"
    in_small_files(files, _LAST + 1, step_ms=1_000, users=10)
    job = Job(files, TUMBLING, files_per_batch=1)
    ours, our_rows = _counted(bench, "eventide", lambda place, take: _by_eventide(bench, job, place, take))
    theirs, their_rows = _counted(bench, "Spark", lambda place, take: _by_spark(bench, job, place, take))
    if our_rows != their_rows:
        raise ValueError(f"three windows in a row gave {our_rows} here and {their_rows} there")
    return [Figure("after that of the last element", "micro-batches", ours, theirs, most=0)]


def _counted(bench: Bench, side: str, start: Callable[[Path, Take], StreamingQuery]) -> tuple[int, list[Any]]:
    """How many micro-batches after the last element the first results came, and the results."""
    results: dict[int, list[Any]] = {}

    def take(rows: DataFrame, batch: int) -> None:
        if found := sorted(map(tuple, rows.select("user", "window.end", "total").collect())):
            results[batch] = found

    run = bench.run(f"three windows in a row, {side}", lambda place: start(place, take))
    bench.clear(run)
    first = min(results)
    return first - _LAST, results[first]


def _by_eventide(bench: Bench, job: Job, place: Path, take: Take) -> StreamingQuery:
    env = environment(bench.spark, place).set_available_now()
    stream = env.from_data_frame(job.read(bench.spark), job.strategy())
    for number, size in enumerate(_SIZES_S):
        sums = sum_("value" if number == 0 else "total").alias("total")
        stream = stream.key_by("user").window(TumblingEventTimeWindows.of(Time.seconds(size))).aggregate(sums)
    stream.sink_to(DataFrameSink(take))
    return query_of(env)


def _by_spark(bench: Bench, job: Job, place: Path, take: Take) -> StreamingQuery:
    rows = job.read(bench.spark).withWatermark("ts", f"{job.disorder_s} seconds")
    for number, size in enumerate(_SIZES_S):
        when = "ts" if number == 0 else F.window_time("window")
        sums = F.sum("value" if number == 0 else "total").alias("total")
        rows = rows.groupBy("user", F.window(when, f"{size} seconds").alias("window")).agg(sums)
    writer = rows.writeStream.foreachBatch(take).outputMode("append").trigger(availableNow=True)
    with settings_for_start(bench.spark, PARALLELISM):
        return writer.option("checkpointLocation", str(place / "checkpoint")).start()
