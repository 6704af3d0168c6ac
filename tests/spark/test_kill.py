"""A job that is killed with SIGKILL again and again gives the output of one that was left alone, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark import killed_job

_PATIENCE_S = 400
_SINKS = {"one": ["totals"], "several": ["late", "sessions", "totals"]}


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the job gives when nobody disturbs it, by sink."""
    place = tmp_path_factory.mktemp("undisturbed")
    killed_job.main(str(place / "checkpoint"), str(place / "output"), "several")
    output = _output(spark, place)
    assert all(len(lines) > 1_000 for lines in output.values())
    return output


@pytest.mark.spark
def test_killed_at_ten_random_moments_a_job_gives_the_undisturbed_output(
    spark: SparkSession, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """One file sink and several: ten kills each, side by side."""
    places = {sinks: tmp_path / sinks for sinks in _SINKS}
    with ThreadPoolExecutor(len(places)) as pool:
        codes = list(pool.map(_killed_ten_times, places.values(), places))
    assert codes == [0, 0]
    for sinks, place in places.items():
        assert _output(spark, place) == {name: undisturbed[name] for name in _SINKS[sinks]}


def _killed_ten_times(place: Path, sinks: str) -> int:
    """Kill a job again and again, then let it end; return its exit code."""
    place.mkdir()
    moments = random.Random(sinks)
    for _ in range(10):
        _kill_in_mid_work(place, sinks, moments)
    return _start(place, sinks).wait(_PATIENCE_S)


def _start(place: Path, sinks: str) -> subprocess.Popen[bytes]:
    arguments = [str(place / "checkpoint"), str(place / "output"), sinks]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, killed_job.__file__, *arguments], start_new_session=True, env=environment)


def _kill_in_mid_work(place: Path, sinks: str, moments: random.Random) -> None:
    """Kill the job, JVM and all, some moments after it has planned a micro-batch that it had not planned before."""
    before = _planned(place)
    job = _start(place, sinks)
    deadline = time.monotonic() + _PATIENCE_S
    while _planned(place) <= before and job.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(moments.uniform(0, 1))
    assert job.poll() is None, "the job ended before it could be killed; give it more to do"
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def _planned(place: Path) -> int:
    offsets = place / "checkpoint" / "offsets"
    return max((int(f.name) for f in offsets.glob("[0-9]*")), default=-1) if offsets.exists() else -1


def _output(spark: SparkSession, place: Path) -> dict[str, bytes]:
    """What a reader of each sink's output gets, its lines in a defined order."""
    sinks = {path.name: spark.read.text(str(path)).select("value").collect() for path in (place / "output").iterdir()}
    return {name: "\n".join(sorted(row.value for row in rows)).encode() for name, rows in sinks.items()}
