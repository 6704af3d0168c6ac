"""The machine's clock is set forward and back by an hour, while a job runs and while it is down.

A library that is loaded before libc does so, for the job's processes alone: Python, the JVM, and Python's workers.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark import stepped_job

_PATIENCE_S = 240
_AN_HOUR_S = 3_600


class SteppedJob:
    """A job in processes of its own, with a clock and an input of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = place / "clock"
        self.clock.write_bytes(bytes(8))
        self.library = str(place / "set_clock.so")
        source = Path(__file__).parents[2] / "support" / "set_clock.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self.library, source, "-ldl"], check=True)
        (place / "input").mkdir()
        self.write()

    def set_clock(self, seconds: int) -> None:
        """Set the clock to be ahead of the real one."""
        with self.clock.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    def write(self) -> None:
        """Write an element into each split."""
        for split in stepped_job.SPLITS:
            with (self.place / "input" / split).open("a") as file:
                file.write(".")

    def written(self) -> set[tuple[str, int]]:
        """The elements of both splits."""
        splits = {split: self.place / "input" / split for split in stepped_job.SPLITS}
        return {(split, n) for split, file in splits.items() for n in range(file.stat().st_size)}

    @contextmanager
    def running(self, steps: dict[int, list[int | None]] | None = None) -> Iterator[None]:
        """Run the job, which sets its own clock at some elements, and kill it in the end."""
        folders = [str(self.place / name) for name in ("checkpoint", "output", "input")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LD_PRELOAD": self.library,
            "SET_CLOCK_FILE": str(self.clock),
        }
        with (self.place / "said").open("ab") as said:
            job = subprocess.Popen(
                [sys.executable, stepped_job.__file__, *folders, json.dumps(steps or {})],
                stdout=said,
                stderr=said,
                start_new_session=True,
                env=environment,
            )
        try:
            yield
            assert job.poll() is None, (self.place / "said").read_text()[-3_000:]
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()

    def batches(self) -> int:
        """The number of micro-batches that are finished."""
        return len([*(self.place / "checkpoint" / "commits").glob("[0-9]*")])

    def goes_on(self, batches: int = 3) -> None:
        """Write elements until some more micro-batches are finished, none of which had begun before."""
        wanted, deadline = self.batches() + batches + 1, time.monotonic() + _PATIENCE_S
        while self.batches() < wanted:
            assert time.monotonic() < deadline, f"the job stands still: {(self.place / 'said').read_text()[-3_000:]}"
            self.write()
            time.sleep(0.2)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="the clock is set by a library in C, and there is no compiler")
def test_a_job_goes_on_and_loses_nothing_when_its_clock_is_set(
    spark: SparkSession, tmp_path: Path, injected: Counter[str]
) -> None:
    """No split is idle that was not silent, and each window and each timer of processing time fires once."""
    job = SteppedJob(tmp_path)
    for begins_at, steps in [(0, [1, 0]), (1, [0]), (-1, [])]:
        job.set_clock(begins_at * _AN_HOUR_S)
        with job.running():
            job.goes_on()
            for step in steps:
                job.set_clock(step * _AN_HOUR_S)
                job.goes_on()
            if not steps:
                _wait_for_all(spark, job)
        injected["clock steps"] += len(steps) + (begins_at != 0)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="the clock is set by a library in C, and there is no compiler")
def test_a_job_loses_nothing_when_its_clock_is_set_in_the_midst_of_a_micro_batch(
    spark: SparkSession, tmp_path: Path, injected: Counter[str]
) -> None:
    """An hour forth and back within one; back and forth within one; forth within one, and back within a later one.

    Where the job finds that its clock was set back, it begins a new query, so some are repeated, with their steps.
    """
    job = SteppedJob(tmp_path)
    steps: dict[int, list[int | None]] = {4: [1, 0], 8: [-1, 0], 12: [1, None], 16: [None, 0], 20: [-1, None]}
    expected = [[n, place, hours] for n, both in steps.items() for place, hours in enumerate(both) if hours is not None]
    taken = tmp_path / "input" / "steps"
    with job.running(steps):
        for n, place, hours in expected:
            while ("ahead", n) not in job.written():
                job.write()
            deadline = time.monotonic() + _PATIENCE_S
            while not taken.exists() or [n, place, hours] not in map(json.loads, taken.read_text().splitlines()):
                assert time.monotonic() < deadline, f"the job stands still: {(tmp_path / 'said').read_text()[-3_000:]}"
                time.sleep(0.05)
        job.goes_on()
        _wait_for_all(spark, job)
    steps_taken = [*map(json.loads, taken.read_text().splitlines())]
    assert {*map(tuple, steps_taken)} == {*map(tuple, expected)}
    injected["clock steps"] += len(steps_taken)


def _wait_for_all(spark: SparkSession, job: SteppedJob) -> None:
    """Set the clock forward until all that waits for it has come."""
    deadline = time.monotonic() + _PATIENCE_S
    job.set_clock(2 * _AN_HOUR_S)
    while True:
        expected = Counter(job.written())
        rows = spark.read.json(str(job.place / "output")).collect()
        found = {seen: Counter((row.split, row.n) for row in rows if row.seen == seen) for seen in ("clock", "timer")}
        if all(sum(counter.values()) >= sum(expected.values()) for counter in found.values()):
            break
        assert time.monotonic() < deadline, {seen: expected - counter for seen, counter in found.items()}
        time.sleep(0.5)
    assert found == {"clock": expected, "timer": expected}
    in_time = Counter((row.split, row.n) for row in rows if row.seen == "event time")
    assert in_time["behind", 0] == 1
    assert max(in_time.values()) == 1
    assert not [row for row in rows if row.seen == "late"]
