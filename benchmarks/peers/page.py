"""The figures of a run: stored as JSON, shown on a terminal, and put into docs/peers.md."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table

from benchmarks.figures import shown
from benchmarks.page import put
from benchmarks.peers.race import Cell

PAGE = Path("docs/peers.md")
RESULTS = Path("build/peers.json")
OURS = "eventide"
TITLES = {
    "stateless": "map and filter with lambdas",
    "tumbling": "tumbling sum by key",
    "sessions": "sessions",
    "process": "process function with state and timer",
    "join": "interval join",
}
_ANSWERS = 1.5
"""How many rows the join reads for each event: half of them have an answer."""


@dataclass(frozen=True)
class Outcome:
    """All that a run found.

    Attributes:
        events: how many there were.
        versions: of the engines.
        machine: on which it ran.
        cells: one for each engine and program.
    """

    events: int
    versions: dict[str, str]
    machine: dict[str, str]
    cells: list[Cell]

    def store(self) -> None:
        """Write it where :meth:`read` finds it."""
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls) -> Self:
        """The outcome of the last run."""
        stored = json.loads(RESULTS.read_text())
        return cls(**{**stored, "cells": [Cell(**cell) for cell in stored["cells"]]})

    def rate(self, cell: Cell) -> float | None:
        """Rows a second."""
        return None if cell.seconds is None else self.events * self._rows(cell.program) / cell.seconds

    def rows(self) -> list[tuple[str, list[str]]]:
        """For each program, the texts of its cells, in rows a second; the first of all is in bold."""
        lines = []
        for program in self._programs():
            rates = [self.rate(cell) for cell in self._of(program)]
            best = max((rate for rate in rates if rate is not None), default=0)
            texts = ["" if rate is None else shown(rate, "rows/s").removesuffix(" rows/s") for rate in rates]
            bold = [f"**{text}**" if rate == best else text for rate, text in zip(rates, texts, strict=True)]
            lines.append((TITLES[program], bold))
        return lines

    def firsts(self) -> str:
        """In how many programs eventide is first, and how many cells of the others it beats."""
        first, faster, others = 0, 0, 0
        for program in self._programs():
            rates = {cell.engine: self.rate(cell) or 0.0 for cell in self._of(program)}
            ours = rates.pop(OURS, 0.0)
            beside = [rate for rate in rates.values() if rate]
            first += ours > max(beside, default=0.0)
            faster += sum(ours > rate for rate in beside)
            others += len(beside)
        programs = len(self._programs())
        return f"{OURS} is first in {first} of {programs} programs, and faster than {faster} of {others} other cells."

    def starts(self) -> list[tuple[str, str, str]]:
        """Each engine with its version, and its shortest and longest start in seconds."""
        lines = []
        for engine, version in self.versions.items():
            starts = [cell.start_s for cell in self.cells if cell.engine == engine and cell.start_s is not None]
            lines.append((engine, version, f"{min(starts):.1f} to {max(starts):.1f} s" if starts else ""))
        return lines

    def notes(self) -> list[str]:
        """Why cells are empty."""
        return [f"{cell.engine}, {TITLES[cell.program]}: {cell.note}." for cell in self.cells if cell.note]

    def _programs(self) -> list[str]:
        return list(dict.fromkeys(cell.program for cell in self.cells))

    def _of(self, program: str) -> list[Cell]:
        known = {cell.engine: cell for cell in self.cells if cell.program == program}
        return [known.get(engine, Cell(program, engine)) for engine in self.versions]

    def _rows(self, program: str) -> float:
        return _ANSWERS if program == "join" else 1


def show(outcome: Outcome, console: Console) -> None:
    """Print all."""
    table = Table("rows a second", *outcome.versions, box=None, pad_edge=False)
    for title, texts in outcome.rows():
        table.add_row(title, *(text.replace("**", "") for text in texts))
    console.print(table)
    console.print(outcome.firsts(), *outcome.notes(), sep="\n", highlight=False)


def write() -> None:
    """Fill the page with the last run."""
    text, _ = put(PAGE.read_text(), texts(Outcome.read()))
    PAGE.write_text(text)


def texts(outcome: Outcome) -> dict[str, str]:
    """Return the text between each pair of markers of the page."""
    machine = outcome.machine
    titles, columns = zip(*outcome.rows(), strict=True)
    engines = zip(outcome.versions, *columns, strict=True)  # a row for each, which is not too wide for a page
    return {
        "peers-machine": (
            f"Measured with {outcome.events:,} events, on {machine['cores']} cores ({machine['cpu']}), with Python "
            f"{machine['python']}."
        ),
        "peers": "\n".join(
            [_row(["rows a second", *titles]), "|---" + "|---:" * len(titles) + "|"]
            + [_row(list(cells)) for cells in engines]
            + ["", outcome.firsts()]
        ),
        "peers-empty": "\n".join(f"- {note}" for note in outcome.notes()),
        "peers-starts": "\n".join(
            [_row(["engine", "version", "start"]), "|---|---|---:|", *map(_row, map(list, outcome.starts()))]
        ),
    }


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
