"""Time from nothing to the first result."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import small_jobs
from benchmarks.bench import Bench
from benchmarks.figures import Figure

_ROUNDS = 5
_FILES = 2
_ROWS_PER_FILE = 1_000
_STEP_MS = 20
_PROGRAMS = {"eventide": "of_eventide.py", "Spark": "of_spark.py"}
_NO_COMPILED_MODULES = "PYTHONDONTWRITEBYTECODE"


def first_result(bench: Bench) -> list[Figure]:
    """A small job: from starting Python to the first window's output."""
    files = _small_files(bench.place / "clicks")
    for program in _PROGRAMS.values():
        _seconds_to_first_result(program, files)  # not counted: Python compiles modules at their first import
    taken: dict[str, list[float]] = {side: [] for side in _PROGRAMS}
    for _ in range(_ROUNDS):
        for side, program in _PROGRAMS.items():
            taken[side].append(_seconds_to_first_result(program, files))
    for side, seconds in taken.items():
        bench.say(f"{side}: " + " ".join(f"{took:.2f}" for took in seconds) + " s")
    ours, theirs = (statistics.median(taken[side]) * 1_000 for side in ("eventide", "Spark"))
    return [Figure("the first window's output", "ms", ours, theirs, most=1.3)]


def _small_files(folder: Path) -> Path:
    """A few files of clicks, by 10 users, that cover some windows."""
    folder.mkdir(parents=True)
    for file in range(_FILES):
        rows = range(file * _ROWS_PER_FILE, (file + 1) * _ROWS_PER_FILE)
        clicks = {"user": [f"user-{row % 10}" for row in rows], "ts": [row * _STEP_MS for row in rows]}
        pq.write_table(pa.table(clicks), folder / f"{file}.parquet")
    return folder


def _seconds_to_first_result(program: str, files: Path) -> float:
    """How long a process of Python takes to its first line.

    Raises:
        CalledProcessError: if it fails.
        ValueError: if it has no line.
    """
    command = [sys.executable, "-W", "ignore", str(Path(small_jobs.__file__).with_name(program)), str(files)]
    environment = {name: value for name, value in os.environ.items() if name != _NO_COMPILED_MODULES}
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        took = time.perf_counter() - started
        process.stdout.read()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    if not first:
        raise ValueError(f"{program} gave no result")
    return took
