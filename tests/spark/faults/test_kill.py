"""A job that is killed with SIGKILL again and again gives the output of one that was left alone, byte for byte."""

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

from eventide.errors import StateError
from eventide.spark.checkpoint.savepoint import take_savepoint
from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check, output_of, planned, run_here

_PATIENCE_S = 400
_MOST_KILLS = 5
"""A job ends at some time; further kills are those of another one."""

_GO = b"go\n"
_FURTHER_BATCHES = 2
"""A life ends at the latest when it has planned so many micro-batches, so that the job has something left to do."""


@pytest.mark.spark
@pytest.mark.kill
def test_killed_at_random_moments_a_job_gives_the_undisturbed_output(
    spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """State, windows, sources and sinks of every kind, and the clock; `--kills=50` for long, `--seed=` for the same."""
    killed_job.write_input(tmp_path / "input")
    undisturbed = {job: tmp_path / "undisturbed" / job for job in PROGRAMS}
    kills, seed = (pytestconfig.getoption(option) for option in ("--kills", "--seed"))
    for series in range(0, kills, _MOST_KILLS):
        killed = {job: tmp_path / f"killed-{series}" / job for job in PROGRAMS}
        with ThreadPoolExecutor(len(killed)) as pool:
            moments = [random.Random(f"{seed} {job} {series}") for job in killed]
            times = [min(_MOST_KILLS, kills - series)] * len(killed)
            codes = pool.map(_killed_again_and_again, killed, killed.values(), moments, times)
            for job, place in undisturbed.items() if series == 0 else ():
                run_here(job, place)
            assert list(codes) == [0] * len(killed)
        check(spark, killed, undisturbed)
        injected["killed"] += sum(times)


@pytest.mark.spark
@pytest.mark.kill
def test_a_job_that_was_killed_goes_on_from_a_savepoint_with_another_parallelism_and_is_killed_again(
    spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """The job is killed until no sink has results of the micro-batch that it died in; with `--kills=50`, ten times."""
    job = "bounded"
    killed_job.write_input(tmp_path / "input")
    undisturbed = tmp_path / "undisturbed" / job
    run_here(job, undisturbed)
    expected = output_of(spark, undisturbed)
    kills, seed = (pytestconfig.getoption(option) for option in ("--kills", "--seed"))
    for series in range(0, kills, _MOST_KILLS):
        moments = random.Random(f"{seed} savepoint {series}")
        before, after = (tmp_path / f"series-{series}" / name for name in ("before", "after"))
        saved = str(tmp_path / f"series-{series}" / "saved")
        injected["killed"] += 1 + _killed_until_it_can_be_saved(spark, job, before, moments, saved)
        assert _killed_again_and_again(job, after, moments, 1, "3", saved) == 0
        found = output_of(spark, before)
        for sink, lines in output_of(spark, after).items():
            found[sink] = sorted([*found.get(sink, []), *lines])
        assert found == expected, f"--seed={seed}, series {series}"


def _killed_until_it_can_be_saved(
    spark: SparkSession, job: str, place: Path, moments: random.Random, saved: str
) -> int:
    """Kill a job in mid work, again if its sinks may have some of a micro-batch that is not finished; then save it.

    Returns:
        How often it was killed.
    """
    place.mkdir(parents=True)
    for kills in range(1, _MOST_KILLS + 1):
        life = _start(job, place)
        try:
            _kill_in_mid_work(life, place, moments.uniform(0, 1))
        finally:
            _end(life)
        try:
            take_savepoint(spark, str(place / "checkpoint"), saved)
        except StateError as error:
            refused = str(error)  # a sink has begun to write, or nothing is committed yet
        else:
            return kills
    pytest.fail(f"killed {_MOST_KILLS} times, each time when there was nothing to save: {refused}")


def _killed_again_and_again(job: str, place: Path, moments: random.Random, times: int, *more: str) -> int:
    """Kill a job `times` times, then let it end; return its exit code. Its program may get ``more`` arguments."""
    place.mkdir(parents=True)
    lives = [_start(job, place, *more)]
    try:
        for _ in range(times):
            lives.append(_start(job, place, *more))
            _kill_in_mid_work(lives[-2], place, moments.uniform(0, 1))
        lives[-1].communicate(_GO, _PATIENCE_S)
        return lives[-1].returncode
    finally:
        for life in lives:
            _end(life)


def _start(job: str, place: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a process for a job, which begins to work when it is told so.

    Its many Python processes need not all compile the same modules, even where the tests write no compiled ones.
    """
    root = place.parent.parent
    arguments = [job, str(place / "checkpoint"), str(place / "output"), str(root / "input"), *more]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONPYCACHEPREFIX": str(root / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, str(PROGRAMS[job].__file__), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)


def _kill_in_mid_work(life: subprocess.Popen[bytes], place: Path, seconds: float) -> None:
    """Kill a job, JVM and all, some time after it has planned a micro-batch that no life before it had planned."""
    before = planned(place)
    assert life.stdin is not None
    life.stdin.write(_GO)
    life.stdin.flush()
    deadline = time.monotonic() + _PATIENCE_S
    while planned(place) <= before and life.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    moment = time.monotonic() + seconds
    while planned(place) < before + _FURTHER_BATCHES and time.monotonic() < moment:
        time.sleep(0.02)
    assert planned(place) > before, "the job did not get any further"
    assert life.poll() is None, "the job ended before it could be killed; give it more to do"
    _kill(life)


def _end(life: subprocess.Popen[bytes]) -> None:
    """Kill a life that has not ended."""
    if life.poll() is None:
        _kill(life)


def _kill(life: subprocess.Popen[bytes]) -> None:
    os.killpg(life.pid, signal.SIGKILL)
    life.communicate()
