"""What a micro-batch costs that has almost nothing in it."""

from __future__ import annotations

import statistics

from benchmarks.bench import Bench
from benchmarks.data import in_small_files
from benchmarks.figures import Figure
from benchmarks.queries import OURS, SIDES, TUMBLING, Job

_ROUNDS = 3


def almost_empty(bench: Bench) -> list[Figure]:
    """Micro-batches of one row, through one window operator."""
    files = bench.place / "data" / "small"
    in_small_files(files, bench.sizes.small_batches, step_ms=250)
    job = Job(files, TUMBLING, files_per_batch=1)
    # The sides take turns, and of each the best round counts: what else runs on the machine only makes it worse.
    best = dict.fromkeys(SIDES, float("inf"))
    for _ in range(_ROUNDS):
        for side, start in SIDES.items():
            run = bench.run(f"almost empty, {side}", lambda place, start=start: start(bench.spark, job, place))
            bench.clear(run)
            counted = run.seconds[bench.sizes.small_batches // 3 : bench.sizes.small_batches - 1]
            best[side] = min(best[side], statistics.median(counted) * 1_000)
    return [Figure(side, "ms", best[side], best["Spark"], most=1.15) for side in OURS]
