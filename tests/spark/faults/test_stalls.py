"""A job that stands still in mid work, as a process in a long pause, while another run takes over its checkpoint.

When it goes on, the output is that of a job that was left alone, and it ends with a sentence. Then the other
run stands still in its turn.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check, planned, run_here

_JOBS = ("bounded", "function")
_PATIENCE_S = 400
_MOST_STALLS = 4
"""A job ends at some time; further stalls are those of another one."""

_FURTHER_BATCHES = 2
"""A run is stopped at the latest when it has planned so many micro-batches, so that the next ones have work to do."""


@pytest.mark.spark
@pytest.mark.kill
def test_a_job_that_stands_still_while_another_run_takes_over_gives_the_undisturbed_output(
    spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """`--kills=50` does this often, `--seed=` at the same moments."""
    killed_job.write_input(tmp_path / "input")
    undisturbed = {job: tmp_path / "undisturbed" / job for job in _JOBS}
    for job, place in undisturbed.items():
        run_here(job, place)
    kills, seed = (pytestconfig.getoption(option) for option in ("--kills", "--seed"))
    for series in range(0, kills, _MOST_STALLS):
        stalled = {job: tmp_path / f"stalled-{series}" / job for job in _JOBS}
        with ThreadPoolExecutor(len(stalled)) as pool:
            moments = [random.Random(f"{seed} stall {job} {series}") for job in stalled]
            times = [min(_MOST_STALLS, kills - series)] * len(stalled)
            said = list(pool.map(_taken_over_again_and_again, stalled, stalled.values(), moments, times))
        for one in chain(*said):
            assert "only one run at a time use a checkpoint" in one, one[-2_000:]
        check(spark, stalled, undisturbed)
        injected["suspended"] += sum(times)


def _taken_over_again_and_again(job: str, place: Path, moments: random.Random, times: int) -> list[str]:
    """Suspend a run in mid work until the next one has come further, and that one likewise; return what they say."""
    place.mkdir(parents=True)
    lives = [_start(job, place, number) for number in range(2)]
    try:
        _work_until(lives[0], place, moments.uniform(0, 1))
        for number in range(times):
            os.killpg(lives[number].pid, signal.SIGSTOP)
            if number + 1 < times:
                lives.append(_start(job, place, number + 2))
            _work_until(lives[number + 1], place, moments.uniform(0, 2))
            os.killpg(lives[number].pid, signal.SIGCONT)
        for life in reversed(lives):
            life.communicate(timeout=_PATIENCE_S)
    finally:
        for life in lives:
            if life.poll() is None:
                os.killpg(life.pid, signal.SIGKILL)
                life.communicate()
    *older, youngest = ((place / f"run-{number}").read_text() for number in range(times + 1))
    assert lives[-1].returncode == 0, youngest[-2_000:]
    return older


def _start(job: str, place: Path, number: int) -> subprocess.Popen[bytes]:
    """Start a process for a job, which begins to work when it is told so, and says in a file what goes wrong."""
    arguments = [job, str(place / "checkpoint"), str(place / "output"), str(place.parents[1] / "input")]
    command = [sys.executable, str(PROGRAMS[job].__file__), *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with (place / f"run-{number}").open("wb") as said:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=said, stdout=said, start_new_session=True, env=environment
        )


def _work_until(life: subprocess.Popen[bytes], place: Path, then_s: float) -> None:
    """Let a job work until it has planned a micro-batch more than those before it, and a moment after that."""
    before, deadline = planned(place), time.monotonic() + _PATIENCE_S
    assert life.stdin is not None
    life.stdin.write(b"go\n")
    life.stdin.flush()
    while planned(place) <= before:
        assert life.poll() is None, "the job ended before it got so far"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    moment = time.monotonic() + then_s
    while planned(place) < before + _FURTHER_BATCHES and time.monotonic() < moment:
        time.sleep(0.02)
