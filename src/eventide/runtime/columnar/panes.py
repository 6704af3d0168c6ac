"""Panes: the pieces that sliding windows are put together from, so that a row is stored once."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import SlidingEventTimeWindows, TumblingEventTimeWindows, WindowAssigner
from eventide.common.ms import MAX_MS, MIN_MS, clamp_ms
from eventide.common.time_window import TimeWindow
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation
from eventide.runtime.columnar.layout import PANE, Array, key_names, numbers_in
from eventide.runtime.window.rules import last_late, last_reached, latest_late_time


@dataclass(frozen=True, slots=True)
class Panes:
    """How time falls into panes: all timestamps of a pane are in the same windows.

    A window of ``size`` starts at ``offset`` plus every multiple of ``slide``. Windows begin and end at two points of
    every slide only, so a slide has two panes at most, however size and slide divide; with tumbling windows, the one
    pane is the window.

    >>> panes = Panes(size=10, slide=4)
    >>> panes.start_of(np.array([0, 1, 2, 3, 4])).tolist()
    [0, 0, 2, 2, 4]
    >>> panes.windows(2)
    [TimeWindow(start=-4, end=6), TimeWindow(start=0, end=10)]
    """

    size: int
    slide: int
    offset: int = 0

    def start_of(self, timestamps: Array) -> Array:
        """Where the pane of each timestamp starts; a start below the range saturates."""
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

        >>> Panes(size=10, slide=4).last_of(np.array([0, 2])).tolist()
        [1, 3]
        """
        cut = self.size % self.slide
        begins_slide = (starts - self.offset) % self.slide == 0
        lengths = np.where(begins_slide, cut or self.slide, self.slide - cut)
        last: Array = starts + lengths - 1
        return last

    def is_boundary_between(self, before_ms: int, watermark_ms: int, lateness_ms: int = 0) -> bool:
        """Whether a window fires, or is dropped after its lateness, as the watermark goes up: else it changes nothing.

        >>> Panes(size=10, slide=10).is_boundary_between(3, 8), Panes(size=10, slide=10).is_boundary_between(3, 9)
        (False, True)
        """
        return self.last_late(lateness_ms, before_ms) != self.last_late(lateness_ms, watermark_ms)

    def reacts_between(self, before_ms: int, watermark_ms: int, lateness_ms: int) -> bool:
        """Whether a window fires, or is dropped, as the watermark goes up; an element in a gap may become late."""
        return self.slide > self.size or any(
            self.is_boundary_between(before_ms, watermark_ms, late_ms) for late_ms in {0, lateness_ms}
        )

    def last_fired(self, watermark_ms: int) -> int:
        """The number of the last window that a watermark has passed."""
        return last_reached(self.first_last_ms, self.slide, watermark_ms)

    def last_late(self, lateness_ms: int, watermark_ms: int) -> int:
        """The number of the last window that can no longer be updated."""
        return last_late(self.first_last_ms, self.slide, lateness_ms, watermark_ms)

    @property
    def per_slide(self) -> int:
        """How many panes a slide has."""
        return 1 if self.size % self.slide == 0 else 2

    @property
    def per_window(self) -> int:
        """How many panes a window has, one after the other."""
        return self.size // self.slide * self.per_slide + (self.size % self.slide != 0)

    @property
    def first_last_ms(self) -> int:
        """The last millisecond of window 0."""
        return self.offset + self.size - 1

    def number_of(self, pane: int) -> int:
        """The number of the pane that starts at a time: panes follow each other as their numbers do.

        >>> panes = Panes(size=10, slide=4)
        >>> [panes.number_of(start) for start in (-2, 0, 2, 4)]
        [-1, 0, 1, 2]
        """
        # A start that saturated stands for the pane that the first of all timestamps is in.
        inside = pane if pane > MIN_MS else MIN_MS + 1
        slides, into_slide = divmod(inside - self.offset, self.slide)
        return slides if self.per_slide == 1 else 2 * slides + (into_slide >= self.size % self.slide)

    def windows_at(self, number: int) -> range:
        """The numbers of the windows that the pane of a number belongs to; none in a gap between windows.

        Window ``n`` has the panes from ``n * per_slide`` on, ``per_window`` of them.

        >>> Panes(size=10, slide=4).windows_at(1)
        range(-1, 1)
        """
        return range(-((self.per_window - 1 - number) // self.per_slide), number // self.per_slide + 1)

    def window(self, number: int) -> TimeWindow:
        """The window of a number; its bounds saturate one by one, as those of an assigner's windows do."""
        start = self.offset + number * self.slide
        return TimeWindow(clamp_ms(start), clamp_ms(start + self.size))

    def last_time_of(self, number: int) -> int:
        """The last time whose windows, or the gap after them, come before the window that follows one of a number.

        >>> Panes(size=10, slide=4).last_time_of(0), Panes(size=2, slide=10).last_time_of(0)
        (3, 9)
        """
        return clamp_ms(self.offset + (number + 1) * self.slide - 1)

    def count_windows_with(self, panes: list[int], first: int) -> int:
        """How many windows some panes are in, from a number on.

        >>> Panes(size=10, slide=4).count_windows_with([1, 7], first=0)
        3
        """
        count, following = 0, first
        for pane in panes[bisect_left(panes, first * self.per_slide) :]:
            windows = self.windows_at(pane)
            count += max(0, windows.stop - max(windows.start, following))
            following = max(following, windows.stop)
        return count

    def windows_with(self, panes: list[int], first: int, last: int) -> list[int]:
        """The windows from one to another, both inclusive, that some panes are in; all by number, in their order.

        >>> Panes(size=10, slide=4).windows_with([1, 7], first=0, last=9)
        [0, 2, 3]
        """
        windows: list[int] = []
        following = first
        while following <= last:
            at = bisect_left(panes, following * self.per_slide)
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


class WholeWindows(Panes):
    """Windows of which each is a pane by itself, also where they overlap.

    >>> WholeWindows(size=10, slide=4).windows_at(1)
    range(1, 2)
    """

    __slots__ = ()

    @property
    def per_slide(self) -> int:
        """One."""
        return 1

    @property
    def per_window(self) -> int:
        """One."""
        return 1


@dataclass(frozen=True, slots=True)
class Arrived:
    """Where the pane of each timestamp starts, which are late, and which of the others are in no window."""

    starts: Array
    late: Array
    without_window: Array


def arrived(panes: Panes, timestamps: Array, last_late: int, lateness_ms: int, watermark_ms: int) -> Arrived:
    """Tell which of some timestamps are late, given the number of the last window that is.

    >>> come = arrived(Panes(size=2, slide=10), np.array([1, 5, 11]), last_late=0, lateness_ms=0, watermark_ms=4)
    >>> come.late.tolist(), come.without_window.tolist()
    ([True, False, False], [False, True, False])
    """
    starts = panes.start_of(timestamps)
    windows = {start: panes.windows_at(panes.number_of(start)) for start in np.unique(starts).tolist()}
    in_gap = np.isin(starts, [start for start, at in windows.items() if not at])
    late = np.isin(starts, [start for start, at in windows.items() if at.stop - 1 <= last_late])
    late = np.where(in_gap, timestamps <= latest_late_time(lateness_ms, watermark_ms), late)
    return Arrived(starts, late, in_gap & ~late)


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

    >>> at, windows = windows_of(Panes(size=10, slide=5), np.array([0, 5]), after=-1)
    >>> at.tolist(), windows.tolist()
    ([0, 1, 1], [0, 1, 0])
    """
    distinct, place = np.unique(starts, return_inverse=True)
    ranges = [panes.windows_at(panes.number_of(start)) for start in distinct.tolist()]
    last = np.array([windows.stop - 1 for windows in ranges], np.int64)[place]
    first = np.array([max(windows.start, after + 1) for windows in ranges], np.int64)[place]
    counts = np.maximum(last - first + 1, 0)
    at = np.repeat(np.arange(len(starts)), counts)
    nth = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    return at, last[at] - nth


def panes_of(assigner: WindowAssigner[Any, Any]) -> Panes | None:
    """How time falls into panes; None where windows do not consist of panes.

    >>> panes_of(TumblingEventTimeWindows(10, 3))
    Panes(size=10, slide=10, offset=3)
    """
    if isinstance(assigner, TumblingEventTimeWindows):
        return Panes(assigner.size, assigner.size, assigner.offset)
    if isinstance(assigner, SlidingEventTimeWindows):
        return Panes(assigner.size, assigner.slide, assigner.offset)
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
