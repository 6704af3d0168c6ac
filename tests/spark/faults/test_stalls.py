"""A job that stands still in mid work, as a process in a long pause, while another run takes over its checkpoint.

When it goes on, the output is that of a job that was left alone, and it ends with a sentence.
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
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check, planned, run_here

_JOBS = ("bounded", "function")
_PATIENCE_S = 400


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
    for series in range(kills):
        stalled = {job: tmp_path / f"stalled-{series}" / job for job in _JOBS}
        with ThreadPoolExecutor(len(stalled)) as pool:
            moments = [random.Random(f"{seed} stall {job} {series}") for job in stalled]
            said = list(pool.map(_taken_over, stalled, stalled.values(), moments))
        assert all("only one run at a time use a checkpoint" in one for one in said), [one[-2_000:] for one in said]
        check(spark, stalled, undisturbed)
        injected["suspended"] += len(stalled)


def _taken_over(job: str, place: Path, moments: random.Random) -> str:
    """Stop a job in mid work, let it go on when another run has come further; return what the first one says last."""
    place.mkdir(parents=True)
    older, younger = (_start(job, place, name) for name in ("older", "younger"))
    try:
        _work_until(older, place, further=1, then_s=moments.uniform(0, 1))
        os.killpg(older.pid, signal.SIGSTOP)
        _work_until(younger, place, further=1, then_s=moments.uniform(0, 2))
        os.killpg(older.pid, signal.SIGCONT)
        younger.communicate(timeout=_PATIENCE_S)
        older.communicate(timeout=_PATIENCE_S)
    finally:
        for life in (older, younger):
            if life.poll() is None:
                os.killpg(life.pid, signal.SIGKILL)
                life.communicate()
    assert younger.returncode == 0, (place / "younger").read_text()[-2_000:]
    return (place / "older").read_text()


def _start(job: str, place: Path, name: str) -> subprocess.Popen[bytes]:
    """Start a process for a job, which begins to work when it is told so, and says in a file what goes wrong."""
    arguments = [job, str(place / "checkpoint"), str(place / "output"), str(place.parents[1] / "input")]
    command = [sys.executable, str(PROGRAMS[job].__file__), *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with (place / name).open("wb") as said:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=said, stdout=said, start_new_session=True, env=environment
        )


def _work_until(life: subprocess.Popen[bytes], place: Path, further: int, then_s: float) -> None:
    """Let a job work until it has planned some micro-batches more than those before it, and a moment after that."""
    before, deadline = planned(place), time.monotonic() + _PATIENCE_S
    assert life.stdin is not None
    life.stdin.write(b"go\n")
    life.stdin.flush()
    while planned(place) < before + further:
        assert life.poll() is None, "the job ended before it got so far"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(then_s)
