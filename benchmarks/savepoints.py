"""Cost of savepoints of a running job, and of another parallelism: their time, and that of micro-batches meanwhile.

`python -m benchmarks.savepoints --keys 1000000` runs a job that reads as fast as it can, and has a number for each of
that many keys. After some micro-batches it takes one savepoint by the client and one by the command `eventide savepoint
--running`, and prints the times of the micro-batches before, during and after them. Then it stops the job with a
savepoint, gives it one subtask more by the command `eventide rescale`, and starts it again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

from pyspark.sql import SparkSession

from eventide.common import JobClient, Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, NumberSequenceSource

_T = TypeVar("_T")

_BATCHES = 5
"""How many micro-batches are measured before the savepoint; as many after it."""

_NUMBERS = 1 << 40
"""More than any run reads."""

_MB = 1e6


def main(arguments: Sequence[str]) -> int:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.savepoints", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000, help="how many keys the job has a number of")
    parser.add_argument("--rows", type=int, default=200_000, help="how many rows a micro-batch has")
    parser.add_argument("--parallelism", type=int, default=2)
    options = parser.parse_args(arguments)
    cores = os.cpu_count() or 1
    SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory(prefix="eventide-savepoints-") as place:
        print("\n".join(_measured(Path(place), options.keys, options.rows, options.parallelism)))
    return 0


def _measured(place: Path, keys: int, rows: int, parallelism: int) -> list[str]:
    checkpoint = place / "checkpoint"
    job = _job(checkpoint, keys, rows, parallelism)
    first = -(-keys // rows) + 1  # until then, keys are new
    _wait(job, first + _BATCHES)
    spans = {"before": range(first, _last(job) + 1)}
    saved, by_client_s, spans["during the client's savepoint"] = _while_it_runs(
        job, lambda: Path(job.trigger_savepoint(str(place)).result())
    )
    _wait(job, _last(job) + _BATCHES)
    _, by_command_s, spans["during the command's savepoint"] = _while_it_runs(
        job, lambda: _eventide("savepoint", checkpoint, place / "by command", "--running")
    )
    end = _last(job)
    _wait(job, end + _BATCHES)
    spans["after"] = range(end + 2, end + _BATCHES)
    times = {progress.batch: progress.took_ms / 1000 for progress in job.get_progress()}
    began = time.monotonic()
    job.stop_with_savepoint(False, str(place)).result()
    stopping_s, stopped = time.monotonic() - began, time.monotonic()
    _eventide("rescale", checkpoint, place / "other", "--parallelism", parallelism + 1)
    rescaled_s = time.monotonic() - stopped
    again = _job(place / "other", keys, rows, None)
    _wait(again, 0)
    goes_on_s = time.monotonic() - stopped
    again.cancel().result()
    size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
    return [
        f"{keys:,} keys, micro-batches of {rows:,} rows, {parallelism} subtasks, {os.cpu_count()} cores",
        f"trigger_savepoint took {by_client_s:.1f} s, and the savepoint has {size / _MB:.0f} MB",
        f"eventide savepoint --running took {by_command_s:.1f} s",
        *(
            f"a micro-batch {when}: {median(some):.2f} s, {max(some):.2f} s at most, of {len(some)}"
            for when, span in spans.items()
            if (some := [times[batch] for batch in span if batch in times])
        ),
        f"stop_with_savepoint took {stopping_s:.1f} s",
        f"with {parallelism + 1} subtasks: eventide rescale took {rescaled_s:.1f} s, and after {goes_on_s:.1f} s the "
        "first micro-batch was done",
    ]


def _while_it_runs(job: JobClient, saves: Callable[[], _T]) -> tuple[_T, float, range]:
    """The answer of a call, how long it took in seconds, and the micro-batches that ended meanwhile."""
    at, began = _last(job), time.monotonic()
    answer = saves()
    return answer, time.monotonic() - began, range(at + 1, _last(job) + 2)


def _eventide(*arguments: object) -> None:
    """Run a command of eventide as a user does, with a Spark session of its own."""
    subprocess.run([sys.executable, "-m", "eventide", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def _job(checkpoint: Path, keys: int, rows: int, parallelism: int | None) -> JobClient:
    """A job that adds up numbers by key, and never waits for them."""
    env = StreamExecutionEnvironment.get_execution_environment().set_max_rows_per_batch(rows)
    if parallelism is not None:
        env.set_parallelism(parallelism)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    numbers = env.from_source(NumberSequenceSource(0, _NUMBERS), WatermarkStrategy.no_watermarks(), "numbers")
    keyed = numbers.map(
        lambda number: Row(key=number % keys, sum=number), Types.ROW_NAMED(["key", "sum"], [Types.LONG()] * 2)
    )
    keyed.key_by("key").sum("sum").uid("sums").sink_to(FormatSink("noop"))
    return env.execute_async("savepoints")


def _last(job: JobClient) -> int:
    return max((progress.batch for progress in job.get_progress()), default=-1)


def _wait(job: JobClient, batch: int) -> None:
    while _last(job) < batch:
        if job.get_job_status().result().is_terminal_state():
            job.get_job_execution_result().result()
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
