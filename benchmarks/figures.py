"""A figure, and how figures are shown and kept."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal

from rich.console import Console
from rich.table import Table

from benchmarks.sizes import Sizes

RESULTS = Path("build/benchmark.json")
HEADINGS = {"what": 44, "eventide": 16, "compared with": 24, "ratio": 6, "aim": 12}
"""The columns of a table of figures, with their least width on a terminal."""
RACE_HEADINGS = {"what": 32, "eventide": 16, "Spark": 16, "Flink": 16, "which system can't, and why": 12}
"""The columns of a table of races."""
NUMBERS = ("eventide", "ratio", "Spark", "Flink")
DERIVED = ("ratio", "is_met")
"""Properties of a figure that stand in JSON beside its fields."""


@dataclass(frozen=True)
class Figure:
    """One line: what eventide has, and what stands beside it.

    Attributes:
        what: the thing that was measured.
        unit: of both numbers: "rows/s", "ms", "min", "bytes", "MB", "rows" or "micro-batches".
        eventide: the number.
        other: the number beside it, if there is one.
        beside: the engine of the other number.
        least: the least that eventide's number should be, or the ratio where there is one.
        most: the most that it should be.
    """

    what: str
    unit: str
    eventide: float
    other: float | None = None
    beside: str = "Spark"
    least: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the other's; None where there is no other, or what is counted is too few for a ratio."""
        return self.eventide / self.other if self.other and self.unit != "micro-batches" else None

    @property
    def judged(self) -> float:
        """The number that the aim is about."""
        return self.eventide if self.ratio is None else self.ratio

    @property
    def is_met(self) -> bool:
        """Whether the figure reaches its aim."""
        return (self.least is None or self.judged >= self.least) and (self.most is None or self.judged <= self.most)

    def cells(self) -> tuple[str, ...]:
        """The texts of its row in a table."""
        other = "" if self.other is None else f"{self.beside}: {shown(self.other, self.unit)}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return (self.what, shown(self.eventide, self.unit), other, ratio, self._aim())

    def _aim(self) -> str:
        unit = "" if self.ratio is not None else self.unit
        least = [] if self.least is None else [f"at least {shown(self.least, unit)}"]
        most = [] if self.most is None else [f"at most {shown(self.most, unit)}"]
        return ", ".join(least + most)


@dataclass(frozen=True)
class Race:
    """One line: what each of several engines has, in rows a second.

    Attributes:
        what: the thing that was measured.
        rates: the numbers, by engine; one that has none was not measured.
        note: which engine can't, and why.
    """

    what: str
    rates: dict[str, float]
    note: str = ""
    is_met: ClassVar[bool] = True

    def cells(self) -> tuple[str, ...]:
        """The texts of its row in a table."""
        engines = list(RACE_HEADINGS)[1:-1]
        rates = (shown(self.rates[engine], "rows/s") if engine in self.rates else "" for engine in engines)
        return (self.what, *rates, self.note)


Line = Figure | Race


def headings_of(lines: Sequence[Line]) -> dict[str, int]:
    """The headings of the table that lines make, with their least widths."""
    return RACE_HEADINGS if lines and isinstance(lines[0], Race) else HEADINGS


def as_json(line: Line) -> dict[str, Any]:
    """Return a line as it is stored: its fields, and what follows from them."""
    return asdict(line) | ({} if isinstance(line, Race) else {name: getattr(line, name) for name in DERIVED})


def from_json(stored: dict[str, Any]) -> Line:
    """The line of which this was stored.

    >>> from_json(as_json(Race("bids", {"eventide": 3_000_000, "Flink": 400.4}, "Spark: why"))).cells()
    ('bids', '3.00 M rows/s', '', '400 rows/s', 'Spark: why')
    """
    fields = {name: value for name, value in stored.items() if name not in DERIVED}
    return Race(**fields) if "rates" in fields else Figure(**fields)


def shown(number: float, unit: str) -> str:
    """A number with its unit, for a person.

    >>> shown(5_250_000, "rows/s"), shown(412.4, "ms"), shown(0.119, "ms"), shown(1.15, "")
    ('5.25 M rows/s', '412 ms', '0.12 ms', '1.15')
    """
    if unit == "rows/s" and number >= 1_000_000:
        return f"{number / 1_000_000:.2f} M {unit}"
    digits = f"{number:,.0f}" if number >= 100 else f"{number:.2f}".rstrip("0").rstrip(".")
    return f"{digits} {unit}".rstrip()


@dataclass(frozen=True)
class Part:
    """Measurements under one name."""

    name: str
    title: str
    figures: tuple[Line, ...]


def show(parts: Iterable[Part], console: Console) -> None:
    """Print all, each part under its title."""
    for part in parts:
        console.print(f"\n[bold]{part.title}[/]", highlight=False)
        table = Table(box=None, pad_edge=False, show_header=False)
        for heading, width in headings_of(part.figures).items():
            table.add_column(justify=_side(heading), min_width=width, no_wrap=True)
        for figure in part.figures:
            table.add_row(*figure.cells(), style=None if figure.is_met else "red")
        console.print(table)


def _side(heading: str) -> Literal["left", "right"]:
    return "right" if heading in NUMBERS else "left"


def store(parts: Iterable[Part], sizes: Sizes) -> None:
    """Write all as JSON, with what it was measured on."""
    content = {
        "machine": machine(),
        "sizes": asdict(sizes),
        "parts": [
            {
                "name": part.name,
                "title": part.title,
                "figures": [as_json(line) for line in part.figures],
            }
            for part in parts
        ],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=2) + "\n")


def machine() -> dict[str, str]:
    """Describe the machine."""
    versions = {name: version(name) for name in ("pyspark", "pyarrow", "polars", "pandas", "numpy")}
    return {"cores": str(os.cpu_count()), "cpu": _cpu(), "python": platform.python_version(), **versions}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
