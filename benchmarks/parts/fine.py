"""Sliding windows that overlap a great many times."""

from __future__ import annotations

import statistics

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from benchmarks.bench import Bench
from benchmarks.data import in_small_files, with_the_time_before
from benchmarks.figures import Figure
from benchmarks.queries import Job, Windows, by_file_source
from eventide.common import Time
from eventide.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

_USERS = 100
_SECONDS = 1_800
_ROUNDS = 2
_KINDS = {
    "tumbling": Windows(TumblingEventTimeWindows.of(Time.seconds(1)), lambda: F.window("ts", "1 second")),
    "sliding": Windows(
        SlidingEventTimeWindows.of(Time.minutes(30), Time.seconds(1)),
        lambda: F.window("ts", "30 minutes", "1 second"),
    ),
}


def sliding_fine(bench: Bench) -> list[Figure]:
    """Sliding windows of 30 minutes by 1 second, 100 keys, beside tumbling windows of 1 second."""
    files = bench.place / "data" / "fine"
    in_small_files(files, bench.sizes.small_batches, step_ms=1_000)
    with_the_time_before(files, _SECONDS, _USERS)
    first = dict.fromkeys(_KINDS, float("inf"))
    one_row = dict(first)
    for _ in range(_ROUNDS):
        for kind, windows in _KINDS.items():
            job = Job(files, windows, files_per_batch=1)
            run = bench.run(f"{kind}, fine", lambda place, job=job: by_file_source(bench.spark, job, place))
            seconds = run.seconds[: bench.sizes.small_batches]
            first[kind] = min(first[kind], seconds[0] * 1_000)
            one_row[kind] = min(one_row[kind], statistics.median(seconds[2:]) * 1_000)
            bench.clear(run)
    return [
        Figure(what, "ms", times["sliding"], times["tumbling"], "tumbling", most=2)
        for what, times in (("first micro-batch, of 30 minutes", first), ("micro-batches of one row", one_row))
    ]
