"""Cost of a micro-batch that has almost nothing in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench, Start
from benchmarks.data import in_small_files
from benchmarks.figures import Figure
from benchmarks.queries import OURS, SIDES, TUMBLING, Job, environment, submitted
from eventide.aggregates import count, sum_
from eventide.common import Time
from eventide.datastream.connectors import FileSource
from eventide.datastream.window import TumblingEventTimeWindows

_OPERATORS = (1, 5, 20)


def almost_empty(bench: Bench) -> list[Figure]:
    """Micro-batches of one row, through one window operator."""
    job = Job(_small_files(bench), TUMBLING, files_per_batch=1)
    starts = {side: lambda place, start=start: start(bench.spark, job, place) for side, start in SIDES.items()}
    best = _best_ms(bench, starts)
    return [Figure(side, "ms", best[side], best["Spark"], most=1.15) for side in OURS]


def side_by_side(bench: Bench) -> list[Figure]:
    """Micro-batches of one row, through 1, 5 and 20 window operators on one source."""
    job = Job(_small_files(bench), TUMBLING, files_per_batch=1)
    names = {n: f"{n} operator(s)" for n in _OPERATORS}
    best = _best_ms(bench, {name: lambda place, n=n: _windows(bench, job, n, place) for n, name in names.items()})
    return [Figure(name, "ms", best[name], best[names[1]], "one operator", most=1.25) for name in names.values()]


def _windows(bench: Bench, job: Job, operators: int, place: Path) -> StreamingQuery:
    """Start `operators` windows of different lengths, whose results go into one sink."""
    env = environment(bench.spark, place)
    source = FileSource.parquet(str(job.files)).set_max_files_per_batch(job.files_per_batch).build()
    users = env.from_source(source, job.strategy(), "events").key_by("user")
    results = [
        users.window(TumblingEventTimeWindows.of(Time.seconds(5 + length))).aggregate(
            sum_("value").alias("total"), count().alias("n")
        )
        for length in range(operators)
    ]
    return submitted(env, results[0].union(*results[1:]) if operators > 1 else results[0], place)


def _small_files(bench: Bench) -> Path:
    files = bench.place / "data" / "small"
    if not files.exists():
        in_small_files(files, bench.sizes.small_batches, step_ms=250)
    return files


def _best_ms(bench: Bench, starts: Mapping[str, Start]) -> dict[str, float]:
    batches = bench.sizes.small_batches
    best = {}
    for what, runs in bench.in_turn(starts).items():
        best[what] = min(run.steady(batches // 3, batches) for run in runs) * 1_000
        bench.clear(*runs)
    return best
