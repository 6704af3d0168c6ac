"""A job that stands still in mid work, as a process in a long pause, or whose disk is slow, and a run that takes over.

The output is that of a job that was left alone, and the older run ends with a sentence. The younger one stands still in
its turn.
"""

from __future__ import annotations

import os
import random
import re
import shutil
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
"""The most micro-batches that a run plans before it is stopped, so that the next runs have work to do."""

_ON_DISK = "rename,renameat,renameat2,fsync,fdatasync"
_SLOW = f"{_ON_DISK}:delay_enter=2000000:when=2+7"
"""In each thread, every seventh rename or sync of a file takes two seconds."""
_ONE_RUN_ONLY = "only one run at a time use a checkpoint"


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
            assert _ONE_RUN_ONLY in one, one[-2_000:]
        check(spark, stalled, undisturbed)
        injected["suspended"] += sum(times)


@pytest.mark.spark
@pytest.mark.kill
def test_a_job_whose_disk_is_slow_gives_the_undisturbed_output_also_where_a_fast_run_takes_over(
    spark: SparkSession, tmp_path: Path, injected: Counter[str]
) -> None:
    """The system holds up each process of the job when it renames or syncs a file."""
    probe = ["strace", "-qqo", os.devnull, "true"]
    if shutil.which("strace") is None or subprocess.run(probe, check=False).returncode != 0:
        pytest.skip("to hold up system calls needs the command strace, and the right to use it")
    job = "function"
    killed_job.write_input(tmp_path / "input")
    undisturbed, alone, succeeded = (tmp_path / name / job for name in ("undisturbed", "alone", "succeeded"))
    run_here(job, undisturbed)
    with ThreadPoolExecutor(2) as pool:
        ended, said = pool.submit(_on_a_slow_disk, job, alone), pool.submit(_succeeded, job, succeeded)
        assert ended.result() == 0, (alone / "slow").read_text()[-2_000:]
        assert _ONE_RUN_ONLY in said.result(), said.result()[-2_000:]
    for place in (alone, succeeded):
        check(spark, {job: place}, {job: undisturbed})
        delayed = len(re.findall(r"\(DELAYED\)$", (place / "trace").read_text(), re.M))
        assert delayed > 10
        injected["slow changes of a disk"] += delayed


def _on_a_slow_disk(job: str, place: Path) -> int:
    """Run a job to its end where its disk is slow; return its code."""
    place.mkdir(parents=True)
    life = _start(job, place, "slow", slow=True)
    try:
        life.communicate(b"go\n", timeout=2 * _PATIENCE_S)
    finally:
        _end(life)
    return life.returncode


def _succeeded(job: str, place: Path) -> str:
    """Let a run whose disk is fast take over from one whose disk is slow; return what the slow one says last."""
    place.mkdir(parents=True)
    older, younger = _start(job, place, "older", slow=True), _start(job, place, "younger")
    try:
        _work_until(older, place, then_s=60)
        younger.communicate(b"go\n", timeout=_PATIENCE_S)
        older.communicate(timeout=_PATIENCE_S)
    finally:
        _end(older, younger)
    assert younger.returncode == 0, (place / "younger").read_text()[-2_000:]
    return (place / "older").read_text()


def _taken_over_again_and_again(job: str, place: Path, moments: random.Random, times: int) -> list[str]:
    """Suspend a run in mid work until the next one has come further, and that one likewise; return what they say."""
    place.mkdir(parents=True)
    lives = [_start(job, place, f"run-{number}") for number in range(2)]
    try:
        _work_until(lives[0], place, moments.uniform(0, 1))
        for number in range(times):
            os.killpg(lives[number].pid, signal.SIGSTOP)
            if number + 1 < times:
                lives.append(_start(job, place, f"run-{number + 2}"))
            _work_until(lives[number + 1], place, moments.uniform(0, 2))
            os.killpg(lives[number].pid, signal.SIGCONT)
        for life in reversed(lives):
            life.communicate(timeout=_PATIENCE_S)
    finally:
        _end(*lives)
    *older, youngest = ((place / f"run-{number}").read_text() for number in range(times + 1))
    assert lives[-1].returncode == 0, youngest[-2_000:]
    return older


def _end(*lives: subprocess.Popen[bytes]) -> None:
    """Kill the processes that have not ended."""
    for life in lives:
        if life.poll() is None:
            os.killpg(life.pid, signal.SIGKILL)
            life.communicate()


def _start(job: str, place: Path, name: str, *, slow: bool = False) -> subprocess.Popen[bytes]:
    """Start a process for a job, which begins to work when it is told so, and says in a file what goes wrong."""
    arguments = [job, str(place / "checkpoint"), str(place / "output"), str(place.parents[1] / "input")]
    held_up = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", str(place / "trace"), "-e", f"inject={_SLOW}"]
    held_up += ["-e", f"trace={_ON_DISK}", "-e", "signal=none"]
    command = [*(held_up if slow else []), sys.executable, str(PROGRAMS[job].__file__), *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with (place / name).open("wb") as said:
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
