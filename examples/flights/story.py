"""Texts of the demo; all numbers come from the data and from the two counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pandas as pd
from flights import AIRPORTS, BOUND, DELAY, DELAYED, EVERY, FIRST_DAY, Reports
from rich.table import Table

if TYPE_CHECKING:
    from comparison import Comparison
    from with_eventide import EventideResult


def introduction(reports: Reports, rows: pd.DataFrame) -> str:
    """Say what is counted, and what was left out."""
    last = FIRST_DAY + pd.DateOffset(days=reports.days - 1)
    return (
        f"[bold]{len(rows):,} departures from New York's three airports, January 1 to {last:%B} {last.day}, 2013[/]\n"
        f"A flight is reported when it lands; what counts is when it took off. {AIRPORTS[DELAYED]}'s reports are "
        f"{hours(DELAY)} behind.\n"
        f"The stream: {rows['batch'].max() + 1} micro-batches, each of what arrives in {hours(EVERY)}. The job: count "
        f"the departures of each airport and hour, {hours(BOUND)} out of order at most.\n"
        f"Left out: {reports.cancelled} cancelled flights, and {reports.never_landed} without a time in the air."
    )


def hours(length: pd.Timedelta) -> str:
    """A length of time in words."""
    number = length / pd.Timedelta(hours=1)
    return f"{round(number, 1):g} hour{'' if number == 1 else 's'}"


def table(comparison: Comparison) -> Table:
    """Show the fate of the rows."""
    ours, theirs = comparison.eventide, comparison.spark
    result = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    result.add_column("")
    result.add_column("eventide", justify="right")
    result.add_column("Spark withWatermark", justify="right")
    for name, mine, other in (
        ("rows in", ours.rows_in, theirs.rows_in),
        ("rows counted", ours.counted, theirs.counted),
        ("late, on the side output", ours.late, theirs.late),
        ("lost without a word", ours.lost, theirs.lost),
        ("late by its own metric", ours.metric, theirs.metric),
        (f"counts too low, of {comparison.hours:,}", ours.wrong_hours, theirs.wrong_hours),
    ):
        result.add_row(name, f"{mine:,}", f"[bold red]{other:,}[/]" if "lost" in name else f"{other:,}")
    return result


def what_happened(comparison: Comparison, eventide: EventideResult) -> str:
    """Why the two differ, and how the numbers were checked."""
    lost = Counter(comparison.rows.loc[comparison.rows["lost"], "origin"])
    where = ", ".join(f"{n:,} from {AIRPORTS[airport]}" for airport, n in lost.most_common()) or "none"
    return (
        f"Spark has one watermark, {hours(BOUND)} behind the newest take-off of any airport. "
        f"{AIRPORTS[DELAYED]}'s reports fall behind it and vanish ({where}); the metric numRowsDroppedByWatermark "
        f"says {comparison.spark.metric:,}, because it counts groups of rows.\n"
        f"eventide has a watermark for each airport and goes by the lowest, so it waits for {AIRPORTS[DELAYED]}. "
        f"{_late(eventide)}\n"
        f"Checked against a plain count: in all {comparison.hours:,} hours, what eventide counted and what it "
        "handed over as late make up the truth, row by row."
    )


def _late(eventide: EventideResult) -> str:
    if not eventide.late:
        return "Nothing was late."
    destinations = Counter(flight.destination for flight in eventide.late).most_common(3)
    names = ", ".join(f"{n} to {airport}" for airport, n in destinations)
    longest = max(flight.reported - flight.took_off for flight in eventide.late)
    return (
        f"What still was late are long flights ({names}; the longest was reported {hours(pd.Timedelta(longest))} "
        "after it took off); they are on the side output."
    )
