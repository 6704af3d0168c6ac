"""Cost of a savepoint of a running job, and of another parallelism: its time, and the time of micro-batches meanwhile.

`python -m benchmarks.savepoints --keys 1000000` runs a job that reads as fast as it can, and has a number for each of
that many keys. It takes one savepoint after some micro-batches, and prints the times of those before, during and after.
Then it stops the job, and has it go on with one subtask more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from eventide.common import JobClient, Row, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, NumberSequenceSource
from eventide.spark.checkpoint.savepoint import rescale

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
    spark = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory(prefix="eventide-savepoints-") as place:
        print("\n".join(_measured(spark, Path(place), options.keys, options.rows, options.parallelism)))
    return 0


def _measured(spark: SparkSession, place: Path, keys: int, rows: int, parallelism: int) -> list[str]:
    job = _job(place / "checkpoint", keys, rows, parallelism)
    first = -(-keys // rows) + 1  # until then, keys are new
    _wait(job, first + _BATCHES)
    began, at = time.monotonic(), _last(job)
    saved = Path(job.trigger_savepoint(str(place)).result())
    took_s, end = time.monotonic() - began, _last(job)
    _wait(job, end + _BATCHES)
    times = {progress.batch: progress.took_ms / 1000 for progress in job.get_progress()}
    job.stop_with_savepoint(False, str(place)).result()
    stopped = time.monotonic()
    rescale(spark, str(place / "checkpoint"), str(place / "other"), parallelism=parallelism + 1)
    rescaled_s = time.monotonic() - stopped
    again = _job(place / "other", keys, rows, None)
    _wait(again, 0)
    goes_on_s = time.monotonic() - stopped
    again.cancel().result()
    spans = {"before": range(first, at + 1), "during": range(at + 1, end + 2), "after": range(end + 2, end + _BATCHES)}
    size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
    return [
        f"{keys:,} keys, micro-batches of {rows:,} rows, {parallelism} subtasks, {os.cpu_count()} cores",
        f"the savepoint took {took_s:.1f} s, and has {size / _MB:.0f} MB",
        *(
            f"a micro-batch {when}: {median(some):.2f} s, {max(some):.2f} s at most, of {len(some)}"
            for when, span in spans.items()
            if (some := [times[batch] for batch in span if batch in times])
        ),
        f"with {parallelism + 1} subtasks: eventide rescale took {rescaled_s:.1f} s, and after {goes_on_s:.1f} s the "
        "first micro-batch was done",
    ]


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
