"""Cost of a subtask that has next to nothing to do, in a task of its own, as on a cluster."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from unittest import mock

from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.data import in_small_files
from benchmarks.figures import Figure
from benchmarks.queries import PARALLELISM, TUMBLING, Job, environment, submitted, sums_of_files
from benchmarks.scale import EMPTY_TASK, fitted

_SUBTASKS = (2, 16, 64, 200)
_BATCHES = 6
_TASKS = 1_000
_WARM_UP = 2


def subtasks(bench: Bench) -> list[Figure]:
    """Micro-batches of one row with 2 to 200 subtasks, each in a task of its own, beside what the model says.

    The model is fitted to the first and the last of them, so that those between show whether it holds.
    """
    files = bench.place / "data" / "few"
    if not files.exists():
        in_small_files(files, _BATCHES, step_ms=250)
    job = Job(files, TUMBLING, files_per_batch=1)
    took = {number: _milliseconds(bench, job, number) for number in _SUBTASKS}
    batch_ms, task_ms = fitted(took, PARALLELISM)
    bench.say(f"a micro-batch {batch_ms:.0f} ms, a task {task_ms:.1f} ms of a core")
    return [
        Figure(EMPTY_TASK, "ms", _empty_task_ms(bench)),
        *_beside_the_model(took, batch_ms, task_ms),
    ]


def _beside_the_model(took: dict[int, float], batch_ms: float, task_ms: float) -> list[Figure]:
    return [
        Figure(f"{number} subtasks", "ms", ms, batch_ms + number * task_ms / PARALLELISM, beside="the model")
        for number, ms in took.items()
    ]


def _empty_task_ms(bench: Bench) -> float:
    """The time that one more task takes: at least what the driver needs for it, whatever number of cores there is."""
    took = []
    for _ in range(3):
        started = time.perf_counter()
        bench.spark.range(0, _TASKS, 1, _TASKS).count()
        took.append(time.perf_counter() - started)
    return min(took) / _TASKS * 1_000


def _milliseconds(bench: Bench, job: Job, number: int) -> float:
    """The time of a micro-batch; a local session would have several subtasks share a task."""

    def start(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place).set_parallelism(number)
        return submitted(env, sums_of_files(env, job), place)

    with mock.patch("eventide.spark.host.shuffle_partitions", lambda _, parallelism: parallelism):
        run = bench.run(f"{number} subtasks", start)
    bench.clear(run)
    return statistics.median(run.seconds[_WARM_UP : _BATCHES - 1]) * 1_000
