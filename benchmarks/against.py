"""`./run bench --against COMMIT`: the same parts on today's code and on that of a commit, in turn, pair by pair.

Two runs of one benchmark on one machine differ by a third. Two runs that stand side by side differ less, and the ratio
of each pair says how much. Each side runs as a process of its own with its own code, its own benchmarks among it; both
use the packages that are installed here.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.figures import RESULTS, shown

ROOT = Path(__file__).resolve().parent.parent
RATE_UNITS = ("rows/s",)
"""Units of which more is better; of all others, less is."""


@dataclass
class Compared:
    """One figure on both sides, a number for each pair of runs.

    Attributes:
        unit: its unit.
        now: eventide's numbers with today's code.
        then: eventide's numbers with the commit's code.
        beside_now: the numbers beside it in the same runs of today's code, mostly Spark's; empty where there are none.
        beside_then: the numbers beside it in the runs of the commit's code.
    """

    unit: str
    now: list[float] = field(default_factory=list)
    then: list[float] = field(default_factory=list)
    beside_now: list[float] = field(default_factory=list)
    beside_then: list[float] = field(default_factory=list)

    def speeds(self) -> list[float]:
        """How many times as quick as the commit today's code is, by pair.

        >>> Compared("ms", now=[50.0, 100.0], then=[100.0, 100.0]).speeds()
        [2.0, 1.0]
        """
        pairs = zip(self.now, self.then, strict=True)
        return [now / then if self.unit in RATE_UNITS else then / now for now, then in pairs]

    def speeds_beside(self) -> list[float]:
        """How many times as quick the side that did not change was in the runs of today: the noise of the machine."""
        return Compared(self.unit, self.beside_now, self.beside_then).speeds()

    def relative_speed(self) -> float:
        """The median of the ratios of all pairs, divided by that of the side that did not change.

        >>> Compared("ms", now=[80.0], then=[100.0], beside_now=[90.0], beside_then=[90.0]).relative_speed()
        1.25
        >>> Compared("ms", now=[80.0], then=[100.0], beside_now=[72.0], beside_then=[90.0]).relative_speed()
        1.0
        """
        of_machine = statistics.median(self.speeds_beside()) if self.beside_now and self.beside_then else 1.0
        return statistics.median(self.speeds()) / of_machine


def compare(commit: str, arguments: Sequence[str], pairs: int, console: Console, at_least: float = 0.0) -> int:
    """Run both sides in turn, and print the ratios; return the exit code.

    Args:
        commit: git's name of the other side: a hash, a branch, a tag.
        arguments: the arguments of both sides, the names of parts among them.
        pairs: how often each side runs.
        console: where it prints.
        at_least: the relative speed below which a figure is a loss, and the exit code 1.
    """
    found = _git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}")
    if found.returncode != 0:
        console.print(f"git knows no commit {commit!r} here: {found.stderr.strip()}", highlight=False)
        return 2
    then = found.stdout.strip()
    tree = ROOT / "build" / f"against-{then}"
    shutil.rmtree(tree, ignore_errors=True)
    _git("worktree", "prune")
    made = _git("worktree", "add", "--detach", str(tree), then)
    if made.returncode != 0:
        console.print(f"git could not check out {then}: {made.stderr.strip()}", highlight=False)
        return 2
    compared: dict[str, Compared] = {}
    try:
        for pair in range(pairs):
            order = (ROOT, tree) if pair % 2 == 0 else (tree, ROOT)
            for side in order:
                console.print(
                    f"[bold]pair {pair + 1} of {pairs}: {'today' if side == ROOT else then}[/]", highlight=False
                )
                if not _run(side, arguments):
                    console.print(f"the benchmark of {side} failed; see above", highlight=False)
                    return 1
                take(compared, json.loads((side / RESULTS).read_text()), is_now=side == ROOT)
    finally:
        _git("worktree", "remove", "--force", str(tree))
    _show(compared, then, console)
    if _git("diff", "--quiet", then, "--", "benchmarks").returncode != 0:
        console.print(
            f"benchmarks/ has changed since {then}, and each side was measured with its own: see that both measure the "
            "same before you believe a ratio.",
            highlight=False,
        )
    lost = [
        f"{what}: {of.relative_speed():.2f} times as quick as {then}"
        for what, of in compared.items()
        if len(of.now) == len(of.then) and of.relative_speed() < at_least
    ]
    for line in lost:
        console.print(f"[red]slower than --at-least={at_least:g} allows[/]: {line}", highlight=False)
    return 1 if lost else 0


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def _run(side: Path, arguments: Sequence[str]) -> bool:
    (side / RESULTS).unlink(missing_ok=True)
    path = os.pathsep.join([str(side / "src"), str(side)])
    environment = dict(os.environ, PYTHONPATH=path)
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=side, env=environment, check=False).returncode == 0


def take(compared: dict[str, Compared], results: dict[str, Any], *, is_now: bool) -> None:
    """Add the figures of one run, as :func:`benchmarks.figures.store` has written them; races are left out."""
    for part in results["parts"]:
        for line in part["figures"]:
            if "eventide" not in line:
                continue  # a race of several engines
            of = compared.setdefault(f"{part['name']}: {line['what']}", Compared(line["unit"]))
            (of.now if is_now else of.then).append(line["eventide"])
            if line["other"] is not None:
                (of.beside_now if is_now else of.beside_then).append(line["other"])


def _show(compared: dict[str, Compared], then: str, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "today", then, "times as quick, by pair", "median", "of the other side"):
        table.add_column(heading, justify="left" if heading in ("", "times as quick, by pair") else "right")
    for what, of in compared.items():
        if len(of.now) != len(of.then):
            table.add_row(what, "", "", "only one side has it")
            continue
        speeds = of.speeds()
        beside = f"{statistics.median(of.speeds_beside()):.2f}" if of.beside_now and of.beside_then else ""
        table.add_row(
            what,
            shown(statistics.median(of.now), of.unit),
            shown(statistics.median(of.then), of.unit),
            " ".join(f"{speed:.2f}" for speed in speeds),
            f"{statistics.median(speeds):.2f}",
            beside,
        )
    console.print(table)
    console.print(
        "Above 1, today's code is quicker. The last column is the same ratio of what did not change between the two "
        "commits, Spark mostly: as far as it is from 1, the machine was not the same.",
        highlight=False,
    )
