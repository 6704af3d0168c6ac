"""The picture of the way through Kafka: how far the partitions have been read, and what waits in state meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import pandas as pd
from flights import AIRPORTS, DELAYED
from matplotlib.figure import Figure
from picture import COLOURS, GREEN, INK, LINES, QUIET, RED, clock, hours, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from with_kafka import KafkaResult

TITLES = {RED: "Without an alignment", GREEN: "Aligned within an hour"}


def draw(apart: KafkaResult, aligned: KafkaResult, path: Path) -> None:
    """Write the picture."""
    with mpl.rc_context({"font.size": 10.5, "font.family": "sans-serif", "text.color": INK, "svg.fonttype": "none"}):
        figure = Figure(figsize=(12, 7.8), layout="constrained")
        grid = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=[2.1, 1])
        for (colour, title), result, column in zip(TITLES.items(), (apart, aligned), grid.T, strict=True):
            draw_partitions(column[0], result, colour)
            draw_waiting(column[1], result, colour)
            column[0].set_xlim(-0.6, max(len(result.way) for result in (apart, aligned)) + 4.5)
            column[0].set_title(title, loc="left", weight="bold", color=colour, pad=12)
        grid[0, 0].set_ylabel("watermark of each partition", color=QUIET, loc="top")
        grid[1, 0].set_ylabel("flights in state", color=QUIET, loc="top")
        figure.align_ylabels(grid[:, 0])
        grid[1, 1].set_xlabel("micro-batches", color=QUIET, loc="right")
        set_title(figure, apart, aligned)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, facecolor="white")


def set_frame(axes: Axes) -> None:
    """Nothing that the eye doesn't need."""
    axes.grid(color=LINES, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=QUIET, pad=6)
    axes.spines[:].set_visible(False)


def draw_partitions(axes: Axes, result: KafkaResult, colour: str) -> None:
    """A line for each partition, as far as it has something to read, and what lies between them."""
    set_frame(axes)
    reached = result.way[list(AIRPORTS)].apply(hours)
    between = reached.loc[result.apart.index]
    axes.fill_between(
        between.index, between.min(axis="columns"), between.max(axis="columns"), color=colour, alpha=0.1, linewidth=0
    )
    for airport in AIRPORTS:
        width = 3 if airport == DELAYED else 1.8
        axes.plot(reached.index, reached[airport], color=COLOURS[airport], linewidth=width)
    write_names(axes, reached)
    axes.yaxis.set_ticks(range(12, int(reached.max(axis=None)) + 12, 12))
    axes.yaxis.set_major_formatter(lambda hour, _: clock(hour))


def write_names(axes: Axes, reached: pd.DataFrame) -> None:
    """The names of the airports at the ends of their lines; above it, where a line ends early."""
    last = reached.apply(pd.Series.last_valid_index)
    ends = pd.Series({airport: reached.loc[at, airport] for airport, at in last.items()})
    is_early = last < last.max() - 2
    places = spread(ends[~is_early].sort_values(ascending=False), gap=7)
    for airport, name in AIRPORTS.items():
        style = {"color": COLOURS[airport], "weight": "bold" if airport == DELAYED else "normal"}
        if is_early[airport]:
            axes.text(last[airport], ends[airport] + 3, name, ha="right", **style)
        else:
            axes.text(last.max() + 0.6, places[airport], name, va="center", **style)


def draw_waiting(axes: Axes, result: KafkaResult, colour: str) -> None:
    """Draw the rows that wait in state after each micro-batch, and their maximum."""
    set_frame(axes)
    waiting = result.way["waiting"]
    axes.bar(waiting.index, waiting, width=0.72, color=colour, alpha=0.75, linewidth=0)
    most = waiting.idxmax()
    axes.text(most, waiting[most], f"{waiting[most]:,}", color=colour, weight="bold", ha="center", va="bottom")


def set_title(figure: Figure, apart: KafkaResult, aligned: KafkaResult) -> None:
    """The message, and below it what is to be seen."""
    without, within = (in_words(result.apart.median()) for result in (apart, aligned))
    text = f"Partitions that wait for each other are {within} apart, not {without}"
    names = " and ".join(name for airport, name in AIRPORTS.items() if airport != DELAYED)
    below = (
        f"The flights are read from Kafka, a partition for each airport, {AIRPORTS[DELAYED]}'s hours behind. "
        f"What {names} bring for hours\nthat {AIRPORTS[DELAYED]} has not reached waits in state; with an alignment, "
        "it waits in its partition."
    )
    figure.get_layout_engine().set(rect=(0, 0, 1, 0.885), w_pad=0.08)
    figure.text(0.012, 0.982, text, weight="bold", size=15, va="top")
    figure.text(0.012, 0.938, below, color=QUIET, size=10, va="top", linespacing=1.4)


def in_words(length: pd.Timedelta) -> str:
    """A length of time in hours, or in minutes if it is short."""
    minutes = length / pd.Timedelta(minutes=1)
    return f"{minutes / 60:.1f} hours" if minutes >= 60 else f"{minutes:.0f} minutes"
