"""Puts what a run showed into docs/soak.md: tables between their markers, and a picture."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd

from soak.findings import Finding, findings, settled_minute
from soak.picture import draw

PAGE = Path("docs/soak.md")
PICTURE = Path("docs/images/soak.png")
RESULTS = Path("build/soak.csv")
ABOUT = Path("build/soak.json")
_PLACE = re.compile(r"(<!-- soak: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write() -> None:
    """Fill the page with the last run, and draw its picture."""
    table = pd.read_csv(RESULTS, index_col="minute")
    PAGE.write_text(filled(PAGE.read_text(), table, json.loads(ABOUT.read_text())))
    draw(table, PICTURE)


def filled(page: str, table: pd.DataFrame, about: dict[str, Any]) -> str:
    """The text of the page with the figures of a run."""
    first, last = settled_minute(len(table)), int(table.index.max())
    texts = {name_of(group): _table(found, first, last) for group, found in findings(table).items()}
    texts["machine"] = _machine(about, table)

    def replacement(place: re.Match[str]) -> str:
        before, name, after = place.groups()
        return f"{before}\n{texts[name]}\n\n{after}" if name in texts else place.group()

    return _PLACE.sub(replacement, page)


def name_of(group: str) -> str:
    """Return the mark of the place of a group's table.

    >>> name_of("Processes, threads, open files")
    'processes-threads-open-files'
    """
    return re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")


def _table(found: list[Finding], first: int, last: int) -> str:
    head = [f"| | minute {first} | minute {last} | slope, a simulated hour |", "|---|---:|---:|---:|"]
    return "\n".join(head + [f"| {' | '.join(cells(one))} |" for one in found])


def cells(found: Finding) -> tuple[str, ...]:
    """The texts of its row in a table."""
    unit = found.measure.unit
    slope = shown(found.slope, unit, sign="+")
    return found.measure.name, shown(found.settled, unit), shown(found.end, unit), slope


def shown(number: float, unit: str = "", sign: str = "") -> str:
    """A number for a person.

    >>> shown(1234.5, "MB"), shown(2.34), shown(-0.04, "ms", sign="+")
    ('1,234 MB', '2.3', '0 ms')
    """
    if math.isnan(number):
        return "-"
    digits = 0 if abs(number) >= 100 else 1
    text = f"{number:{sign},.{digits}f}"
    text = "0" if float(text.replace(",", "")) == 0 else text.removesuffix(".0")
    return f"{text} {unit}".rstrip()


def _machine(about: dict[str, Any], table: pd.DataFrame) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    spent = table["CPU ms of a micro-batch"] * table["micro-batches"]
    share = spent.iloc[1:].sum() / 60_000 / (len(table) - 1)
    return (
        f"`{about['command']}`, begun on {about['began']}, {len(table)} whole minutes and "
        f"{int(table['micro-batches'].sum()):,} micro-batches, on {about['cores']} cores ({about['cpu']}) with "
        f"{versions}. The job took {share:.2f} of a core; the load of the machine was {table['load'].median():.1f} in "
        f"the median, and {table['load'].max():.1f} at most."
    )
