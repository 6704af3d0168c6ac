"""The curve of completeness against how long results wait."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from eventide._distribution import getting
from eventide.advisor.disorder import Disorder
from eventide.common.words import count, length
from eventide.errors import ProgramError
from eventide.runtime.observation.histograms import DurationHistogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import LineStyleType

_INK, _QUIET, _LINES = "#1f2430", "#6b7280", "#e8eaee"
_OWN, _ONE = "#0f7b57", "#d1495b"
_LATE = {0.5: "50 %", 0.1: "90 %", 0.01: "99 %", 0.001: "99.9 %", 0.0001: "99.99 %", 0.00001: "99.999 %"}
_LEAST_SHARE = 0.5
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_TICKS_MS = (1, 10, 100, _SECOND, 10 * _SECOND, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 7 * _DAY, 30 * _DAY)
_FINE_MS = tuple(
    sorted(
        {*_TICKS_MS, 3, 30, 300, 3 * _SECOND, 30 * _SECOND, 3 * _MINUTE, 30 * _MINUTE, 3 * _HOUR, 12 * _HOUR, 3 * _DAY}
    )
)
_MOST_TICKS = 10


def draw(found: Disorder, bound_ms: int, path: Path) -> None:
    """Write the picture of what was measured, with the bound that is recommended.

    Raises:
        ProgramError: matplotlib is not installed, or does not know the ending of the path.
    """
    if find_spec("matplotlib") is None:
        raise ProgramError(f"pictures need the library matplotlib, which is not installed: {getting('plot')}")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 11, "font.family": "sans-serif", "text.color": _INK, "svg.hashsalt": "eventide"}):
        figure = Figure(figsize=(10, 5.8), layout="constrained")
        _Curves(found, bound_ms, figure.subplots()).draw()
        try:
            figure.savefig(path, dpi=150, facecolor="white")
        except ValueError as error:
            raise ProgramError(f"the picture cannot be written to {path}: {error}") from error


class _Curves:
    def __init__(self, found: Disorder, bound_ms: int, axes: Axes) -> None:
        self._found = found
        self._bound_ms = bound_ms
        self._has_splits = len(found.splits) > 1
        self._axes = axes
        self._rows = found.rows
        kinds = (found.own, found.whole)
        self._most = 1.3 * max(10, *(lengths.longest_ms for lengths in kinds))
        self._least = max(1, min(*(lengths.within(_LEAST_SHARE) // 2 for lengths in kinds), int(self._most) // 100))
        self._none_late = min(0.5 / self._rows, 0.001)

    def draw(self) -> None:
        found, axes = self._found, self._axes
        self._frame()
        if self._has_splits:
            self._curve(found.whole, _ONE, (0, (5, 2)), "one watermark for all, as Spark's")
        self._curve(found.own, _OWN, "solid", "a watermark for each split")
        if self._has_splits:
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, handlelength=3)
        self._mark_recommended()

    def _curve(self, lengths: DurationHistogram, colour: str, style: LineStyleType, name: str) -> None:
        """A step at each length that there is: with a bound of that length, these are late no more."""
        bounds, late = lengths.points()
        shown = bounds > self._least
        x = np.concatenate([[self._least], bounds[shown], [self._most]])
        shares = np.concatenate([[lengths.longer_than(self._least)], late[shown], [0]]) / self._rows
        shares = shares.clip(self._none_late)
        self._axes.step(x, shares, where="post", color=colour, linestyle=style, linewidth=2.6, zorder=4, label=name)

    def _mark_recommended(self) -> None:
        late = self._found.own.longer_than(self._bound_ms)
        place = (max(self._bound_ms, self._least), max(late / self._rows, self._none_late))
        self._axes.plot(*([part] for part in place), "o", color=_OWN, markersize=9, zorder=6)
        is_left = place[0] ** 2 < self._least * self._most
        self._axes.annotate(
            length(self._bound_ms),
            place,
            (12, -13) if is_left else (-12, 5),
            textcoords="offset points",
            ha="left" if is_left else "right",
            color=_OWN,
            weight="bold",
        )

    def _frame(self) -> None:
        axes = self._axes
        axes.set(xscale="log", yscale="log", xlim=(self._least, self._most), ylim=(1.0, self._none_late / 1.6))
        fine, coarse = ([tick for tick in some if self._least <= tick <= self._most] for some in (_FINE_MS, _TICKS_MS))
        ticks = fine if len(fine) <= _MOST_TICKS else coarse
        axes.set_xticks(ticks, [length(tick) for tick in ticks])
        late = {share: name for share, name in _LATE.items() if share > self._none_late * 1.5}
        axes.set_yticks([*late, self._none_late], [*late.values(), "all"])
        axes.minorticks_off()
        axes.grid(color=_LINES, linewidth=0.9)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, colors=_QUIET, pad=6)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("the bound: how long results wait for out-of-order elements", color=_QUIET, loc="right")
        axes.set_ylabel("elements that are not late", color=_QUIET, loc="top")
        axes.set_title("How long to wait for how much", loc="left", weight="bold", fontsize=14, pad=48)
        axes.text(0, 1.085, self._measured(), transform=axes.transAxes, color=_QUIET, fontsize=10, in_layout=False)

    def _measured(self) -> str:
        rows = count(self._rows, "element")
        if not self._has_splits:
            return rows
        name, slowest = self._found.slowest
        splits, wait = count(len(self._found.splits), "split"), length(round(slowest.mean_apart_ms))
        return f"{rows} in {splits}. With a watermark for each, results also wait for {name}, {wait} behind on average."
