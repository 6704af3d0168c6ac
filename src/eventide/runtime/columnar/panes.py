"""Panes: the pieces that sliding windows are put together from, so that a row is stored once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import (
    CumulatingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.common.calendar import Calendar
from eventide.common.ms import MAX_MS, MIN_MS, clamp_ms
from eventide.common.windows import TimeWindow
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation
from eventide.runtime.columnar.layout import PANE, Array, key_names, numbers_in
from eventide.runtime.elements.ordering import spread
from eventide.runtime.eventtime.rules import last_cleaned_up, last_late, latest_late_time, reached

_DAY_MS = 24 * 60 * 60 * 1_000
_FEW_DAYS = 100
"""The days between timestamps up to which all stretches are looked up, which is faster than finding their days."""


class Panes(ABC):
    """How time falls into panes: all timestamps of a pane are in the same windows.

    Panes and windows have numbers, and follow each other as these do. A window has some panes, one after the other; no
    window begins or ends earlier than one before it.
    """

    @property
    def has_gaps(self) -> bool:
        """Whether some times are in no window."""
        return False

    @property
    def per_window(self) -> int:
        """How many panes a window has at most."""
        return 1

    @property
    @abstractmethod
    def are_windows(self) -> bool:
        """Whether each pane is a window, and each window a pane."""

    @abstractmethod
    def start_of(self, timestamps: Array) -> Array:
        """Where the pane of each timestamp starts; a start below the range saturates."""

    @abstractmethod
    def last_of(self, starts: Array) -> Array:
        """The last millisecond of the pane that starts at each of some times."""

    @abstractmethod
    def number_of(self, pane: int) -> int:
        """The number of the pane that starts at a time."""

    @abstractmethod
    def windows_at(self, number: int) -> range:
        """The numbers of the windows that the pane of a number belongs to; none in a gap between windows."""

    @abstractmethod
    def panes_in(self, window: int) -> range:
        """The numbers of the panes of the window of a number."""

    @abstractmethod
    def window(self, number: int) -> TimeWindow:
        """The window of a number; its bounds saturate one by one, as those of an assigner's windows do."""

    def last_ms(self, windows: Array) -> Array:
        """The last millisecond of each of some windows, by number."""
        distinct, at = np.unique(windows, return_inverse=True)
        last: Array = np.array([self.window(number).max_timestamp() for number in distinct.tolist()], np.int64)[at]
        return last

    @abstractmethod
    def last_ending(self, last_ms: int) -> int:
        """The number of the last window whose last millisecond is no later than one, which may be outside 64 bits."""

    @abstractmethod
    def last_time_of(self, number: int) -> int:
        """The last time that is in no window after the one of a number, nor in the gap before such a window."""

    def is_boundary_between(self, before_ms: int, watermark_ms: int, lateness_ms: int = 0) -> bool:
        """Whether a window fires, or is dropped after its lateness, as the watermark goes up: else it changes nothing.

        >>> panes = RegularPanes(size=10, slide=10)
        >>> panes.is_boundary_between(3, 8), panes.is_boundary_between(3, 9)
        (False, True)
        """
        return self.last_late(lateness_ms, before_ms) != self.last_late(lateness_ms, watermark_ms)

    def reacts_between(self, before_ms: int, watermark_ms: int, lateness_ms: int) -> bool:
        """Whether a window fires, or is dropped, as the watermark goes up; an element in a gap may become late."""
        return self.has_gaps or any(
            self.is_boundary_between(before_ms, watermark_ms, late_ms) for late_ms in {0, lateness_ms}
        )

    def last_fired(self, watermark_ms: int) -> int:
        """The number of the last window that a watermark has passed."""
        return self.last_ending(reached(watermark_ms))

    def last_late(self, lateness_ms: int, watermark_ms: int) -> int:
        """The number of the last window that can no longer be updated."""
        return self.last_ending(last_late(lateness_ms, watermark_ms))

    def last_cleaned_up(self, lateness_ms: int, watermark_ms: int) -> int:
        """The number of the last window whose state is dropped."""
        return self.last_ending(last_cleaned_up(lateness_ms, watermark_ms))

    def count_windows_with(self, panes: list[int], first: int) -> int:
        """How many windows some panes are in, from a number on.

        >>> RegularPanes(size=10, slide=4).count_windows_with([1, 7], first=0)
        3
        """
        count, following = 0, first
        for pane in panes[bisect_left(panes, self.panes_in(first).start) :]:
            windows = self.windows_at(pane)
            count += max(0, windows.stop - max(windows.start, following))
            following = max(following, windows.stop)
        return count

    def windows_with(self, panes: list[int], first: int, last: int) -> list[int]:
        """The windows from one to another, both inclusive, that some panes are in; all by number, in their order.

        >>> RegularPanes(size=10, slide=4).windows_with([1, 7], first=0, last=9)
        [0, 2, 3]
        """
        windows: list[int] = []
        following = first
        while following <= last:
            at = bisect_left(panes, self.panes_in(following).start)
            if at == len(panes):
                break
            found = self.windows_at(panes[at])
            some = range(max(found.start, following), min(found.stop - 1, last) + 1)
            if not some:
                break
            windows += some
            following = some.stop
        return windows

    def windows(self, pane: int) -> list[TimeWindow]:
        """The windows that the pane that starts at a time belongs to, in the order of time."""
        return [self.window(number) for number in self.windows_at(self.number_of(pane))]


@dataclass(frozen=True, slots=True)
class RegularPanes(Panes):
    """Panes of windows of one ``size`` that start at ``offset`` plus every multiple of ``slide``.

    Windows begin and end at two points of every slide only, so a slide has two panes at most, however size and slide
    divide; with tumbling windows, the one pane is the window.

    >>> panes = RegularPanes(size=10, slide=4)
    >>> panes.start_of(np.array([0, 1, 2, 3, 4])).tolist()
    [0, 0, 2, 2, 4]
    >>> panes.windows(2)
    [TimeWindow(start=-4, end=6), TimeWindow(start=0, end=10)]
    """

    size: int
    slide: int
    offset: int = 0

    @property
    def has_gaps(self) -> bool:
        """Whether windows start further apart than they are long."""
        return self.slide > self.size

    @property
    def are_windows(self) -> bool:
        """Whether the windows are tumbling."""
        return self.slide == self.size

    def start_of(self, timestamps: Array) -> Array:
        shift = self.offset % self.slide
        into_slide = timestamps % self.slide
        if shift:
            into_slide = (into_slide - shift) % self.slide
        cut = self.size % self.slide
        into_pane = into_slide if cut == 0 else np.where(into_slide < cut, into_slide, into_slide - cut)
        starts: Array = timestamps - into_pane
        if len(timestamps) and timestamps.min() < MIN_MS + self.slide:
            starts = np.where(starts > timestamps, MIN_MS, starts)  # a difference below the range has wrapped around
        return starts

    def last_of(self, starts: Array) -> Array:
        """The last millisecond of the pane that starts at each of some times.

        >>> RegularPanes(size=10, slide=4).last_of(np.array([0, 2])).tolist()
        [1, 3]
        """
        cut = self.size % self.slide
        begins_slide = (starts - self.offset) % self.slide == 0
        lengths = np.where(begins_slide, cut or self.slide, self.slide - cut)
        last: Array = starts + lengths - 1
        return last

    @property
    def per_slide(self) -> int:
        """How many panes a slide has."""
        return 1 if self.size % self.slide == 0 else 2

    @property
    def per_window(self) -> int:
        """How many panes a window has."""
        return self.size // self.slide * self.per_slide + (self.size % self.slide != 0)

    def number_of(self, pane: int) -> int:
        """The number of the pane that starts at a time.

        >>> panes = RegularPanes(size=10, slide=4)
        >>> [panes.number_of(start) for start in (-2, 0, 2, 4)]
        [-1, 0, 1, 2]
        """
        # A start that saturated stands for the pane that the first of all timestamps is in.
        inside = pane if pane > MIN_MS else MIN_MS + 1
        slides, into_slide = divmod(inside - self.offset, self.slide)
        return slides if self.per_slide == 1 else 2 * slides + (into_slide >= self.size % self.slide)

    def windows_at(self, number: int) -> range:
        """The numbers of the windows that the pane of a number belongs to; none in a gap between windows.

        >>> RegularPanes(size=10, slide=4).windows_at(1)
        range(-1, 1)
        """
        return range(-((self.per_window - 1 - number) // self.per_slide), number // self.per_slide + 1)

    def panes_in(self, window: int) -> range:
        """The numbers of the panes of the window of a number.

        >>> RegularPanes(size=10, slide=4).panes_in(1)
        range(2, 7)
        """
        first = window * self.per_slide
        return range(first, first + self.per_window)

    def window(self, number: int) -> TimeWindow:
        start = self.offset + number * self.slide
        return TimeWindow(clamp_ms(start), clamp_ms(start + self.size))

    def last_ending(self, last_ms: int) -> int:
        """The number of the last window whose last millisecond is no later than one.

        >>> [RegularPanes(size=10, slide=10).last_ending(last_ms) for last_ms in (8, 9, 29)]
        [-1, 0, 2]
        """
        return (last_ms - (self.offset + self.size - 1)) // self.slide

    def last_time_of(self, number: int) -> int:
        """The last time that is in no window after the one of a number, nor in the gap before such a window.

        >>> RegularPanes(size=10, slide=4).last_time_of(0), RegularPanes(size=2, slide=10).last_time_of(0)
        (3, 9)
        """
        return clamp_ms(self.offset + (number + 1) * self.slide - 1)


@dataclass(frozen=True, slots=True)
class CumulatingPanes(Panes):
    """Panes of windows that grow by ``step`` up to ``size``: a pane for each step, which its window ends with.

    >>> panes = CumulatingPanes(size=15, step=5)
    >>> panes.windows(5)
    [TimeWindow(start=0, end=10), TimeWindow(start=0, end=15)]
    """

    size: int
    step: int
    offset: int = 0

    @property
    def are_windows(self) -> bool:
        """Whether there is one step."""
        return self.step == self.size

    @property
    def per_window(self) -> int:
        """How many steps the longest windows have."""
        return self.size // self.step

    @property
    def _steps(self) -> RegularPanes:
        return RegularPanes(self.step, self.step, self.offset)

    def start_of(self, timestamps: Array) -> Array:
        return self._steps.start_of(timestamps)

    def last_of(self, starts: Array) -> Array:
        return self._steps.last_of(starts)

    def number_of(self, pane: int) -> int:
        return self._steps.number_of(pane)

    def windows_at(self, number: int) -> range:
        """The numbers of the windows that the step of a number belongs to: its own, and the longer ones."""
        return range(number, (number // self.per_window + 1) * self.per_window)

    def panes_in(self, window: int) -> range:
        return range(window // self.per_window * self.per_window, window + 1)

    def window(self, number: int) -> TimeWindow:
        start = self.offset + self.panes_in(number).start * self.step
        return TimeWindow(clamp_ms(start), clamp_ms(self.offset + (number + 1) * self.step))

    def last_ending(self, last_ms: int) -> int:
        return self._steps.last_ending(last_ms)

    def last_time_of(self, number: int) -> int:
        """The last time that is in no window after the one of a number.

        >>> [CumulatingPanes(size=15, step=5).last_time_of(window) for window in (1, 2, 3)]
        [-1, 14, 14]
        """
        return clamp_ms(self.offset + self.panes_in(number + 1).start * self.step - 1)


@dataclass(frozen=True, slots=True)
class CalendarPanes(Panes):
    """Panes that are stretches of a calendar, each a window.

    >>> panes = CalendarPanes(Calendar("day", "Europe/Berlin"))
    >>> [start] = panes.start_of(np.array([1_711_843_200_000])).tolist()
    >>> (panes.last_of(np.array([start])) + 1 - start).tolist()  # a day of 23 hours
    [82800000]
    """

    calendar: Calendar

    @property
    def are_windows(self) -> bool:
        return True

    def start_of(self, timestamps: Array) -> Array:
        """Where the stretch of each timestamp starts; of times before all stretches, ``MIN_MS``."""
        if not len(timestamps):
            return timestamps
        number_at, starts = self.calendar.number_at, set[int]()
        for first_ms, last_ms in _stretches(timestamps):
            starts.update(map(self.calendar.start, range(number_at(first_ms), number_at(last_ms) + 1)))
        known = np.array(sorted(starts), np.int64)
        found: Array = known[np.searchsorted(known, timestamps, side="right") - 1]
        return found

    def last_of(self, starts: Array) -> Array:
        distinct, place = np.unique(starts, return_inverse=True)
        return self.last_ms(np.array([self.number_of(start) for start in distinct.tolist()], np.int64))[place]

    def number_of(self, pane: int) -> int:
        return self.calendar.number_at(pane)

    def windows_at(self, number: int) -> range:
        """The number of the stretch itself."""
        return range(number, number + 1)

    def panes_in(self, window: int) -> range:
        """The number of the window itself."""
        return range(window, window + 1)

    def window(self, number: int) -> TimeWindow:
        return TimeWindow(self.calendar.start(number), self.calendar.start(number + 1))

    def last_ending(self, last_ms: int) -> int:
        if last_ms >= MAX_MS - 1:
            return self.calendar.last
        return self.calendar.number_at(last_ms + 1) - 1

    def last_time_of(self, number: int) -> int:
        return self.window(number).max_timestamp()


def _stretches(timestamps: Array) -> list[tuple[int, int]]:
    """Stretches of time that have all of some timestamps: one, or, where that is long, each day that has any."""
    first, last = int(timestamps.min()), int(timestamps.max())
    if last - first < _FEW_DAYS * _DAY_MS:
        return [(first, last)]
    return [(day * _DAY_MS, (day + 1) * _DAY_MS - 1) for day in np.unique(timestamps // _DAY_MS).tolist()]


@dataclass(frozen=True, slots=True)
class WholeWindows(Panes):
    """The windows of other panes, of which each is a pane by itself, also where they overlap.

    >>> WholeWindows(RegularPanes(size=10, slide=4)).windows_at(1)
    range(1, 2)
    """

    of: Panes

    @property
    def has_gaps(self) -> bool:
        return self.of.has_gaps

    @property
    def are_windows(self) -> bool:
        return True

    def start_of(self, timestamps: Array) -> Array:
        return self.of.start_of(timestamps)

    def last_of(self, starts: Array) -> Array:
        return self.of.last_of(starts)

    def number_of(self, pane: int) -> int:
        return self.of.number_of(pane)

    def windows_at(self, number: int) -> range:
        """The number of the window itself."""
        return range(number, number + 1)

    def panes_in(self, window: int) -> range:
        """The number of the window itself."""
        return range(window, window + 1)

    def window(self, number: int) -> TimeWindow:
        return self.of.window(number)

    def last_ending(self, last_ms: int) -> int:
        return self.of.last_ending(last_ms)

    def last_time_of(self, number: int) -> int:
        return self.of.last_time_of(number)


class OfPanes:
    """The part of an operator that knows by its watermark which windows of panes have fired, and which are late."""

    panes: Panes
    lateness_ms: int
    watermark: int

    @property
    def late_until(self) -> int:
        """The last time whose windows can no longer be updated."""
        return self.panes.last_time_of(self.last_late())

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether a window fires, or is dropped, when the watermark gets there; an element in a gap may be late."""
        return self.panes.reacts_between(self.watermark, watermark_ms, self.lateness_ms)

    def last_fired(self) -> int:
        """The number of the last window that the watermark has passed."""
        return self.panes.last_fired(self.watermark)

    def last_late(self) -> int:
        """The number of the last window that can no longer be updated."""
        return self.panes.last_late(self.lateness_ms, self.watermark)


@dataclass(frozen=True, slots=True)
class AssignedPanes:
    """Where the pane of each timestamp starts, which are late, and which of the others are in no window."""

    starts: Array
    late: Array
    without_window: Array


def arrived(panes: Panes, timestamps: Array, last_late: int, lateness_ms: int, watermark_ms: int) -> AssignedPanes:
    """Tell which of some timestamps are late, given the number of the last window that is.

    >>> come = arrived(RegularPanes(size=2, slide=10), np.array([1, 5, 11]), last_late=0, lateness_ms=0, watermark_ms=4)
    >>> come.late.tolist(), come.without_window.tolist()
    ([True, False, False], [False, True, False])
    """
    starts = panes.start_of(timestamps)
    windows = {start: panes.windows_at(panes.number_of(start)) for start in np.unique(starts).tolist()}
    in_gap = np.isin(starts, [start for start, at in windows.items() if not at])
    late = np.isin(starts, [start for start, at in windows.items() if at.stop - 1 <= last_late])
    late = np.where(in_gap, timestamps <= latest_late_time(lateness_ms, watermark_ms), late)
    return AssignedPanes(starts, late, in_gap & ~late)


def later(times: Array, by_ms: int | Array) -> Array:
    """Shift times by `by_ms`, or each by its own; sums saturate at the ends of the 64-bit range.

    >>> later(np.array([1, MAX_MS]), 2).tolist() == [3, MAX_MS]
    True
    """
    by_ms = by_ms if isinstance(by_ms, np.ndarray) else clamp_ms(by_ms)
    sums = times + by_ms
    has_wrapped = (sums < times) != (by_ms < 0)
    return np.where(has_wrapped, np.where(by_ms < 0, MIN_MS, MAX_MS), sums)


def windows_of(panes: Panes, starts: Array, after: int) -> tuple[Array, Array]:
    """The windows of elements, given where the pane of each starts: only those after the one of a number.

    Returns:
        The index of the element, and the number of the window; those of an element latest first, as assigners give
        them.

    >>> at, windows = windows_of(RegularPanes(size=10, slide=5), np.array([0, 5]), after=-1)
    >>> at.tolist(), windows.tolist()
    ([0, 1, 1], [0, 1, 0])
    """
    distinct, place = np.unique(starts, return_inverse=True)
    ranges = [panes.windows_at(panes.number_of(start)) for start in distinct.tolist()]
    last = np.array([windows.stop - 1 for windows in ranges], np.int64)[place]
    first = np.array([max(windows.start, after + 1) for windows in ranges], np.int64)[place]
    counts = np.maximum(last - first + 1, 0)
    at, nth = spread(counts)
    return at, last[at] - nth


WITH_PANES = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    CumulatingEventTimeWindows,
    TumblingCalendarWindows,
)
"""Assigners of event time whose windows consist of panes; subclasses of them may assign others."""


def panes_of(assigner: WindowAssigner[Any, Any]) -> Panes | None:
    """How time falls into panes; None if windows do not consist of panes.

    >>> panes_of(TumblingEventTimeWindows(10, 3))
    RegularPanes(size=10, slide=10, offset=3)
    """
    if isinstance(assigner, TumblingEventTimeWindows):
        return RegularPanes(assigner.size, assigner.size, assigner.offset)
    if isinstance(assigner, SlidingEventTimeWindows):
        return RegularPanes(assigner.size, assigner.slide, assigner.offset)
    if isinstance(assigner, CumulatingEventTimeWindows):
        return CumulatingPanes(assigner.size, assigner.step, assigner.offset)
    if isinstance(assigner, TumblingCalendarWindows):
        return CalendarPanes(assigner.calendar)
    return None


_ROWS_OF_AN_ELEMENT = 16
"""Most rows of chunks that an element is appended to: where it is in more windows, a row has several."""


def windows_in_row(panes: Panes) -> int:
    """How many windows, one after the other, a row of chunks holds, where windows and no panes are stored."""
    return -(-panes.per_window // _ROWS_OF_AN_ELEMENT)


@dataclass(frozen=True, slots=True)
class PaneAggregation:
    """Puts rows into panes and aggregates each pane by key.

    Whether a window is late is a property of the window and not of its elements, so that lateness can be judged after
    the shuffle, for many elements at once.
    """

    panes: Panes
    keys: int
    aggregation: Aggregation

    def partial(self, rows: pa.Table) -> pa.Table:
        """One row for each key and pane, whatever the number of rows."""
        starts = self.panes.start_of(numbers_in(rows, TIMESTAMP))
        return self.aggregation.partial(rows.append_column(PANE, pa.array(starts)), [*key_names(self.keys), PANE])

    def merge(self, partials: pa.Table) -> pa.Table:
        """One row for each key and pane, of partial aggregates that may have several."""
        return self.aggregation.merge(partials, [*key_names(self.keys), PANE])
