"""A job that is killed with SIGKILL again and again gives the output of one that was left alone, byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.errors import StateError
from eventide.spark.checkpoint.savepoint import take_savepoint
from eventide.spark.checkpoint.state_reader import evidence
from eventide.why import why
from support.spark import killed_job, killed_states

PROGRAMS: dict[str, ModuleType] = {"bounded": killed_job, "function": killed_job, "states": killed_states}
"""The program of each job."""

_PATIENCE_S = 400
_MOST_KILLS = 5
"""A job ends at some time; further kills are those of another one."""

_GO = b"go\n"
_FURTHER_BATCHES = 2
"""A life ends at the latest when it has planned so many micro-batches, so that the job has something left to do."""


@pytest.mark.spark
@pytest.mark.kill
def test_killed_at_random_moments_a_job_gives_the_undisturbed_output(
    spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config
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
                _run_here(job, place)
            assert list(codes) == [0] * len(killed)
        check(spark, killed, undisturbed)


@pytest.mark.spark
@pytest.mark.kill
def test_a_job_that_was_killed_goes_on_from_a_savepoint_with_another_parallelism_and_is_killed_again(
    spark: SparkSession, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The job is killed until no sink has results of the micro-batch that it died in; with `--kills=50`, ten times."""
    job = "bounded"
    killed_job.write_input(tmp_path / "input")
    undisturbed = tmp_path / "undisturbed" / job
    _run_here(job, undisturbed)
    expected = _output(spark, undisturbed)
    kills, seed = (pytestconfig.getoption(option) for option in ("--kills", "--seed"))
    for series in range(0, kills, _MOST_KILLS):
        moments = random.Random(f"{seed} savepoint {series}")
        before, after = (tmp_path / f"series-{series}" / name for name in ("before", "after"))
        saved = str(tmp_path / f"series-{series}" / "saved")
        _killed_until_it_can_be_saved(spark, job, before, moments, saved)
        assert _killed_again_and_again(job, after, moments, 1, "3", saved) == 0
        found = _output(spark, before)
        for sink, lines in _output(spark, after).items():
            found[sink] = sorted([*found.get(sink, []), *lines])
        assert found == expected, f"--seed={seed}, series {series}"


def _killed_until_it_can_be_saved(
    spark: SparkSession, job: str, place: Path, moments: random.Random, saved: str
) -> None:
    """Kill a job in mid work, again if its sinks may have some of a micro-batch that is not finished; then save it."""
    place.mkdir(parents=True)
    for _ in range(_MOST_KILLS):
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
            return
    pytest.fail(f"killed {_MOST_KILLS} times, each time when there was nothing to save: {refused}")


def _run_here(job: str, place: Path) -> None:
    """Run a job to its end in this process."""
    folder = place.parents[1] / "input"
    PROGRAMS[job].main(job, str(place / "checkpoint"), str(place / "output"), str(folder))


def check(
    spark: SparkSession,
    killed: dict[str, Path],
    undisturbed: dict[str, Path],
    said: Callable[[str], dict[str, Any]] | None = None,
) -> None:
    """Compare what jobs have left, some killed and the same undisturbed; ``said`` has what is said of one elsewhere."""
    for job, place in killed.items():
        _CHECKS[job](spark, place, undisturbed[job])
        if job == "bounded":
            told = _remembered(_why(spark, place) if said is None else said(job))
            expected = _remembered(_why(spark, undisturbed[job]))
            assert len(expected) > 3
            assert told == expected


def _check_bounded(spark: SparkSession, killed: Path, undisturbed: Path) -> None:
    found, expected = (_output(spark, place) for place in (killed, undisturbed))
    assert sorted(expected) == ["columns", "late", "pairs", "processes", "sessions", "totals"]
    assert all(len(lines) > 40 for lines in expected.values())
    assert found == expected


def _check_function(spark: SparkSession, killed: Path, undisturbed: Path) -> None:
    found, expected = (_by_pipeline(_output(spark, place), "everything") for place in (killed, undisturbed))
    assert len(expected["function"]) > 100
    assert found["function"] == expected["function"]
    for pipelines in (found, expected):
        _check_what_the_clock_decides(pipelines)


def _check_states(spark: SparkSession, killed: Path, undisturbed: Path) -> None:
    found, expected = (_output(spark, place) for place in (killed, undisturbed))
    pipelines = {**_by_pipeline(expected, "functions"), **_by_pipeline(expected, "windows")}
    assert set(pipelines) == killed_states.PIPELINES
    assert all(len(lines) > 100 for lines in pipelines.values())
    writers = Counter(letter.partition(":")[0] for letter in expected["letters"])
    assert writers.keys() == {"check", "remember"}
    assert min(writers.values()) > 30
    assert found == expected


_CHECKS = {"bounded": _check_bounded, "function": _check_function, "states": _check_states}


def _check_what_the_clock_decides(pipelines: dict[str, list[dict[str, Any]]]) -> None:
    """Windows and idleness by the clock differ from run to run; but every element comes out once."""
    by_clock = sorted(line["n"] for line in pipelines["clock"])
    assert by_clock == list(range(killed_job.CLOCKED))
    assert len({line["start"] for line in pipelines["clock"]}) > 3
    in_time = [line["n"] for line in pipelines["in time"]]
    late = [line["n"] for line in pipelines["late"]]
    assert sorted(in_time + late) == list(range(-killed_job.TACITURN, killed_job.ROWS))
    assert all(line["start"] == _time_of(line) // 700 * 700 for line in pipelines["in time"])
    assert min(late) < 0, "the split that fell silent must be idle, so that what it says in the end is late"


def _time_of(line: dict[str, Any]) -> int:
    """When the event of a line of the split that is silent, or of the other one, was."""
    n = line["n"]
    return int(killed_job.event(n if n >= 0 else -1 - n)["ts"])


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
    before = _planned(place)
    assert life.stdin is not None
    life.stdin.write(_GO)
    life.stdin.flush()
    deadline = time.monotonic() + _PATIENCE_S
    while _planned(place) <= before and life.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    moment = time.monotonic() + seconds
    while _planned(place) < before + _FURTHER_BATCHES and time.monotonic() < moment:
        time.sleep(0.02)
    assert _planned(place) > before, "the job did not get any further"
    assert life.poll() is None, "the job ended before it could be killed; give it more to do"
    _kill(life)


def _end(life: subprocess.Popen[bytes]) -> None:
    """Kill a life that has not ended."""
    if life.poll() is None:
        _kill(life)


def _kill(life: subprocess.Popen[bytes]) -> None:
    os.killpg(life.pid, signal.SIGKILL)
    life.communicate()


def _planned(place: Path) -> int:
    offsets = place / "checkpoint" / "offsets"
    return max((int(f.name) for f in offsets.glob("[0-9]*")), default=-1) if offsets.exists() else -1


def _output(spark: SparkSession, place: Path) -> dict[str, list[str]]:
    """Read each sink's output, its lines in a defined order."""
    return {path.name: _lines(spark, path) for path in (place / "output").iterdir()}


def _lines(spark: SparkSession, path: Path) -> list[str]:
    if any(path.rglob("*.parquet")):
        rows = spark.read.parquet(str(path)).selectExpr("to_json(struct(*)) AS value")
    else:
        rows = spark.read.text(str(path)).select("value")
    return sorted(row.value for row in rows.collect())


def _why(spark: SparkSession, place: Path) -> dict[str, Any]:
    """Return the checkpoint's answer to why, as the command line prints it."""
    said: dict[str, Any] = json.loads(json.dumps(why(evidence(spark, str(place / "checkpoint"), asked_ms=0)).to_json()))
    return said


def _remembered(said: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a checkpoint has told of its operators, but for times by the clock."""
    for operator in said["operators"]:
        for one in (operator, *operator["splits"]):
            del one["heard_ms"]
        if operator["late"] is not None:
            operator["late"]["last"] = [[one["timestamp"], one["watermark"]] for one in operator["late"]["last"]]
    operators: list[dict[str, Any]] = said["operators"]
    return operators


def _by_pipeline(output: dict[str, list[str]], sink: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of a sink of a job, by the pipeline that they name."""
    pipelines = defaultdict(list)
    for line in map(json.loads, output[sink]):
        pipelines[line["pipeline"]].append(line)
    return dict(pipelines)
