"""Watermark strategies that change while a job runs: a micro-batch that is repeated has the values that it had."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import Duration, JobClient, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FormatSink, Source
from eventide.datastream.connectors.file_system import FileSource
from eventide.datastream.window import TimestampedValue, TumblingEventTimeWindows
from eventide.errors import ProgramError, UserFunctionError
from eventide.spark.checkpoint.savepoint import rescale
from eventide.spark.checkpoint.strategies import waiting_changes
from support.steps import in_steps

pytestmark = [pytest.mark.spark, pytest.mark.long]

BOUND_MS = 1_000
"""The bound that the program declares: with it, no window of these tests fires."""


def start(folder: Path, bound_ms: int = BOUND_MS) -> JobClient:
    """A job that writes each line of each window of 10 ms, and fails at the line "60" until there is a file for it."""
    (folder / "in").mkdir(exist_ok=True)
    may_go_on = folder / "may go on"

    def checked(line: str) -> int:
        if line == "60" and not may_go_on.exists():
            raise ValueError("not yet")
        return int(line)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / "checkpoint"))
    source = FileSource.text(str(folder / "in")).monitor_continuously(Duration.of_millis(1)).build()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(bound_ms).with_timestamp_assigner(lambda t, _: int(t))
    strategy = strategy.with_idleness(Duration.of_days(1))
    lines = env.from_source(source, strategy, "lines").map(checked, Types.LONG())
    windows = lines.key_by(lambda _: 0, Types.LONG()).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    fired = windows.reduce(max).name("windows").map(str, Types.STRING())
    fired.sink_to(FormatSink("text", {"path": str(folder / "out")}))
    return env.execute_async()


def fired(folder: Path) -> list[int]:
    """The results of all windows that have fired."""
    return sorted(int(line) for part in (folder / "out").glob("part-*") for line in part.read_text().split())


def wait_until(holds: Callable[[], object], job: JobClient) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert not job.get_job_status().result().is_terminal_state()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def read(folder: Path, job: JobClient, *times: int) -> int:
    """Let the job read elements of these times, and return the watermark of the windows after them."""
    progress = job.get_progress()
    before = progress[-1].batch if progress else -1
    hidden = folder / "in" / f".{times[0]}.txt"
    hidden.write_text("".join(f"{time_ms}\n" for time_ms in times))
    hidden.rename(folder / "in" / f"{times[0]}.txt")
    wait_until(lambda: any(one.batch > before and one.rows_in for one in job.get_progress()), job)
    return job.get_progress()[-1].watermarks["windows"]


def command(folder: Path, *options: str) -> dict[str, object]:
    """The answer of `eventide watermarks`."""
    line = [sys.executable, "-m", "eventide", "watermarks", str(folder / "checkpoint"), *options, "--json"]
    said = subprocess.run(line, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    answer: dict[str, object] = json.loads(said.stdout)
    return answer


@in_steps
def test_a_bound_changes_between_two_micro_batches_of_a_job_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    job = start(tmp_path)
    first = job.get_job_id()
    assert read(tmp_path, job, 5, 15, 25) == 25 - BOUND_MS - 1
    job.change_watermarks("lines", max_out_of_orderness=Duration.of_millis(2)).result(300)
    assert job.get_job_id() == first
    assert read(tmp_path, job, 33) == 30
    assert fired(tmp_path) == [5, 15, 25]
    with pytest.raises(ProgramError, match=r"no watermark strategy of the name 'line'; it has 'lines'"):
        job.change_watermarks("line", max_out_of_orderness=1)

    asked = command(tmp_path, "--source", "lines", "--out-of-orderness", "20ms", "--idle-timeout", "off")
    assert asked["declared"] == {"lines": {"bound_ms": BOUND_MS, "idle_after_ms": 86_400_000}}
    wait_until(lambda: not waiting_changes(str(tmp_path / "checkpoint")), job)
    assert read(tmp_path, job, 45) == 30, "a watermark does not go back"
    assert read(tmp_path, job, 55) == 34
    job.cancel().result()
    assert command(tmp_path)["changed"] == {"lines": {"bound_ms": 20, "idle_after_ms": None}}

    job = start(tmp_path)
    (tmp_path / "may go on").touch()
    assert read(tmp_path, job, 65) == 44, "a change counts for the next run of the program"
    job.cancel().result()
    job = start(tmp_path, bound_ms=4)
    assert read(tmp_path, job, 75) == 70, "until the program declares another value"
    job.cancel().result()
    assert command(tmp_path)["changed"] == {"lines": {"idle_after_ms": None}}


@in_steps
def test_a_micro_batch_that_is_repeated_has_the_bound_that_it_had(spark: SparkSession, tmp_path: Path) -> None:
    job = start(tmp_path)
    assert read(tmp_path, job, 5, 15, 25) == 25 - BOUND_MS - 1
    job.change_watermarks("lines", max_out_of_orderness=2).result(300)
    (tmp_path / "in" / "60.txt").write_text("60\n")
    with pytest.raises(UserFunctionError, match="not yet"):
        job.get_job_execution_result().result(300)
    asked = command(tmp_path, "--source", "lines", "--out-of-orderness", f"{BOUND_MS}ms")
    assert asked["waiting"] == [{"lines": {"bound_ms": BOUND_MS}}]

    (tmp_path / "may go on").touch()
    job = start(tmp_path)
    wait_until(lambda: not waiting_changes(str(tmp_path / "checkpoint")), job)
    assert fired(tmp_path) == [5, 15, 25]
    assert read(tmp_path, job, 95) == 57, "the change has waited for the end of the micro-batch"
    job.cancel().result()
    assert command(tmp_path)["changed"] == {}


class Counting(Source):
    """One split, with an element for each millisecond before the one that a file names."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def splits(self) -> list[str]:
        return ["numbers"]

    def latest_position(self, split: str) -> int:
        return int(self._file.read_text())

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for at in range(start, end):
            yield TimestampedValue(f"{self._file.name} {at}", at)

    def positions_at(
        self, timestamp_ms: int, positions: Mapping[str, int], column: str | None = None
    ) -> dict[str, int] | None:
        return {part: max(0, min(timestamp_ms + 1, self.latest_position(part))) for part in positions}

    def is_bounded(self) -> bool:
        return False

    def gives_timestamps(self) -> bool:
        return True

    def gives_watermarks(self) -> bool:
        return False

    def get_produced_type(self) -> Any:
        return Types.STRING()


def start_aligned(folder: Path, drift_ms: int, checkpoint: str = "checkpoint", parallelism: int = 2) -> JobClient:
    """A job that writes the elements of two sources, of which one may be ahead of the other by a drift."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(folder / checkpoint))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("both", drift_ms)
    slow, fast = (env.from_source(Counting(folder / name), strategy, name) for name in ("slow", "fast"))
    slow.union(fast).sink_to(FormatSink("text", {"path": str(folder / "out")}))
    return env.execute_async()


def has_come_to(folder: Path, job: JobClient, slow: int, fast: int) -> None:
    """Wait until exactly these numbers of elements are written, and the job has nothing more to do."""

    def written() -> list[str]:
        return sorted(line for part in (folder / "out").glob("part-*") for line in part.read_text().splitlines())

    expected = sorted([*(f"slow {at}" for at in range(slow)), *(f"fast {at}" for at in range(fast))])
    wait_until(lambda: len(written()) >= len(expected), job)
    rested = time.monotonic() + 1  # a micro-batch begins within this time, if there is one
    wait_until(lambda: time.monotonic() > rested, job)
    assert written() == expected


def goes_on(folder: Path, name: str, until: int) -> None:
    """Let a source have elements up to a time."""
    hidden = folder / f".{name}"
    hidden.write_text(str(until))
    hidden.rename(folder / name)


@in_steps
def test_an_alignment_changes_between_two_micro_batches_and_what_was_held_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A split is held that is further ahead than the drift: its last element is one beyond it, and shows that."""
    goes_on(tmp_path, "slow", 1)
    goes_on(tmp_path, "fast", 100)
    job = start_aligned(tmp_path, drift_ms=10)
    has_come_to(tmp_path, job, slow=1, fast=0 + 10 + 2)

    job.change_watermarks("fast", max_allowed_watermark_drift=20).result(300)
    has_come_to(tmp_path, job, slow=1, fast=0 + 20 + 2)

    asked = command(tmp_path, "--source", "fast", "--alignment-drift", "5ms")
    assert asked["declared"] == {name: {"bound_ms": 0, "drift_ms": 10} for name in ("slow", "fast")}
    wait_until(lambda: not waiting_changes(str(tmp_path / "checkpoint")), job)
    goes_on(tmp_path, "slow", 16)
    has_come_to(tmp_path, job, slow=16, fast=22)
    goes_on(tmp_path, "slow", 19)
    has_come_to(tmp_path, job, slow=19, fast=18 + 5 + 2)
    job.cancel().result()

    job = start_aligned(tmp_path, drift_ms=10)
    goes_on(tmp_path, "slow", 21)
    has_come_to(tmp_path, job, slow=21, fast=20 + 5 + 2)
    job.change_watermarks("fast", max_allowed_watermark_drift="off").result(300)
    has_come_to(tmp_path, job, slow=21, fast=100)
    job.cancel().result()

    goes_on(tmp_path, "fast", 200)
    job = start_aligned(tmp_path, drift_ms=10)
    has_come_to(tmp_path, job, slow=21, fast=200)
    job.cancel().result()

    goes_on(tmp_path, "fast", 300)
    job = start_aligned(tmp_path, drift_ms=40)
    goes_on(tmp_path, "slow", 181)
    has_come_to(tmp_path, job, slow=181, fast=180 + 40 + 2)
    job.stop_with_savepoint(False, str(tmp_path)).result()
    assert command(tmp_path)["changed"] == {}, "the program declares another drift"

    rescale(spark, str(tmp_path / "checkpoint"), str(tmp_path / "another"), parallelism=1)
    job = start_aligned(tmp_path, drift_ms=40, checkpoint="another", parallelism=1)
    goes_on(tmp_path, "slow", 191)
    has_come_to(tmp_path, job, slow=191, fast=190 + 40 + 2)
    job.cancel().result()
