"""Windows of time: plain values, which assigners make, state is kept under, and results may carry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from eventide.common.ms import MIN_MS, window_start

__all__ = ["TimeWindow", "Window"]

_bounds = attrgetter("start", "end")


class Window(ABC):
    """A finite bucket of elements. A window hashes, compares equal by value, and pickles, because it names state."""

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the last time that belongs to the window, in milliseconds; a watermark at or after it closes it."""


class _MergeCallback(Protocol):
    """Receiver of the merged windows of `TimeWindow.merge_windows`; Flink's ``MergeCallback``."""

    def merge(self, to_be_merged: Sequence[TimeWindow], merge_result: TimeWindow, /) -> None:
        """Take note that the windows `to_be_merged` become `merge_result`."""


@dataclass(slots=True, order=True)
class TimeWindow(Window):
    """A stretch of time from `start` (inclusive) to `end` (exclusive), in milliseconds since the epoch (UTC).

    Windows order by start, then end. They are not to be changed; Python is not made to watch over that, because
    making a window would then take four times as long, and there is at least one for every element.

    >>> TimeWindow(0, 10).max_timestamp()
    9
    >>> TimeWindow(0, 10)
    TimeWindow(start=0, end=10)
    """

    start: int
    end: int

    def max_timestamp(self) -> int:
        """Return ``end - 1``, the last millisecond inside."""
        end = self.end
        return end - 1 if end > MIN_MS else MIN_MS

    def __hash__(self) -> int:
        # Windows that end together and begin apart are rare, and each element's windows are hashed several times.
        return hash(self.end)

    def intersects(self, other: TimeWindow) -> bool:
        """Say whether the two windows share a time, or touch.

        Windows that touch count, because this decides whether sessions merge: two events exactly one gap
        apart belong to one session.

        >>> TimeWindow(0, 10).intersects(TimeWindow(10, 20)), TimeWindow(0, 10).intersects(TimeWindow(11, 20))
        (True, False)
        """
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that holds both.

        >>> TimeWindow(0, 10).cover(TimeWindow(15, 20))
        TimeWindow(start=0, end=20)
        """
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the window of `window_size` that contains `timestamp`, below zero too (milliseconds).

        >>> TimeWindow.get_window_start_with_offset(-1, 0, 10)
        -10
        """
        return window_start(timestamp, offset, window_size)

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: _MergeCallback) -> None:
        """Merge all windows that intersect, directly or through others.

        The callback is called once for each merged window, in time order, with the different windows that went
        into it, sorted. A window that merges with no other is not reported.
        """
        group: list[TimeWindow] = []
        covered: TimeWindow | None = None
        for window in sorted(set(windows), key=_bounds):
            if covered is not None and covered.intersects(window):
                group.append(window)
                covered = covered.cover(window)
                continue
            if covered is not None and len(group) > 1:
                callback.merge(group, covered)
            group, covered = [window], window
        if covered is not None and len(group) > 1:
            callback.merge(group, covered)
