"""Draws the pictures of the page on event time: `python examples/event_time/pictures.py`, into `docs/images`.

They are drawn with matplotlib, which comes with `eventide-spark[demo]`, on white, so that they can be read on any page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, QUIET, LINES = "#1f2430", "#6b7280", "#e8eaee"
RED, GREEN, BLUE, SAND, VIOLET = "#cf3339", "#0f7b57", "#3f68c0", "#b3863b", "#6d4bb0"
PALE = {GREEN: "#e3f2ec", BLUE: "#e6edf9", SAND: "#f6efe0", VIOLET: "#eee8f8", QUIET: "#f1f2f4", RED: "#fae6e7"}
IMAGES = Path(__file__).parents[2] / "docs" / "images"
STYLE = {"font.size": 12, "font.family": "sans-serif", "text.color": INK, "svg.hashsalt": "eventide"}


def blank(axes: Axes, width: float, height: float) -> None:
    """Axes without axes, for pictures that are not plots."""
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")


def plot(axes: Axes, x: tuple[float, float], y: tuple[float, float], across: str, up: str) -> None:
    """Axes of a plot, with nothing that the eye doesn't need."""
    axes.set(xlim=x, ylim=y)
    axes.spines[:].set_visible(False)
    axes.grid(color=LINES, linewidth=1)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=QUIET, pad=6)
    axes.set_xlabel(across, color=QUIET, loc="right")
    axes.set_ylabel(up, color=QUIET, loc="top")


def box(axes: Axes, x: float, y: float, width: float, height: float, text: str, colour: str) -> None:
    """A box with a text in it."""
    style = f"round,pad=0,rounding_size={0.12 * min(width, height):.3f}"
    patch = FancyBboxPatch((x, y), width, height, style, facecolor=PALE[colour], edgecolor=colour, linewidth=1.4)
    axes.add_patch(patch)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=INK, linespacing=1.35)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = QUIET) -> None:
    """A straight arrow."""
    patch = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=13, color=colour, linewidth=1.4, shrinkA=0, shrinkB=0
    )
    axes.add_patch(patch)


def two_times(axes: Axes) -> None:
    """When things happened, and when they were heard of."""
    blank(axes, 12.4, 5.9)
    minutes = ((0.2, 4.2, BLUE, "12:00"), (4.2, 8.2, SAND, "12:01"), (8.2, 12.2, VIOLET, "12:02"))
    for start, end, colour, name in minutes:
        axes.fill_between([start, end], 3.8, 4.5, color=PALE[colour], linewidth=0)
        axes.text((start + end) / 2, 4.65, f"the minute of {name}", ha="center", va="bottom", color=colour)
    axes.text(0.2, 5.45, "event time", va="bottom", weight="bold")
    axes.text(2.2, 5.45, "when it happened", va="bottom", color=QUIET)
    axes.text(0.2, 0.5, "processing time", va="top", weight="bold")
    axes.text(2.9, 0.5, "when the program handles it", va="top", color=QUIET)
    events = ((0.9, 1.5), (1.9, 2.4), (3.2, 9.6), (4.9, 5.4), (6.1, 7.9), (7.3, 7.4), (9.0, 9.1), (10.6, 11.2))
    for happened, arrives in events:
        colour = next(colour for start, end, colour, _ in minutes if start <= happened < end)
        arrow(axes, (happened, 4.02), (arrives, 1.02), colour)
        axes.scatter([happened, arrives], [4.15, 0.85], s=110, color=colour, zorder=3)
    axes.plot([0.2, 12.2], [0.85, 0.85], color=LINES, linewidth=2, zorder=1)
    axes.annotate(
        "a phone in a tunnel:\nreported a minute\nand a half later",
        (4.3, 3.5),
        (2.7, 1.85),
        color=BLUE,
        ha="left",
        va="center",
        fontsize=11,
        linespacing=1.3,
        arrowprops={"arrowstyle": "-", "color": BLUE, "linewidth": 1, "relpos": (0.55, 1)},
    )


STREAM = ((1, 3), (2, 6), (3, 4), (4, 9), (5, 8), (6, 12), (7, 9.5), (8, 14), (9, 12.5), (10, 17), (11, 7), (12, 18))
"""When each element arrives, and its event time."""
BOUND = 3


def watermark(axes: Axes) -> None:
    """A stream that is out of order, and the line of its watermark."""
    plot(axes, (0.3, 14.4), (-0.5, 20), "elements in the order of their arrival", "event time, seconds")
    axes.set_xticks([])
    axes.set_yticks([0, 5, 10, 15, 20])
    highest, steps = 0.0, []
    for at, time in STREAM:
        late = bool(steps) and time <= steps[-1][1]
        highest = max(highest, time)
        steps.append((at, highest - BOUND))
        axes.scatter([at], [time], s=90, color=RED if late else BLUE, zorder=4)
    x = [at for at, _ in steps] + [13]
    marks = [mark for _, mark in steps] + [steps[-1][1]]
    axes.step(x, [mark + BOUND for mark in marks], where="post", color=BLUE, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.step(x, marks, where="post", color=GREEN, linewidth=3)
    axes.fill_between(x, marks, -0.5, step="post", color=GREEN, alpha=0.08, linewidth=0)
    axes.axhline(10, xmin=0.0, xmax=0.9, color=QUIET, linewidth=1)
    axes.text(0.5, 10.25, "a window of ten seconds ends here", color=QUIET, va="bottom", fontsize=11)
    axes.annotate(
        "the watermark passes 10:\nthe window is complete",
        (8, 11),
        (4.1, 16.6),
        color=GREEN,
        ha="center",
        arrowprops={"arrowstyle": "-|>", "color": GREEN, "shrinkB": 5},
    )
    axes.text(13.1, 18.1, "the highest\ntime so far", color=BLUE, va="center")
    axes.text(13.1, 14.6, "the watermark,\n3 s behind", color=GREEN, va="center", weight="bold")
    axes.text(10.7, 7, "late: below the line", color=RED, ha="right", va="center", fontsize=11)
    axes.text(4.3, 1.2, "nothing from here is expected any more", color=GREEN, fontsize=11)


def splits(axes: Axes) -> None:
    """Two splits at different speeds, and the lower one of their watermarks."""
    plot(axes, (-0.2, 12.6), (-0.5, 21), "micro-batches", "event time, seconds")
    axes.set_xticks(range(11))
    axes.set_yticks([0, 5, 10, 15, 20])
    batches = list(range(11))
    fast = [1, 3, 6, 8, 10, 12, 14, 15.5, 17, 18.5, 19.5]
    slow = [0.5, 1, 2, 3.2, 4.2, 6, 9, 12, 14, 16, 17.5]
    for marks, colour in ((fast, BLUE), (slow, SAND)):
        axes.plot(batches, marks, color=colour, linewidth=1.8, marker="o", markersize=6, zorder=4)
    axes.plot(batches, [min(pair) for pair in zip(fast, slow, strict=True)], color=GREEN, linewidth=7, alpha=0.35)
    axes.fill_between(batches, fast, slow, color=RED, alpha=0.06, linewidth=0)
    axes.text(10.25, 20.1, "one partition", color=BLUE, va="center")
    axes.text(
        10.25, 17.2, "the other, which\ncounts: it is lower", color=GREEN, va="center", weight="bold", linespacing=1.3
    )
    axes.annotate(
        "what one watermark for all\nwould call late, and drop",
        (5, 8.2),
        (1.0, 16.4),
        color=RED,
        va="center",
        arrowprops={"arrowstyle": "-", "color": RED, "linewidth": 1, "relpos": (0.8, 0)},
    )


def idle(axes: Axes) -> None:
    """One split falls silent: it holds the watermark, then it is idle, then it comes back."""
    plot(axes, (-0.2, 13.2), (-0.5, 21), "time by the clock, seconds", "event time, seconds")
    axes.set_xticks(range(13))
    axes.set_yticks([0, 5, 10, 15, 20])
    axes.axvspan(3, 6, ymin=0, ymax=0.93, color=PALE[QUIET], linewidth=0)
    axes.axvspan(6, 10, ymin=0, ymax=0.93, color=PALE[SAND], linewidth=0)
    for x, text, colour in ((4.5, "silent: it holds\nthe watermark", QUIET), (8, "idle: it does not count", SAND)):
        axes.text(x, 1.0, text, ha="center", va="bottom", color=colour, linespacing=1.3)
    clock = list(range(13))
    talks = [1, 2.5, 4, 5.5, 7, 8.5, 10, 11.5, 13, 14.5, 16, 17.5, 19]
    silent = ([0, 1, 2, 3], [0.5, 2, 3.5, 5], [10, 11, 12], [15.2, 16.6, 18.2])
    axes.plot(clock, talks, color=BLUE, linewidth=1.8, marker="o", markersize=6, zorder=4)
    axes.plot(*silent[:2], color=SAND, linewidth=1.8, marker="o", markersize=6, zorder=4)
    axes.plot(*silent[2:], color=SAND, linewidth=1.8, marker="o", markersize=6, zorder=4)
    axes.plot([3, 10], [5, 5], color=SAND, linewidth=1.4, linestyle=(0, (2, 3)))
    combined = [0.5, 2, 3.5, 5, 5, 5, 10, 11.5, 13, 14.5, 15.2, 16.6, 18.2]
    axes.step(clock, combined, where="post", color=GREEN, linewidth=7, alpha=0.35)
    axes.annotate(
        "after the timeout the\nwatermark is free",
        (6, 9.3),
        (2.6, 12.6),
        color=GREEN,
        ha="center",
        va="center",
        weight="bold",
        arrowprops={"arrowstyle": "-|>", "color": GREEN, "shrinkB": 6},
    )
    axes.annotate(
        "an element again:\nit counts at once",
        (10, 15.0),
        (11.4, 9.5),
        color=SAND,
        ha="center",
        va="center",
        arrowprops={"arrowstyle": "-|>", "color": SAND, "shrinkB": 6},
    )


def punctuated(axes: Axes) -> None:
    """One micro-batch: a watermark in its middle, and one at its end."""
    blank(axes, 13, 5.6)
    elements = (("9:15", False), ("9:40", False), ("closed\n10:00", True), ("9:50", False), ("10:20", False))
    rows = (
        (3.3, "punctuated", "in the middle, right behind the element that marks it", 2, 3),
        (0.4, "periodic", "at the end of the micro-batch", 4, None),
    )
    for y, name, text, behind, late in rows:
        axes.text(0.2, y + 1.72, name, weight="bold", color=GREEN)
        axes.text(2.4, y + 1.72, text, color=QUIET)
        x = 0.2
        for place, (label, is_marker) in enumerate(elements):
            colour = RED if place == late else VIOLET if is_marker and late is not None else BLUE
            box(axes, x, y, 1.55, 1.2, label, colour)
            if place == late:
                axes.text(x + 0.78, y - 0.12, "late", color=RED, ha="center", va="top")
            x += 1.8
            if place == behind:
                axes.plot([x + 0.05, x + 0.05], [y - 0.25, y + 1.45], color=GREEN, linewidth=4, solid_capstyle="round")
                if late is None:
                    axes.text(
                        x + 0.35,
                        y + 0.6,
                        "nothing in this batch is late;\nthe hour from 9 comes out with\nall three",
                        va="center",
                        color=INK,
                        fontsize=11,
                        linespacing=1.35,
                    )
                x += 0.35
        if late is not None:
            axes.text(
                x + 0.1,
                y + 0.6,
                "the hour from 9 comes out with\nthe two before the line",
                va="center",
                color=INK,
                fontsize=11,
                linespacing=1.35,
            )


def lateness(axes: Axes) -> None:
    """The life of a window, by the watermark."""
    blank(axes, 13, 5.0)
    axes.set_ylim(-0.35, 4.75)
    phases = (
        (0.3, 5.0, BLUE, "open"),
        (5.0, 9.4, SAND, "kept for late elements"),
        (9.4, 12.7, QUIET, "gone, with its state"),
    )
    for start, end, colour, text in phases:
        axes.fill_between([start, end], 1.5, 2.4, color=PALE[colour], linewidth=0)
        axes.text((start + end) / 2, 1.95, text, ha="center", va="center", color=INK)
    marks = (
        (0.3, "0", ""),
        (5.0, "9.999", "the last millisecond\nof the window: it fires,\nwith 3 elements"),
        (9.4, "14.999", "5 s of allowed\nlateness later:\nit is cleared"),
    )
    for x, number, text in marks:
        axes.plot([x, x], [1.35, 2.55], color=GREEN if text else QUIET, linewidth=3 if text else 1)
        axes.text(
            x, 1.22, number, ha="center" if text else "left", va="top", color=GREEN if text else QUIET, weight="bold"
        )
        axes.text(x, 0.75, text, ha="center", va="top", color=QUIET, fontsize=11, linespacing=1.3)
    axes.text(0.3, 0.35, "the watermark →", color=GREEN, va="center")
    comes = ((1.3, "3"), (2.6, "7"), (3.9, "1"), (6.4, "4"), (8.0, "2"), (11.0, "6"))
    for x, value in comes:
        colour = BLUE if x < 5 else SAND if x < 9.4 else RED
        axes.scatter([x], [3.35], s=330, color=colour, zorder=3)
        axes.text(x, 3.335, value, color="white", ha="center", va="center", weight="bold", fontsize=11, zorder=4)
        arrow(axes, (x, 3.08), (x, 2.48), colour)
    axes.text(2.6, 3.85, "elements of the window,\nas they come", ha="center", va="bottom", color=BLUE, linespacing=1.3)
    axes.text(
        7.2,
        3.85,
        "late: each fires the window\nagain, 4 and 5 elements",
        ha="center",
        va="bottom",
        color=SAND,
        linespacing=1.3,
    )
    axes.text(
        11.0,
        3.85,
        "too late: side output,\nor dropped and counted",
        ha="center",
        va="bottom",
        color=RED,
        linespacing=1.3,
    )


def calendar(axes: Axes) -> None:
    """Three days of a calendar, one of 23 hours, beside windows of 24 hours; and the windows of a day that grow."""
    blank(axes, 13, 5.9)
    hours = [(0, 24, "Saturday, 24 hours", BLUE), (24, 47, "Sunday, 23 hours", GREEN), (47, 71, "Monday", BLUE)]
    rows = (
        (3.95, "days of the calendar in Berlin", hours),
        (2.35, "windows of 24 hours", [(0, 24, "", QUIET), (24, 48, "", QUIET), (48, 71, "", QUIET)]),
    )
    at = lambda hour: 0.2 + hour * 12.6 / 71  # noqa: E731
    for y, name, stretches in rows:
        axes.text(0.2, y + 0.95, name, weight="bold", va="bottom")
        for start, end, text, colour in stretches:
            box(axes, at(start), y, at(end) - at(start) - 0.05, 0.8, text, colour)
    axes.plot([at(26), at(26)], [2.25, 5.0], color=RED, linewidth=2)
    axes.text(at(26) + 0.12, 4.95, "clocks are set forth", color=RED, va="bottom")
    axes.text(at(48) + 0.1, 2.2, "from here on an hour late", color=RED, va="top")
    axes.text(0.2, 1.65, "windows that grow by 6 hours", weight="bold", va="bottom")
    for row, length in enumerate((6, 12, 18, 24)):
        box(axes, at(0), 1.2 - 0.38 * row, at(length) - at(0) - 0.05, 0.3, "", VIOLET)
    axes.text(
        at(24) + 0.2, 0.6, 'each begins with the day:\n"so far today"', color=VIOLET, va="center", linespacing=1.3
    )


def three_times(axes: Axes) -> None:
    """Where each of the three times is taken."""
    blank(axes, 13, 4.4)
    places = (
        (0.3, "a device,\na user", BLUE),
        (4.75, "the source\nof the job", SAND),
        (9.2, "the window\noperator", VIOLET),
    )
    for x, text, colour in places:
        box(axes, x, 2.5, 3.5, 1.3, text, colour)
    for x in (3.8, 8.25):
        arrow(axes, (x + 0.1, 3.15), (x + 0.85, 3.15))
    times = (
        (2.05, "event time", "when it happened;\nthe element carries it", BLUE),
        (6.5, "ingestion time", "when it came in;\nthe source stamps it", SAND),
        (10.95, "processing time", "when it is handled;\nthe clock, and no stamp", VIOLET),
    )
    for x, name, text, colour in times:
        axes.text(x, 1.95, name, ha="center", va="top", weight="bold", color=colour)
        axes.text(x, 1.4, text, ha="center", va="top", color=INK, linespacing=1.35)
    axes.text(2.05, 0.12, "the same in every run", ha="center", color=GREEN)
    axes.text(8.7, 0.12, "different in every run", ha="center", color=RED)


def generators(axes: Axes) -> None:
    """Where watermarks are made, in the stages of a job."""
    blank(axes, 13, 10.3)
    rows = (
        (7.4, "built in", "in the tasks of the source, which need no state for it"),
        (4.1, "your own, on a source", "in a stage in front of all others, one for each split"),
        (0.8, "your own, behind an operator", "in the tasks of the operator, one for each subtask"),
    )
    for y, name, text in rows:
        axes.text(0.2, y + 2.05, name, weight="bold", va="center", color=GREEN)
        axes.text(12.7, y + 2.05, text, va="center", ha="right", color=QUIET)
        box(axes, 9.4, y, 3.3, 1.5, "windows:\nthe lower one counts", GREEN)
        if y > 1:
            axes.plot([0.2, 12.7], [y - 0.5, y - 0.5], color=LINES, linewidth=1.5)
    for up, split in ((0.85, "a"), (-0.1, "b")):
        box(axes, 0.2, 7.4 + up, 4.6, 0.75, f"split {split}: its highest time", BLUE)
        arrow(axes, (4.9, 7.4 + up + 0.37), (9.3, 8.15 + (up - 0.37) / 3))
        box(axes, 0.2, 4.1 + up, 2.3, 0.75, f"split {split}", BLUE)
        arrow(axes, (2.6, 4.1 + up + 0.37), (4.6, 4.1 + up + 0.37))
        box(axes, 4.7, 4.1 + up, 3.3, 0.75, f"generator of {split}", VIOLET)
        arrow(axes, (8.1, 4.1 + up + 0.37), (9.3, 4.85 + (up - 0.37) / 3))
    for up, subtask in ((0.85, "0"), (-0.1, "1")):
        box(axes, 0.2, 0.8 + up, 2.6, 0.75, f"subtask {subtask}", SAND)
        box(axes, 2.8, 0.8 + up, 5.2, 0.75, f"generator of subtask {subtask}", VIOLET)
        arrow(axes, (8.1, 0.8 + up + 0.37), (9.3, 1.55 + (up - 0.37) / 3))


PICTURES: dict[str, tuple[Callable[[Axes], None], tuple[float, float]]] = {
    "two-times": (two_times, (9.4, 4.4)),
    "watermark": (watermark, (9.4, 5.2)),
    "splits": (splits, (9.4, 4.8)),
    "idle": (idle, (9.4, 4.8)),
    "punctuated": (punctuated, (9.4, 4.1)),
    "lateness": (lateness, (9.4, 3.7)),
    "calendar": (calendar, (9.4, 4.4)),
    "three-times": (three_times, (9.4, 3.2)),
    "generators": (generators, (9.4, 6.6)),
}


def draw(folder: Path, kinds: Sequence[str] = ("svg",)) -> None:
    """Write all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (picture, size) in PICTURES.items():
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=size, layout="constrained")
            picture(figure.subplots())
            for kind in kinds:
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(folder / f"event-time-{name}.{kind}", dpi=110, facecolor="white", metadata=metadata)


if __name__ == "__main__":
    draw(IMAGES)
