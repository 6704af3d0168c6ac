"""Cost of a micro-batch that has almost nothing in it."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.data import in_small_files
from benchmarks.figures import Figure
from benchmarks.queries import OURS, SIDES, TUMBLING, Job, environment, submitted
from eventide.aggregates import count, sum_
from eventide.common import Time
from eventide.datastream.connectors import FileSource
from eventide.datastream.window import TumblingEventTimeWindows

_ROUNDS = 3
_OPERATORS = (1, 5, 20)


def almost_empty(bench: Bench) -> list[Figure]:
    """Micro-batches of one row, through one window operator."""
    job = Job(_small_files(bench), TUMBLING, files_per_batch=1)
    # The sides take turns, and of each the best round counts: what else runs on the machine only makes it worse.
    best = dict.fromkeys(SIDES, float("inf"))
    for _ in range(_ROUNDS):
        for side, start in SIDES.items():
            best[side] = min(
                best[side], _median_ms(bench, side, lambda place, start=start: start(bench.spark, job, place))
            )
    return [Figure(side, "ms", best[side], best["Spark"], most=1.15) for side in OURS]


def side_by_side(bench: Bench) -> list[Figure]:
    """Micro-batches of one row, through 1, 5 and 20 window operators on one source."""
    job = Job(_small_files(bench), TUMBLING, files_per_batch=1)
    best = dict.fromkeys(_OPERATORS, float("inf"))
    for _ in range(_ROUNDS):
        for operators in _OPERATORS:
            took = _median_ms(
                bench, f"{operators} operators", lambda place, n=operators: _windows(bench, job, n, place)
            )
            best[operators] = min(best[operators], took)
    return [
        Figure(f"{operators} operator(s)", "ms", best[operators], best[1], "one operator", most=1.25)
        for operators in _OPERATORS
    ]


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


def _median_ms(bench: Bench, what: str, start: Callable[[Path], StreamingQuery]) -> float:
    run = bench.run(f"almost empty, {what}", start)
    bench.clear(run)
    counted = run.seconds[bench.sizes.small_batches // 3 : bench.sizes.small_batches - 1]
    return statistics.median(counted) * 1_000
