"""Jobs of every kind for tests that kill them, or stop or part them: their programs, and what they must leave."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from eventide.runtime.metrics import BATCHES_IN_PYTHON
from eventide.spark.checkpoint.state_reader import evidence
from eventide.why import why
from support.spark import killed_job, killed_states

PROGRAMS: dict[str, ModuleType] = {"bounded": killed_job, "function": killed_job, "states": killed_states}
"""The program of each job."""
_ROW_GROUPS_BEYOND_64_BITS = 2 * 2 * (killed_job.FILES // 3)
"""Each of two devices has a file in three, of two row groups, whose numbers get beyond 64 bits."""


def run_here(job: str, place: Path) -> None:
    """Run a job to its end in this process; of one of its functions, some batches must run on columns, and some not."""
    folder = place.parents[1] / "input"
    result = PROGRAMS[job].main(job, str(place / "checkpoint"), str(place / "output"), str(folder))
    if job == "bounded":
        assert 0 < result.metrics["guarded"][BATCHES_IN_PYTHON] <= _ROW_GROUPS_BEYOND_64_BITS


def planned(place: Path) -> int:
    offsets = place / "checkpoint" / "offsets"
    return max((int(f.name) for f in offsets.glob("[0-9]*")), default=-1) if offsets.exists() else -1


def output_of(spark: SparkSession, place: Path) -> dict[str, list[str]]:
    """Read each sink's output, its lines in a defined order."""
    return {path.name: _lines(spark, path) for path in (place / "output").iterdir()}


def _lines(spark: SparkSession, path: Path) -> list[str]:
    if any(path.rglob("*.parquet")):
        rows = spark.read.parquet(str(path)).selectExpr("to_json(struct(*)) AS value")
    else:
        rows = spark.read.text(str(path)).select("value")
    return sorted(row.value for row in rows.collect())


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
    found, expected = (output_of(spark, place) for place in (killed, undisturbed))
    assert sorted(expected) == ["columns", "guarded", "late", "pairs", "processes", "sessions", "totals"]
    assert all(len(lines) > 40 for lines in expected.values())
    assert found == expected


def _check_function(spark: SparkSession, killed: Path, undisturbed: Path) -> None:
    found, expected = (_by_pipeline(output_of(spark, place), "everything") for place in (killed, undisturbed))
    assert len(expected["function"]) > 100
    assert found["function"] == expected["function"]
    for pipelines in (found, expected):
        _check_what_the_clock_decides(pipelines)


def _check_states(spark: SparkSession, killed: Path, undisturbed: Path) -> None:
    found, expected = (output_of(spark, place) for place in (killed, _composed_alike(killed, undisturbed)))
    pipelines = {**_by_pipeline(expected, "functions"), **_by_pipeline(expected, "windows")}
    assert set(pipelines) == killed_states.PIPELINES
    assert all(len(lines) > 100 for lines in pipelines.values())
    writers = Counter(letter.partition(":")[0] for letter in expected["letters"])
    assert writers.keys() == {"check", "remember"}
    assert min(writers.values()) > 30
    assert found == expected


_CHECKS = {"bounded": _check_bounded, "function": _check_function, "states": _check_states}


def _composed_alike(killed: Path, undisturbed: Path) -> Path:
    """Return where an undisturbed job is whose micro-batches have the same files of the DataFrame; run one if need be.

    Spark's source of files notes that it gives a file before Spark plans the micro-batch. If a process dies in between,
    the next start gives a further file in that micro-batch, and functions see its elements before the watermark rises.
    """
    taken = _files_of_the_data_frame(killed)
    if taken == _files_of_the_data_frame(undisturbed):
        return undisturbed
    alike = killed.with_name("composed-alike") / "undisturbed" / killed.name
    for device in ("left", "right"):
        shutil.copytree(undisturbed.parents[1] / "input" / device, alike.parents[1] / "input" / device)
    left = sorted((alike.parents[1] / "input" / "left").iterdir())
    for first, end in taken:
        together = left[first:end]
        if len(together) > 1:
            time = together[0].stat().st_mtime
            pq.write_table(pq.read_table(together), together[0])
            os.utime(together[0], (time, time))
            for file in together[1:]:
                file.unlink()
    run_here(killed.name, alike)
    given = _files_of_the_data_frame(alike)
    assert [first < end for first, end in given] == [first < end for first, end in taken]
    return alike


def _files_of_the_data_frame(place: Path) -> list[tuple[int, int]]:
    """For each micro-batch, the number of the first file of the DataFrame that it takes, and of the first it leaves."""
    offsets = place / "checkpoint" / "offsets"
    plans = [(offsets / str(number)).read_text().splitlines() for number in range(planned(place) + 1)]
    ends = [offset["logOffset"] + 1 for plan in plans for offset in map(json.loads, plan[1:]) if "logOffset" in offset]
    return list(pairwise([0, *ends]))


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
