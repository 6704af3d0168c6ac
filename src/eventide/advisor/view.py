"""Advice, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eventide.advisor.code import duration_code
from eventide.common.words import count, length

if TYPE_CHECKING:
    from eventide.advisor.advice import Advice


def view_of(advice: Advice) -> RenderableType:
    """The table, the code line, and what else the data show: less than a screen."""
    promise = "loses nothing of what was seen" if advice.lose == 0 else f"loses at most {percent(advice.lose)}"
    parts: list[RenderableType] = [Text(_measured(advice), "bold"), Text(), _table(advice), Text()]
    parts += [Text(f"To paste; it {promise}", "bold"), Padding(Text(advice.code, "green"), (0, 0, 0, 2))]
    remarks = [_item("-", line, "") for line in _said(advice)] + [_item("!", note, "yellow") for note in advice.notes]
    return Group(*parts, *([Text(), *remarks] if remarks else []))


def percent(share: float) -> str:
    """A share, as short as it can be said.

    >>> percent(0), percent(0.01), percent(0.16234), percent(0.00012), percent(0.0000004)
    ('0', '1 %', '16.2 %', '0.012 %', 'under 0.001 %')
    """
    if share == 0:
        return "0"
    if share < 0.00001:
        return "under 0.001 %"
    digits = 1 if share >= 0.1 else 2 if share >= 0.01 else 3
    return f"{share:.{digits}%}".rstrip("%").rstrip("0").rstrip(".") + " %"


def _measured(advice: Advice) -> str:
    found, columns = advice.disorder, advice.columns
    by = f" by {', '.join(columns.split_by)}" if columns.split_by else ""
    splits = f" in {count(len(found.splits), 'split')}{by}" if advice.has_splits else ""
    most = f"at most {length(found.own.longest_ms)} out of order" if found.own.longest_ms else "all in order"
    return f"{count(found.rows, 'element')}{splits}, {most}{' within their split' if advice.has_splits else ''}"


def _table(advice: Advice) -> Table:
    rows = advice.disorder.rows
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("  to lose at most")
    for title in ("bound", "late", "results after"):
        table.add_column(title, justify="right")
    if advice.has_splits:
        table.add_column("one watermark for all, as Spark's: late", justify="right")
        table.add_column("it needs", justify="right")
    for choice in advice.choices:
        cells = [length(choice.bound_ms), percent(choice.late / rows), length(choice.delay_ms)]
        if advice.has_splits:
            cells += [percent(choice.late_with_one / rows), length(choice.bound_with_one_ms)]
        named = "nothing" if choice.lose == 0 else percent(choice.lose)
        table.add_row(f"  {named}", *cells, style="bold" if choice.lose == advice.lose else "")
    return table


def _said(advice: Advice) -> Iterator[str]:
    if advice.has_splits and advice.wait_ms >= max(1_000, advice.recommended.bound_ms / 10):
        name, wait = advice.disorder.slowest[0], length(advice.wait_ms)
        yield f"Results wait for the split {name}, which is {wait} behind the newest element on average."
    if advice.idleness_ms is not None and advice.has_splits:
        name, silence_ms = advice.silence
        clock = "" if advice.disorder.has_clock else ", counted in event time: name the time of arrival to have it"
        yield (
            f"Idleness: the split {name} was silent for {length(silence_ms)}{clock}. While a split is idle it "
            "holds no window, and may be late when it comes back."
        )
    if advice.drift_ms is not None:
        yield "Alignment: the others wait for that split, so that less waits in the state of windows."
    if advice.early is not None:
        bound, lateness = duration_code(advice.early.bound_ms), duration_code(advice.early.lateness_ms)
        yield (
            f"Early, and corrected later: a bound of {bound} with .allowed_lateness({lateness}) on the windows loses "
            f"nothing; {percent(advice.early.corrections / advice.disorder.rows)} of the elements correct a result."
        )
    if not advice.has_splits and not advice.columns.split_by:
        yield "Everything was measured as one split: name what tells partitions apart, if there are several."


def _item(mark: str, text: str, style: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(Text(mark, style), Text(text, style))
    return grid
