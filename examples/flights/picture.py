"""The picture: when each flight took off, when its report came, and where the watermarks stood by then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
from flights import AIRPORTS, DELAY, DELAYED, EVERY, FIRST_DAY
from matplotlib.figure import Figure
from with_spark import SparkResult, watermarks_for_late_rows

if TYPE_CHECKING:
    from comparison import Comparison
    from matplotlib.axes import Axes
    from with_eventide import EventideResult

INK, QUIET, LINES = "#1f2430", "#6b7280", "#e8eaee"
RED, GREEN = "#cf3339", "#0f7b57"
COLOURS = {"EWR": "#4a6fc4", "JFK": "#8d93a1", "LGA": "#b9a27c"}
HOUR = pd.Timedelta(hours=1)
SHOWN = 24
"""How many hours of the stream are shown: many days at once would be nothing but a diagonal line."""


def draw(comparison: Comparison, eventide: EventideResult, spark: SparkResult, path: Path) -> None:
    """Write the picture."""
    marks = watermarks(comparison, eventide, spark)
    with mpl.rc_context({"font.size": 10.5, "font.family": "sans-serif", "text.color": INK, "svg.fonttype": "none"}):
        figure = Figure(figsize=(12, 7.8), layout="constrained")
        axes = figure.subplots()
        set_frame(axes, begin_of_view(comparison.rows))
        draw_rows(axes, comparison.rows)
        draw_watermarks(axes, marks)
        write_labels(axes, marks, comparison)
        set_title(axes, comparison)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, facecolor="white")


def hours(moment: pd.Series) -> pd.Series:
    """Moments as hours since the beginning, the one unit of both axes."""
    return (moment - FIRST_DAY) / HOUR


def watermarks(comparison: Comparison, eventide: EventideResult, spark: SparkResult) -> pd.DataFrame:
    """The watermarks that the rows of each micro-batch meet, by the hour in which the micro-batch begins.

    What a micro-batch brings counts from the next one on.
    """
    reached = [progress.splits | {"eventide": min(progress.splits.values())} for progress in eventide.progress]
    met = pd.DataFrame([dict.fromkeys(reached[0]), *reached[:-1]])
    met["spark"] = pd.Series(watermarks_for_late_rows(spark))
    met = met[met > 0].apply(pd.to_datetime, unit="ms", utc=True).apply(hours)
    batches = comparison.rows.groupby("batch")["reported"].first()
    met = met.loc[batches.index]
    met.index = pd.Index((batches - FIRST_DAY) // EVERY * (EVERY / HOUR))
    return met


def begin_of_view(rows: pd.DataFrame) -> float:
    """The second or third morning; the first one, if the stream is short."""
    last = hours(rows["reported"]).max()
    return next(begin for begin in (54, 30, 6) if begin + SHOWN < last or begin == 6)


def set_frame(axes: Axes, begin: float) -> None:
    """Axes in New York's time, and nothing that the eye doesn't need."""
    axes.set_xlim(begin, begin + SHOWN)
    axes.set_ylim(begin - 12, begin + SHOWN - 4)
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        axis.set_ticks([hour for hour in range(0, 24 * 365, 3) if low <= hour <= high])
        axis.set_major_formatter(lambda hour, _: clock(hour))
    axes.grid(color=LINES, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=QUIET, pad=6)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("the report arrives", color=QUIET, loc="right")
    axes.set_ylabel("the flight took off", color=QUIET, loc="top")


def clock(hour: float) -> str:
    """An hour since the beginning as a clock in New York shows it, at midnight with the day."""
    moment = FIRST_DAY + hour * HOUR
    return f"{moment:%b} {moment.day}" if moment.hour == 0 else f"{moment:%H:%M}"


def draw_rows(axes: Axes, rows: pd.DataFrame) -> None:
    """A dot for each flight, with a ring around those that are late for eventide."""
    parts = [(COLOURS[airport], rows[(rows["origin"] == airport) & ~rows["lost"]]) for airport in AIRPORTS]
    for colour, part in [*parts, (RED, rows[rows["lost"]])]:
        axes.scatter(hours(part["reported"]), hours(part["took_off"]), s=11, color=colour, linewidths=0, zorder=3)
    late = rows[rows["late"]]
    axes.scatter(hours(late["reported"]), hours(late["took_off"]), s=60, color="none", edgecolors=GREEN, zorder=6)


def draw_watermarks(axes: Axes, marks: pd.DataFrame) -> None:
    """Lines that rise from one micro-batch to the next; what is in an hour that Spark's has passed is lost."""
    x = [*marks.index, marks.index[-1] + EVERY / HOUR]
    steps = pd.concat([marks, marks.tail(1)])
    for airport in AIRPORTS:
        width = 1.5 if airport == DELAYED else 1.1
        axes.step(x, steps[airport], where="post", color=COLOURS[airport], linewidth=width, zorder=5)
    for name, colour in (("eventide", GREEN), ("spark", RED)):
        axes.step(x, steps[name], where="post", color=colour, linewidth=4, zorder=4)
    axes.fill_between(x, np.floor(steps["spark"]), -48, step="post", color=RED, alpha=0.07, linewidth=0, zorder=1)


def write_labels(axes: Axes, marks: pd.DataFrame, comparison: Comparison) -> None:
    """Names at the right end of the lines, and words where the dots are."""
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    ends = marks[marks.index < right].iloc[-1]
    texts = {airport: (name, COLOURS[airport], "normal") for airport, name in AIRPORTS.items() if airport != DELAYED}
    texts["spark"] = ("Spark\none watermark for all", RED, "bold")
    texts["eventide"] = (f"eventide\nthe lowest: {AIRPORTS[DELAYED]}'s", GREEN, "bold")
    places = spread(ends[list(texts)].sort_values(ascending=False))
    for name, y in places.items():
        text, colour, weight = texts[name]
        axes.text(right + 0.3, y, text, color=colour, weight=weight, va="center", clip_on=False)
    left = right - SHOWN
    others = " and ".join(name for airport, name in AIRPORTS.items() if airport != DELAYED)
    axes.text(left + 0.3, left + 4.4, f"{others}:\nreported when they land", color=QUIET)
    axes.annotate(
        f"{AIRPORTS[DELAYED]}: reported {DELAY / HOUR:g} hours later",
        (left + 22.7, left + 15.8),
        (right - 0.3, top - 1),
        color=COLOURS[DELAYED],
        ha="right",
        arrowprops={"arrowstyle": "-", "color": COLOURS[DELAYED], "relpos": (0.85, 0), "shrinkB": 6},
    )
    axes.text(
        right - 0.3,
        left - 11.5,
        "Red: when the report arrives,\nSpark has closed the hour, and drops it.",
        color=RED,
        ha="right",
        va="bottom",
    )


def spread(heights: pd.Series, gap: float = 1.6) -> dict[str, float]:
    """Places for labels from top to bottom, near to where they belong and not upon each other."""
    places: dict[str, float] = {}
    ceiling = float("inf")
    for name, height in heights.items():
        places[str(name)] = ceiling = min(height, ceiling - gap)
    shift = (heights.sum() - sum(places.values())) / len(places)
    return {name: height + shift for name, height in places.items()}


def set_title(axes: Axes, comparison: Comparison) -> None:
    """The message, and below it what is to be seen."""
    lost, late = int(comparison.rows["lost"].sum()), int(comparison.rows["late"].sum())
    text = f"One watermark for all airports loses {lost:,} flights; a watermark for each loses none"
    axes.set_title(text, loc="left", weight="bold", fontsize=15, pad=48)
    below = (
        "Each dot is a departure from New York; one day of the stream is shown. The lines are watermarks: no flight "
        f"from before is expected any more.\nGreen rings: late for eventide too, {late} in all; it hands them over on "
        "a side output."
    )
    axes.text(0, 1.02, below, transform=axes.transAxes, color=QUIET, va="bottom", fontsize=10)
