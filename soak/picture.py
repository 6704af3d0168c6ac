"""The picture of a run: what it took, minute by minute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from soak.findings import settled_minute

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_INK, _QUIET, _LINES = "#1c2733", "#66737f", "#e6eaee"
_COLOURS = ("#0b6e99", "#d9730d", "#448361", "#9065b0")
_PANELS: dict[str, dict[str, tuple[str, float]]] = {
    "Memory, MB": {
        "JVM": ("jvm: MB", 1),
        "Python workers": ("workers: MB", 1),
        "planners": ("planners: MB", 1),
        "driver": ("driver: MB", 1),
    },
    "JVM, MB": {
        "heap after a collection": ("jvm: heap after a collection, MB", 1),
        "classes": ("jvm: classes, MB", 1),
    },
    "Open files and threads": {
        "files of the JVM": ("jvm: open files", 1),
        "threads of the JVM": ("jvm: threads", 1),
        "files of Python workers": ("workers: open files", 1),
        "files of the driver": ("driver: open files", 1),
    },
    "The checkpoint": {
        "files": ("checkpoint/all: files", 1),
        "size in 10 kB": ("checkpoint/all: kB", 0.1),
    },
    "What the job holds": {
        "timers": ("numTimers", 1),
        "keys": ("numKeys", 1),
        "sessions": ("numOpenSessions", 1),
        "splits": ("splits", 1),
    },
    "A micro-batch, ms": {
        "time": ("took_ms", 1),
        "CPU time of all processes": ("CPU ms of a micro-batch", 1),
    },
}


def draw(table: pd.DataFrame, path: Path) -> None:
    """Write the picture."""
    with mpl.rc_context({"font.size": 10, "font.family": "sans-serif", "text.color": _INK}):
        figure = Figure(figsize=(12, 9), layout="constrained")
        for axes, (title, lines) in zip(figure.subplots(3, 2, sharex=True).flat, _PANELS.items(), strict=True):
            _draw_panel(axes, table, title, lines)
        figure.supxlabel("minutes", color=_QUIET, fontsize=10)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130, facecolor="white")


def _draw_panel(axes: Axes, table: pd.DataFrame, title: str, lines: dict[str, tuple[str, float]]) -> None:
    axes.grid(color=_LINES, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=_QUIET)
    axes.spines[:].set_visible(False)
    axes.set_title(title, loc="left", weight="bold")
    axes.axvspan(0, settled_minute(len(table)), color=_LINES, alpha=0.5, linewidth=0)
    top = 0.0
    for (name, (column, scale)), colour in zip(lines.items(), _COLOURS, strict=False):
        values = table[column] * scale
        axes.plot(table.index, values, color=colour, linewidth=1.8, label=name)
        top = max(top, float(values[values.index > 0].max()))
    axes.set_ylim(0, top * 1.35)
    axes.set_xlim(0, float(table.index.max()))
    axes.legend(frameon=False, ncols=2, fontsize=9, loc="upper right", labelcolor=_INK)
