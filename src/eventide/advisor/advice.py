"""Advice about the disorder of a stream: how large a bound, what it costs and loses, and the line to paste."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eventide.advisor.disorder import Disorder
from eventide.advisor.reading import ColumnRoles
from eventide.common.words import count, length
from eventide.errors import ProgramError, getting
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


SHARES = (0.01, 0.001, 0.0001, 0.0)
"""The shares of elements that may be lost, for each of which a bound is found."""

_APART_MS = 30 * _MINUTE
_PRINTED = 110
_STEPS = (86_400_000, 3_600_000, 600_000, 300_000, 60_000, 10_000, 5_000, 1_000, 100, 10, 1)
_UNITS = ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"), (1_000, "seconds"), (1, "millis"))
_TO_MS = {"s": "* 1_000", "us": "// 1_000", "ns": "// 1_000_000"}
_LONGEST = 105  # so that it stays in one piece on a terminal
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """A bound for a share that may be lost, and what comes of it. Lengths are in milliseconds.

    Attributes:
        lose: the share of elements that may be lost; 0: none of those that were seen.
        bound_ms: the bound, rounded up to a number that one would write.
        late: how many elements are behind the watermark of their split with that bound. A window has the lowest
            watermark of all splits, and loses no more than these.
        delay_ms: how old results are, compared with the newest element, on average: the bound, and the lag of the
            slowest split.
        late_with_one: how many elements are late with an equal bound under one watermark for all, such
            as Spark's.
        bound_with_one_ms: the bound that one watermark for all needs to lose no more; also the delay of
            its results.
    """

    lose: float
    bound_ms: int
    late: int
    delay_ms: int
    late_with_one: int
    bound_with_one_ms: int


@dataclass(frozen=True, slots=True)
class Early:
    """Results early and corrected later: a small bound, and a lateness that loses nothing of what was seen.

    Attributes:
        bound_ms: the bound.
        lateness_ms: the allowed lateness of the windows.
        corrections: how many elements are late, and correct a result that was given.
    """

    bound_ms: int
    lateness_ms: int
    corrections: int


@dataclass(frozen=True)
class Advice:
    """Advice on watermarks from data: made by :func:`eventide.advisor.advise`, printed with ``print``.

    Attributes:
        disorder: the measurement that the advice follows from.
        columns: which columns said what; the event time is ``""`` where records have it themselves.
        lose: the share of elements that may be lost with the strategy that is recommended.
        can_align: whether the splits are those of a source that can be told to wait.

    >>> import tempfile, pyarrow as pa, pyarrow.csv
    >>> from eventide.advisor import advise
    >>> path = tempfile.mkdtemp() + "/readings.csv"
    >>> pyarrow.csv.write_csv(pa.table({"ms": [1_000, 2_000, 1_400, 3_000, 4_000]}), path)
    >>> advice = advise(path, time="ms", lose=0)
    >>> advice.recommended.bound_ms, advice.recommended.late
    (600, 0)
    >>> print(advice.code)
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(600)).with_timestamp_assigner("ms")
    """

    disorder: Disorder
    columns: ColumnRoles
    lose: float = 0.001
    can_align: bool = True

    @property
    def has_splits(self) -> bool:
        """Whether there are several splits, so that a watermark for each is something else than one for all."""
        return len(self.disorder.splits) > 1

    @cached_property
    def choices(self) -> list[Choice]:
        """Bounds for losing 1 %, 0.1 %, 0.01 % and nothing, and what comes of each."""
        return [self.choice(share) for share in SHARES]

    @cached_property
    def recommended(self) -> Choice:
        """The bound for the share of elements that may be lost."""
        return self.choice(self.lose)

    def choice(self, lose: float) -> Choice:
        """The smallest bound, rounded up, with which no more than a share is lost."""
        bound_ms = rounded_up(self.disorder.own.within(lose))
        return Choice(
            lose,
            bound_ms,
            self.disorder.own.longer_than(bound_ms),
            bound_ms + self.wait_ms,
            self.disorder.whole.longer_than(bound_ms),
            rounded_up(self.disorder.whole.within(lose)),
        )

    @cached_property
    def wait_ms(self) -> int:
        """How long results wait for the slowest split, on average: the lag of that split."""
        return round(self.disorder.slowest[1].mean_apart_ms)

    @cached_property
    def idleness_ms(self) -> int | None:
        """After how long a split should count as idle; None if the data show no silence that calls for it.

        Twice as long as all but a thousandth of the gaps between elements, and not before a split has missed twenty
        elements; where a silence is at least twice as long as that, and a minute, or a split has never spoken.
        """
        found = self.disorder
        if not self.has_splits and not found.silent:
            return None
        usual_ms = max(found.gaps.within(0.001), *(10 * split.mean_gap_ms for split in found.splits.values()), 500)
        timeout_ms = rounded_up(int(2 * usual_ms))
        return timeout_ms if found.silent or self.silence[1] >= max(2 * timeout_ms, _MINUTE) else None

    @cached_property
    def silence(self) -> tuple[str, int]:
        """The split that was silent for the longest time, and for how long.

        The end of the data is often not that of all splits at once: there, a twentieth of the whole is a silence.
        """
        splits = self.disorder.splits
        ended_ms = self.disorder.ended_ms
        least_ms = (ended_ms - min(split.begun_ms for split in splits.values())) / 20
        at_the_end = {name: ended_ms - split.heard_ms for name, split in splits.items()}
        silences = {
            name: max(split.silence_ms, at_the_end[name] if at_the_end[name] >= least_ms else 0)
            for name, split in splits.items()
        }
        return max(silences.items(), key=lambda named: named[1])

    @cached_property
    def drift_ms(self) -> int | None:
        """How far splits should run ahead of the slowest one, at most; None if they are not that far apart.

        For splits that are half an hour apart or more, and further than four bounds.
        """
        bound_ms = self.recommended.bound_ms
        if not self.has_splits or not self.can_align or self.wait_ms < max(_APART_MS, 4 * bound_ms):
            return None
        return rounded_up(max(bound_ms, _MINUTE))

    @cached_property
    def early(self) -> Early | None:
        """A bound that loses 1 %, and a lateness for these; None if that is not at least twice as early."""
        small_ms, whole_ms = self.choice(SHARES[0]).bound_ms, self.choice(0.0).bound_ms
        if whole_ms < 2 * small_ms or whole_ms == 0:
            return None
        return Early(small_ms, whole_ms - small_ms, self.disorder.own.longer_than(small_ms))

    @cached_property
    def code(self) -> str:
        """The strategy, to be pasted into a program."""
        return strategy_code(self.columns, self.recommended.bound_ms, self.idleness_ms, self.drift_ms)

    @cached_property
    def notes(self) -> list[str]:
        """Notes on faults of the data that would make any bound a bad one; empty where there are none."""
        return list(notes_on(self.disorder, self.recommended.bound_ms, self.has_splits))

    def to_json(self) -> dict[str, Any]:
        """The advice as JSON values; lengths are in milliseconds, shares between 0 and 1."""
        found = self.disorder
        return {
            "rows": found.rows,
            "without_time": found.nulls,
            "splits": len(found.splits),
            "choices": [{**asdict(choice), **self._shares(choice)} for choice in self.choices],
            "recommended": {**asdict(self.recommended), **self._shares(self.recommended)},
            "slowest_split": {"name": found.slowest[0], "behind_ms": self.wait_ms} if self.has_splits else None,
            "longest_silence": dict(zip(("split", "ms"), self.silence, strict=True)) if self.has_splits else None,
            "clock": "arrival" if found.has_clock else "event time",
            "idleness_ms": self.idleness_ms,
            "drift_ms": self.drift_ms,
            "early": None if self.early is None else asdict(self.early),
            "code": self.code,
            "notes": self.notes,
        }

    def plot(self, path: str | Path) -> None:
        """Draw completeness against the bound; the ending of the path says the format (.png, .svg, …).

        Raises:
            ProgramError: matplotlib, which comes with the extra ``plot``, is not installed.
        """
        draw(self.disorder, self.recommended.bound_ms, Path(path))

    def _shares(self, choice: Choice) -> dict[str, float]:
        rows = self.disorder.rows
        return {"late_share": choice.late / rows, "late_share_with_one": choice.late_with_one / rows}

    def __rich__(self) -> RenderableType:
        return view_of(self)

    def __str__(self) -> str:
        written = StringIO()
        Console(file=written, width=_PRINTED, markup=False, highlight=False, emoji=False, color_system=None).print(self)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def rounded_up(ms: int) -> int:
    """A length that is no shorter, by less than a tenth longer, and a shorter number.

    >>> rounded_up(0), rounded_up(7), rounded_up(4_871), rounded_up(61_200), rounded_up(13_860_000)
    (0, 7, 4900, 65000, 14400000)
    """
    step = next((step for step in _STEPS if step * 10 <= ms), 1)
    return -(-ms // step) * step


def strategy_code(columns: ColumnRoles, bound_ms: int, idleness_ms: int | None, drift_ms: int | None) -> str:
    """A watermark strategy as a program makes it; in several lines where it is long.

    >>> print(strategy_code(ColumnRoles("ts"), 0, None, None))
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    """
    bounded = f"for_bounded_out_of_orderness({duration_code(bound_ms)})" if bound_ms else "for_monotonous_timestamps()"
    calls = [f"WatermarkStrategy.{bounded}"]
    if columns.time:
        calls.append(f".with_timestamp_assigner({_assigner(columns)})")
    if idleness_ms is not None:
        calls.append(f".with_idleness({duration_code(idleness_ms)})")
    if drift_ms is not None:
        calls.append(f'.with_watermark_alignment("a group", {duration_code(drift_ms)})')
    line = "".join(calls)
    return line if len(line) <= _LONGEST else "(\n    " + "\n    ".join(calls) + "\n)"


def duration_code(ms: int) -> str:
    """A duration as a program makes it.

    >>> duration_code(90_000), duration_code(1_500)
    ('Duration.of_seconds(90)', 'Duration.of_millis(1500)')
    """
    size, name = next((size, name) for size, name in _UNITS if ms % size == 0)
    return f"Duration.of_{name}({ms // size})"


def notes_on(found: Disorder, bound_ms: int, has_splits: bool) -> Iterator[str]:
    """Sentences, the one that matters most first."""
    yield from _note_on_leaps(found, bound_ms)
    if has_splits:
        yield from _note_on_zones(found)
    if found.future:
        yield (
            f"{count(found.future, 'element')} happened after they arrived, by up to {length(found.most_future_ms)}: "
            "check the clock, or the time zone, of their producer"
        )
    if found.nulls:
        yield (
            f"{count(found.nulls, 'element')} without a time: a job fails at the first of them, unless "
            "with_null_timestamps(NullTimestamps.DROP), or with an OutputTag, says what becomes of them"
        )
    if found.silent:
        names = ", ".join(found.silent[:_SHOWN]) + (", …" if len(found.silent) > _SHOWN else "")
        yield f"{names} had nothing to read: without idleness, a split that has never spoken holds all windows"


def view_of(advice: Advice) -> RenderableType:
    """The table, the code line, and what else the data show: less than a screen."""
    promise = "loses nothing of what was seen" if advice.lose == 0 else f"loses at most {percent(advice.lose)}"
    parts: list[RenderableType] = [Text(_measured(advice), "bold"), Text(), _table(advice), Text()]
    parts += [Text(f"To paste; it {promise}", "bold"), Padding(Text(advice.code, "green"), (0, 0, 0, 2))]
    remarks = Table.grid(padding=(0, 1, 0, 0))
    for line in _said(advice):
        remarks.add_row(Text("-"), Text(line))
    for note in advice.notes:
        remarks.add_row(Text("!", "yellow"), Text(note, "yellow"))
    parts += [Text(), remarks] if remarks.row_count else []
    return Group(*parts)


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


def _assigner(columns: ColumnRoles) -> str:
    name = f'"{columns.time}"'
    conversion = _TO_MS.get(columns.unit or "ms")
    return name if conversion is None else f"lambda row, _: row[{name}] {conversion}"


def _note_on_leaps(found: Disorder, bound_ms: int) -> Iterator[str]:
    """One element with a time far ahead makes all others late, and every bound too small or absurd."""
    name, split = max(found.splits.items(), key=lambda named: named[1].leap_ms)
    if split.leap_ms and bound_ms >= split.leap_ms / 2:
        yield (
            f"an element of the split {name} is {length(split.leap_ms)} ahead of all before it, and later elements are "
            "not: its time is most probably wrong. Leave such elements out, and measure again: this bound comes from "
            "them"
        )


def _note_on_zones(found: Disorder) -> Iterator[str]:
    """A split that lags by whole hours, and never by less, most probably writes another time zone."""
    for name, split in found.splits.items():
        hours = round(split.mean_apart_ms / _HOUR)
        off_ms = abs(split.mean_apart_ms - hours * _HOUR)
        if hours and off_ms <= _MINUTE and split.least_apart_ms >= hours * _HOUR - 10 * _MINUTE:
            yield (
                f"the split {name} is {hours} h behind the others, no more and no less: is that a time zone? If the "
                "elements do not arrive that late, their times are local, or name a wrong zone"
            )
            return


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
