"""Puts the figures of the last run into docs/benchmarks.md, each part between its own markers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import NUMBERS, RESULTS, from_json, headings_of

PAGE = Path("docs/benchmarks.md")
_PLACE = re.compile(r"(<!-- figures: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write() -> list[str]:
    """Fill the page from the JSON; return the names of parts that the page has and the run has not, which stay."""
    page, missing = filled(PAGE.read_text(), json.loads(RESULTS.read_text()))
    PAGE.write_text(page)
    return missing


def filled(page: str, results: dict[str, Any]) -> tuple[str, list[str]]:
    r"""The text of the page with the figures of a run, and the names of parts that the run does not have.

    >>> results = {"parts": [{"name": "a", "figures": [{"what": "x", "unit": "ms", "eventide": 3, "other": 2}]}]}
    >>> print(filled("<!-- figures: a --><!-- end -->".replace("--><", "-->\n<"), results)[0])
    <!-- figures: a -->
    <BLANKLINE>
    | what | eventide | compared with | ratio |
    |---|---:|---|---:|
    | x | 3 ms | Spark: 2 ms | 1.50 |
    <BLANKLINE>
    <!-- end -->
    """
    texts = {part["name"]: _table(part["figures"]) for part in results["parts"]}
    if "machine" in results:
        texts["machine"] = _machine(results)
    return put(page, texts)


def put(page: str, texts: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text of a page with each text between its markers, and the names of markers without a text, which stay."""
    missing = [name for _, name, _ in _PLACE.findall(page) if name not in texts]

    def replacement(place: re.Match[str]) -> str:
        before, name, after = place.groups()
        return f"{before}\n{texts[name]}\n\n{after}" if name in texts else place.group()

    return _PLACE.sub(replacement, page), missing


def _table(figures: list[dict[str, Any]]) -> str:
    lines = [from_json(figure) for figure in figures]
    rows = [line.cells() for line in lines]
    names = list(headings_of(lines))
    used = [i for i in range(len(names)) if any(row[i] for row in rows)]
    headings = [names[i] for i in used]
    head = [f"| {' | '.join(headings)} |", f"|{'|'.join('---:' if name in NUMBERS else '---' for name in headings)}|"]
    return "\n".join(head + [f"| {' | '.join(row[i] for i in used)} |" for row in rows])


def _machine(results: dict[str, Any]) -> str:
    machine, sizes = results["machine"], results["sizes"]
    programs = ", ".join(f"{name} {number}" for name, number in machine.items() if name not in ("cores", "cpu"))
    return (
        f"Measured with {sizes['rows_per_batch']:,} rows in a micro-batch, on {machine['cores']} cores "
        f"({machine['cpu']}), with {programs}."
    )
