"""A job that is killed with SIGKILL again and again gives the output of one that was left alone, byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark import killed_job

from eventide.spark.evidence import evidence
from eventide.why import why

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
    """Elements and columns with several sinks, a function and the clock with one; `--kills=50` for long."""
    killed_job.write_input(tmp_path / "input")
    undisturbed = {job: tmp_path / "undisturbed" / job for job in killed_job.JOBS}
    kills = pytestconfig.getoption("--kills")
    for series in range(0, kills, _MOST_KILLS):
        killed = {job: tmp_path / f"killed-{series}" / job for job in killed_job.JOBS}
        with ThreadPoolExecutor(len(killed)) as pool:
            moments = [random.Random(f"{job} {series}") for job in killed]
            times = [min(_MOST_KILLS, kills - series)] * len(killed)
            codes = pool.map(_killed_again_and_again, killed, killed.values(), moments, times)
            for job, place in undisturbed.items() if series == 0 else ():
                killed_job.main(job, str(place / "checkpoint"), str(place / "output"), str(tmp_path / "input"))
            assert list(codes) == [0, 0]
        check(spark, killed, undisturbed)


def check(spark: SparkSession, killed: dict[str, Path], undisturbed: dict[str, Path]) -> None:
    found, expected = (_output(spark, places["bounded"]) for places in (killed, undisturbed))
    assert sorted(expected) == ["columns", "late", "pairs", "processes", "sessions", "totals"]
    assert all(len(lines) > 40 for lines in expected.values())
    assert found == expected
    told, expected_told = (_remembered(spark, places["bounded"]) for places in (killed, undisturbed))
    assert len(expected_told) > 3
    assert told == expected_told

    by_pipeline, expected_by_pipeline = (_by_pipeline(_output(spark, p["function"])) for p in (killed, undisturbed))
    assert len(expected_by_pipeline["function"]) > 100
    assert by_pipeline["function"] == expected_by_pipeline["function"]
    for pipelines in (by_pipeline, expected_by_pipeline):
        _check_what_the_clock_decides(pipelines)


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


def _killed_again_and_again(job: str, place: Path, moments: random.Random, times: int) -> int:
    """Kill a job so many times, then let it end; return its exit code."""
    place.mkdir(parents=True)
    lives = [_start(job, place)]
    try:
        for _ in range(times):
            lives.append(_start(job, place))
            _kill_in_mid_work(lives[-2], place, moments.uniform(0, 1))
        lives[-1].communicate(_GO, _PATIENCE_S)
        return lives[-1].returncode
    finally:
        for life in lives:
            if life.poll() is None:
                _kill(life)


def _start(job: str, place: Path) -> subprocess.Popen[bytes]:
    """Start a process for a job, which begins to work when it is told so.

    Its many Python processes need not all compile the same modules, even where the tests write no compiled ones.
    """
    root = place.parent.parent
    arguments = [job, str(place / "checkpoint"), str(place / "output"), str(root / "input")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONPYCACHEPREFIX": str(root / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, killed_job.__file__, *arguments]
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


def _kill(life: subprocess.Popen[bytes]) -> None:
    os.killpg(life.pid, signal.SIGKILL)
    life.communicate()


def _planned(place: Path) -> int:
    offsets = place / "checkpoint" / "offsets"
    return max((int(f.name) for f in offsets.glob("[0-9]*")), default=-1) if offsets.exists() else -1


def _output(spark: SparkSession, place: Path) -> dict[str, list[str]]:
    """What a reader of each sink's output gets, its lines in a defined order."""
    sinks = {path.name: spark.read.text(str(path)).select("value").collect() for path in (place / "output").iterdir()}
    return {name: sorted(row.value for row in rows) for name, rows in sinks.items()}


def _remembered(spark: SparkSession, place: Path) -> list[dict[str, Any]]:
    """What the checkpoint tells who asks why, but for times by the clock."""
    said = why(evidence(spark, str(place / "checkpoint"), asked_ms=0)).to_json()
    for operator in said["operators"]:
        for one in (operator, *operator["splits"]):
            del one["heard_ms"]
        if operator["late"] is not None:
            operator["late"]["last"] = [[one["timestamp"], one["watermark"]] for one in operator["late"]["last"]]
    operators: list[dict[str, Any]] = said["operators"]
    return operators


def _by_pipeline(output: dict[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """The lines of the one sink of a job, by the pipeline that they name."""
    pipelines = defaultdict(list)
    for line in map(json.loads, output["everything"]):
        pipelines[line["pipeline"]].append(line)
    return dict(pipelines)
