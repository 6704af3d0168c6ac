"""Functions as sources on Spark: to the end of the job, over a restart, with errors, and with what is there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import JobClient, JobStatus, Time, Types, Watermark
from eventide.datastream import DataStream, SourceFunction, StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import UserFunctionError
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.testing import local_environment
from support.saved_on_spark import lines
from support.steps import in_steps

pytestmark = pytest.mark.spark

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
PATIENCE_S = 60


def numbers(end: int, pause_at: int | None = None, fail_at: int | None = None, note: str | None = None) -> Any:
    """A function that counts: number n has the time 10 n, and after each one comes its watermark."""

    class Numbers(SourceFunction):
        def __init__(self):
            self.next, self.running = 0, True

        def run(self, ctx):
            while self.running and self.next < end:
                if self.next == pause_at:
                    time.sleep(0.02)
                    continue
                if self.next == fail_at:
                    raise OSError("the line is dead")
                with ctx.get_checkpoint_lock():
                    ctx.collect_with_timestamp((f"k{self.next % 2}", self.next), 10 * self.next)
                    ctx.emit_watermark(Watermark(10 * self.next - 1))
                    self.next += 1

        def cancel(self):
            self.running = False
            if note:
                Path(note).write_text("cancelled")

        def snapshot_state(self):
            return self.next

        def restore_state(self, state):
            self.next = state

    return Numbers()


def sums(
    env: StreamExecutionEnvironment, function: SourceFunction, check: Callable[[Any], Any] = lambda pair: pair
) -> DataStream:
    return (
        env.add_source(function, "numbers", PAIR)
        .map(check, PAIR)
        .key_by(lambda e: e[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def reopened(place: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place))
    return env


def started(stream: DataStream, batches: dict[int, list[Any]]) -> JobClient:
    """Run a job whose sink keeps what each micro-batch gave, once, however often it is repeated."""
    stream.sink_to(lambda rows, batch: batches.__setitem__(batch, [tuple(row) for row in rows.collect()]))
    return stream.get_execution_environment().execute_async("numbers")


def rows_of(batches: dict[int, list[Any]]) -> list[Any]:
    return sorted(row for rows in batches.values() for row in rows)


def test_a_job_ends_when_its_function_returns_and_goes_on_where_it_was_when_it_is_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = sorted(sums(local_environment(), numbers(60)).execute_and_collect())
    batches: dict[int, list[Any]] = {}
    note = tmp_path / "note"

    job = started(sums(reopened(tmp_path / "checkpoint"), numbers(60, pause_at=45, note=str(note))), batches)
    deadline = time.monotonic() + PATIENCE_S
    while job.get_metrics().get("numbers", {}).get("numRecordsOut") != 45 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert rows_of(batches) == sorted(
        (f"k{k}", sum(range(h * 10 + k, h * 10 + 10, 2))) for h in range(4) for k in (0, 1)
    )
    assert job.get_job_status().result() is JobStatus.RUNNING
    job.cancel().result()
    assert job.get_job_status().result() is JobStatus.CANCELED
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert note.read_text() == "cancelled"

    job = started(sums(reopened(tmp_path / "checkpoint"), numbers(60)), batches)
    result = job.get_job_execution_result().result(PATIENCE_S)
    assert rows_of(batches) == expected
    assert result.metrics["numbers"]["numRecordsOut"] == 15
    assert job.get_job_status().result() is JobStatus.FINISHED

    # All has ended: there is nothing to run for.
    job = started(sums(reopened(tmp_path / "checkpoint"), numbers(60)), batches)
    job.get_job_execution_result().result(PATIENCE_S)
    assert rows_of(batches) == expected


@pytest.mark.long
@in_steps
def test_a_job_goes_on_from_a_savepoint_with_what_its_function_had_emitted_and_was_not_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first job fails at an element, when its function has long emitted more; the next has other subtasks."""

    def job(name: str, function: SourceFunction, check: Callable[[Any], Any]) -> StreamExecutionEnvironment:
        env = StreamExecutionEnvironment.get_execution_environment().set_max_rows_per_batch(10)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / name))
        totals = sums(env, function, check).map(lambda total: f"{total[0]} {total[1]}", Types.STRING())
        totals.sink_to(FormatSink("text", {"path": str(tmp_path / f"{name}-out")}))
        return env

    def until_28(pair: Any) -> Any:
        if pair[1] == 28:
            raise OSError("the line is dead")
        return pair

    with pytest.raises(UserFunctionError, match="the line is dead"):
        job("before", numbers(60, pause_at=45), until_28).set_parallelism(2).execute()
    take_savepoint(spark, str(tmp_path / "before"), str(tmp_path / "saved"), parallelism=3)
    begins_at_45 = numbers(60, fail_at=44)
    job("behind", begins_at_45, lambda pair: pair).from_savepoint(str(tmp_path / "saved")).execute()
    expected = sums(local_environment(), numbers(60)).execute_and_collect()
    assert all(lines(tmp_path / f"{name}-out") for name in ("before", "behind"))
    assert lines(tmp_path / "before-out", tmp_path / "behind-out") == Counter(f"{k} {total}" for k, total in expected)


def test_a_function_that_fails_fails_the_job_with_its_name_and_traceback(env: StreamExecutionEnvironment) -> None:
    job = started(sums(env, numbers(60, fail_at=30)), {})
    with pytest.raises(UserFunctionError, match=r"(?s)operator 'numbers'.*OSError\('the line is dead'\).*, in run"):
        job.get_job_execution_result().result(PATIENCE_S)


@in_steps
def test_a_run_that_takes_what_is_there_ends_though_the_function_does_not(env: StreamExecutionEnvironment) -> None:
    env.set_available_now().set_max_rows_per_batch(50)
    batches: dict[int, list[Any]] = {}
    started(sums(env, numbers(60, pause_at=25)), batches).get_job_execution_result().result(PATIENCE_S)
    assert rows_of(batches) == [("k0", 20), ("k0", 70), ("k1", 25), ("k1", 75)]
