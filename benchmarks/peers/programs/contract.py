"""Arguments and reports of every program: standard library only, because all environments run it.

    PYTHON of_ENGINE.py PROGRAM EVENTS LITTLE OUT

The folder EVENTS has the events, and LITTLE a few of them; results go into files below OUT. A line of JSON on standard
output says when processing started and when the last result was there, in seconds since the epoch.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CORES = 2
BATCHES = 4
"""How many micro-batches the events make, for engines that have them."""

LEAST_VALUE = 900
"""The stateless program keeps events with at least this value: (user in capitals, value doubled)."""
WINDOW_MS = 10_000
"""Tumbling windows: (user, start, sum of values). The process function has periods of this length."""
GAP_MS = 1_000
"""Sessions: (user, time of the first event, sum of values)."""
WITHIN_MS = 2_000
"""The join: (event, value, value of the answer), for answers that come no later than this."""
BOUND_MS = 2_000
"""How far watermarks stay behind."""

Job = Callable[[], object]
"""Runs a program to its end."""
Program = Callable[[Path, Path], Job]
"""Builds the job that reads below one folder and writes below another."""


def main(programs: Mapping[str, Program], *, warm_up: bool = False) -> None:
    """Run the program that the command line names, and say how long it took.

    Args:
        programs: by their names.
        warm_up: whether it first runs on a few events, because the first job of a JVM is slow.
    """
    name, events, little, out = sys.argv[1:]
    program = programs[name]
    if warm_up:
        program(Path(little), Path(out, "warm"))()
    job = program(Path(events), Path(out, "results"))
    started = time.time()
    job()
    say(started, time.time())


def say(started: float, ended: float) -> None:
    """Tell the race when processing started and ended."""
    print(json.dumps({"started": started, "ended": ended}), flush=True)


def in_processes(work: Callable[..., object], *arguments: Any) -> tuple[float, list[Any]]:
    """Call a function in a process for each core, with the number of the process.

    Returns:
        When all processes were ready to call it, and what the calls returned.
    """
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(CORES + 1), context.SimpleQueue()
    processes = [
        context.Process(target=_in_process, args=(work, number, arguments, ready, results)) for number in range(CORES)
    ]
    for process in processes:
        process.start()
    ready.wait()
    started = time.time()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit(f"a process ended with code {max(abs(process.exitcode) for process in processes)}")
    return started, [results.get() for _ in processes]


def _in_process(work: Callable[..., object], number: int, arguments: tuple[Any, ...], ready: Any, results: Any) -> None:
    ready.wait()
    results.put(work(number, *arguments))
