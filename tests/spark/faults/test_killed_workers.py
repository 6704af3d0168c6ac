"""A job whose processes of Python are killed and suspended again and again gives the output of one left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark import killed_job
from support.spark.undisturbed import PROGRAMS, check, planned, run_here

_FAULTS = 20
"""The number of faults in a series of a job, if it does not end before."""

_BETWEEN_FAULTS_S = 4
"""The longest time from one fault to the next, so that the job gets further: a micro-batch takes about a second."""

_PATIENCE_S = 600


@pytest.mark.spark
@pytest.mark.kill
def test_workers_that_are_killed_or_suspended_at_random_moments_change_nothing(
    spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """Daemons, workers and planners: the job starts again by itself. `--kills=7` for long, `--seed=` for the same.

    With each further kill of other tests there are three series here, which have by far the most faults for their time.
    """
    killed_job.write_input(tmp_path / "input")
    undisturbed = {job: tmp_path / "undisturbed" / job for job in PROGRAMS}
    kills, seed = (pytestconfig.getoption(option) for option in ("--kills", "--seed"))
    for series in range(3 * kills - 2):
        disturbed = {job: tmp_path / f"disturbed-{series}" / job for job in PROGRAMS}
        with ThreadPoolExecutor(len(disturbed)) as pool:
            moments = [random.Random(f"{seed} workers {job} {series}") for job in disturbed]
            faults = list(pool.map(_disturbed, disturbed, disturbed.values(), moments))
            for job, place in undisturbed.items() if series == 0 else ():
                run_here(job, place)
        check(spark, disturbed, undisturbed)
        for of_job in faults:
            injected.update(of_job)


def _disturbed(job: str, place: Path, dice: random.Random) -> Counter[str]:
    """Run a job to its end, with a fault now and then; return how many there were of each kind."""
    place.mkdir(parents=True)
    arguments = [job, str(place / "checkpoint"), str(place / "output"), str(place.parents[1] / "input")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), killed_job.RESTARTS: "1000"}
    with (place / "said").open("wb") as said:
        life = subprocess.Popen(
            [sys.executable, str(PROGRAMS[job].__file__), *arguments],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=environment,
        )
    assert life.stdin is not None
    life.stdin.write(b"go\n")
    life.stdin.close()
    faults: Counter[str] = Counter()
    deadline = time.monotonic() + _PATIENCE_S
    try:
        while life.poll() is None and time.monotonic() < deadline:
            time.sleep(dice.uniform(0, _BETWEEN_FAULTS_S))
            if faults.total() < _FAULTS and planned(place) >= 0 and (found := _processes_of_python(life.pid)):
                faults[_disturb(dice.choice(found), dice)] += 1
    finally:
        if life.poll() is None:
            os.killpg(life.pid, signal.SIGKILL)
        life.wait()
    assert life.returncode == 0, (place / "said").read_text()[-3_000:]
    return faults


def _disturb(process: int, dice: random.Random) -> str:
    """Kill a process, or suspend it for a while; return which."""
    is_killed, seconds = dice.random() < 0.5, dice.uniform(0, 1.5)
    with suppress(ProcessLookupError):  # it has just ended
        if is_killed:
            os.kill(process, signal.SIGKILL)
            return "workers killed"
        os.kill(process, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process, signal.SIGCONT)
        return "workers suspended"
    return "workers that had just ended"


def _processes_of_python(ancestor: int) -> list[int]:
    """The processes of Python below a process and its JVM."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], stdout=subprocess.PIPE, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}
    found = []
    for pid, _, *args in rows:
        above = int(pid)
        while (above := parents.get(above, 0)) > 1 and above != ancestor:
            pass
        if above == ancestor and args and "python" in args[0].split()[0]:
            found.append(int(pid))
    return sorted(found)
