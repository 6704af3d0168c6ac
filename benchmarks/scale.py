"""A model of what a large job needs, from the cost of one row, key, subtask, split and micro-batch.

`python -m benchmarks.scale` prints it for costs that are given, or that stand in the figures of a benchmark's run. The
time of a micro-batch has a part that more cores do not shorten, and one that they share:

    alone(load)  = batch_ms + splits * split_ms + stages * subtasks * launch_ms
    shared(load) = stages * subtasks * task_ms + rows * row_us + touched keys * key_us
    time         = alone + shared / cores

A job keeps up if a micro-batch of an interval's rows takes no longer than that interval.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import RESULTS

GB = 1 << 30
MOST_OF_A_SUBTASK = 2 * GB
"""Spark takes no more of one subtask in a micro-batch."""

EMPTY_TASK = "a task of Spark's that does nothing"

_REPORTS = 1_000
"""How many reports of progress Spark keeps; a job of eventide has it keep fewer of large ones."""


@dataclass(frozen=True)
class Costs:
    """Unit costs, of one core where cores share the work.

    Attributes:
        batch_ms: a micro-batch in which next to nothing happens.
        task_ms: a task of a stage with a subtask that has nothing to do.
        launch_ms: a task's start and end in the driver, which handles one after the other.
        row_us: a row, from its source into a sum of few keys.
        key_us: a key that a micro-batch touches: grouped, sent, stored.
        split_ms: a split, where micro-batches are planned.
        state_bytes: the state of a key.
        row_bytes: a row on its way through the shuffle.
        report_bytes: where a split stands, in a report of progress, which says so three times.
    """

    batch_ms: float
    task_ms: float
    row_us: float
    key_us: float
    split_ms: float
    launch_ms: float = 1.0
    state_bytes: float = 50
    row_bytes: float = 40
    report_bytes: float = 10


@dataclass(frozen=True)
class Load:
    """A job, and what comes to it."""

    rows_per_s: float
    keys: float
    subtasks: int
    splits: int
    stages: int = 1

    def touched(self, interval_s: float) -> float:
        """How many keys the rows of an interval touch, if each may be of any.

        >>> Load(rows_per_s=100, keys=1, subtasks=1, splits=1).touched(1)
        1.0
        """
        rows = self.rows_per_s * interval_s
        return float(self.keys * -math.expm1(-rows / self.keys))


def alone_ms(costs: Costs, load: Load) -> float:
    """The part of a micro-batch that more cores do not shorten."""
    return costs.batch_ms + load.splits * costs.split_ms + load.stages * load.subtasks * costs.launch_ms


def shared_ms(costs: Costs, load: Load, interval_s: float) -> float:
    """The work of a micro-batch that cores share, in milliseconds of one core."""
    rows = load.rows_per_s * interval_s * costs.row_us + load.touched(interval_s) * costs.key_us
    return load.stages * load.subtasks * costs.task_ms + rows / 1_000


def time_ms(costs: Costs, load: Load, interval_s: float, cores: float) -> float:
    """The time of a micro-batch that has the rows of an interval."""
    return alone_ms(costs, load) + shared_ms(costs, load, interval_s) / cores


def least_interval_s(costs: Costs, load: Load, cores: float) -> float | None:
    """The shortest interval at which a job keeps up; None if it never does: its rows alone are too many.

    >>> costs = Costs(batch_ms=500, task_ms=0, row_us=1, key_us=0, split_ms=0, launch_ms=0)
    >>> least_interval_s(costs, Load(rows_per_s=500_000, keys=1, subtasks=1, splits=1), cores=1)
    1.0
    """
    at = alone_ms(costs, load) / 1_000
    for _ in range(10_000):
        takes = time_ms(costs, load, at, cores) / 1_000
        if takes <= at * (1 + 1e-9):
            return round(takes, 6)
        if takes > 86_400:
            return None
        at = takes
    return None


def cores_for(costs: Costs, load: Load, interval_s: float) -> float | None:
    """How many cores keep up at an interval; None if none do, because of what they do not share."""
    left = interval_s * 1_000 - alone_ms(costs, load)
    return shared_ms(costs, load, interval_s) / left if left > 0 else None


@dataclass(frozen=True)
class Need:
    """One line of the answer: what is needed, and how much of what there may be that is."""

    what: str
    needs: str
    limit: str
    share: float


def needs(costs: Costs, load: Load, interval_s: float, driver_gb: float = 4, disk_gb: float = 100) -> list[Need]:
    """The needs of a job at an interval, and the nearest limit: where the share is largest, it breaks first.

    Args:
        costs: the unit costs.
        load: the job.
        interval_s: how often results come.
        driver_gb: the memory of the driver.
        disk_gb: the disk of one executor core.
    """
    cores = cores_for(costs, load, interval_s)
    alone = alone_ms(costs, load)
    rows = load.rows_per_s * interval_s
    per_subtask = rows * costs.row_bytes / load.subtasks
    state = load.keys * costs.state_bytes
    of_driver = load.splits * costs.report_bytes * _REPORTS
    budget = interval_s * 1_000
    lines = [
        Need(
            "driver: planning, tasks, the micro-batch itself", f"{alone:,.0f} ms", f"{budget:,.0f} ms", alone / budget
        ),
        Need(
            "driver: offsets in reports of progress",
            _bytes(of_driver),
            _bytes(driver_gb * GB),
            of_driver / driver_gb / GB,
        ),
        Need(
            "a subtask's input in a micro-batch",
            _bytes(per_subtask),
            _bytes(MOST_OF_A_SUBTASK),
            per_subtask / MOST_OF_A_SUBTASK,
        ),
        Need(
            "state of a subtask",
            _bytes(state / load.subtasks),
            _bytes(disk_gb * GB),
            state / load.subtasks / disk_gb / GB,
        ),
    ]
    if cores is not None:
        tasks = load.stages * load.subtasks * costs.task_ms / shared_ms(costs, load, interval_s)
        lines.insert(0, Need("cores", f"{cores:,.0f}", f"{load.subtasks:,} subtasks", cores / load.subtasks))
        lines.insert(1, Need("of these, for tasks with nothing to do", f"{cores * tasks:,.0f}", "", tasks))
    return lines


def _bytes(number: float) -> str:
    for unit, size in (("TB", 1 << 40), ("GB", GB), ("MB", 1 << 20), ("kB", 1 << 10)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number:,.0f} bytes"


def fitted(took_ms: Mapping[int, float], cores: float) -> tuple[float, float]:
    """The cost of a micro-batch, and of a task, from micro-batches with few and with many tasks.

    Args:
        took_ms: the time of a micro-batch, by the number of its tasks.
        cores: those that shared the work.

    >>> fitted({2: 300.0, 202: 1_300.0}, cores=2)
    (290.0, 10.0)
    """
    few, many = min(took_ms), max(took_ms)
    task = (took_ms[many] - took_ms[few]) / (many - few) * cores
    return took_ms[few] - few * task / cores, task


def costs_of(results: Mapping[str, Any], known: Costs) -> Costs:
    """Unit costs from the figures of a benchmark's run, for as many of them as were measured; others as they are known.

    Args:
        results: the content of the run's file.
        known: the costs that the run may not have.
    """
    cores = int(results["machine"]["cores"])
    parts = {part["name"]: {one["what"]: one for one in part["figures"]} for part in results["parts"]}
    found: dict[str, float] = {}
    if "subtasks" in parts:
        ms = {what: one["eventide"] for what, one in parts["subtasks"].items()}
        found["launch_ms"] = ms.pop(EMPTY_TASK, known.launch_ms)
        took = {int(what.split()[0].replace(",", "")): each for what, each in ms.items()}
        found["batch_ms"], found["task_ms"] = fitted(took, cores)
    if "many-splits" in parts:
        one, many, report = (
            parts["many-splits"][what]["eventide"]
            for what in ("1 splits", "10,000 splits", "10,000 splits: a report of progress")
        )
        found["split_ms"], found["report_bytes"] = max(0.0, (many - one) / 9_999), report * 1_000 / 10_000
    if "keys" in parts:
        few, many_keys = parts["keys"]["1,000 keys"], parts["keys"]["1,000,000 keys"]
        found["row_us"] = cores * 1e6 / few["eventide"]
        found["key_us"] = cores * 1e6 / many_keys["eventide"] - found["row_us"]
    return replace(known, **found)


PUBLISHED = Costs(batch_ms=97, task_ms=43, row_us=0.28, key_us=2.5, split_ms=0.14, launch_ms=1.8)
"""Costs by the figures of docs/benchmarks.md, of two cores, and by docs/scale.md, which says how each was found."""

LARGE = Load(rows_per_s=10_000_000, keys=1_000_000_000, subtasks=1_000, splits=10_000)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, help=f"the figures of a run, such as {RESULTS}")
    parser.add_argument("--interval", type=float, default=10.0, metavar="S", help="how often results come; 10 s")
    for kind, known in (("cost", PUBLISHED), ("load", LARGE)):
        for field in fields(known):
            given = getattr(known, field.name)
            parser.add_argument(
                f"--{field.name.replace('_', '-')}", type=type(given), help=f"{kind}; {given:,} if it is not given"
            )
    options = vars(parser.parse_args(arguments))
    costs = PUBLISHED if options["results"] is None else costs_of(json.loads(options["results"].read_text()), PUBLISHED)
    costs, load = (replace(known, **_given(options, known)) for known in (costs, LARGE))
    show(costs, load, options["interval"], Console() if sys.stdout.isatty() else Console(width=120))
    return 0


def _given(options: Mapping[str, Any], known: Costs | Load) -> dict[str, Any]:
    return {field.name: options[field.name] for field in fields(known) if options[field.name] is not None}


def show(costs: Costs, load: Load, interval_s: float, console: Console) -> None:
    """Print costs, load, and what follows from them."""
    for name, one in (("costs", costs), ("load", load)):
        said = ", ".join(f"{field.name} {getattr(one, field.name):,.6g}" for field in fields(one))
        console.print(f"{name}: {said}", highlight=False)
    table = Table(box=None, pad_edge=False)
    for title in ("what", "needs", "limit", "share"):
        table.add_column(title, justify="left" if title == "what" else "right")
    lines = needs(costs, load, interval_s)
    for line in lines:
        table.add_row(line.what, line.needs, line.limit, f"{line.share:.0%}")
    console.print(table)
    limits = [line for line in lines if line.limit]
    console.print(f"breaks first: {max(limits, key=lambda line: line.share).what}", highlight=False)
    cores = cores_for(costs, load, interval_s)
    if cores is not None:
        shortest = least_interval_s(costs, load, 2 * cores)
        at_best = "" if shortest is None else f"; with twice as many, every {shortest:,.1f} s is as often as it goes"
        console.print(f"{cores:,.0f} cores give results every {interval_s:g} s{at_best}", highlight=False)
    else:
        console.print(
            f"no number of cores gives results every {interval_s:g} s: what they do not share takes longer",
            highlight=False,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
