"""Windows: plain values, which assigners make, and which state and results may have.

The serializers are for window assigners that name them, as PyFlink's do; eventide stores windows as they are.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from operator import attrgetter
from typing import Protocol

from eventide.common.ms import MAX_MS, MIN_MS, window_start
from eventide.common.serializer import TypeSerializer

__all__ = [
    "TimeWindow",
    "Window",
    "CountWindow",
    "GlobalWindow",
]

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

    Windows order by start, then end. Do not change them: Python does not enforce this, because making a window would
    then take four times as long, and there is at least one for every element.

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
        # Windows with one end and different starts are rare, and each element's windows are hashed several times.
        return hash(self.end)

    def intersects(self, other: TimeWindow) -> bool:
        """Say whether the two windows share a time, or touch.

        Touching windows count, because this decides whether sessions merge: two events exactly one gap apart belong to
        one session.

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

        The callback is called once for each merged window, in time order, with the different windows that it consists
        of, sorted. A window that does not merge is not reported.
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


@dataclass(frozen=True, slots=True, order=True)
class CountWindow(Window):
    """A window with a number and without a time, as those of `CountSlidingWindowAssigner`."""

    id: int

    def max_timestamp(self) -> int:
        """Return the largest time: event time never closes the window before the stream ends."""
        return MAX_MS


@dataclass(frozen=True, slots=True, order=True)
class GlobalWindow(Window):
    """The one window that holds all elements of a key.

    >>> GlobalWindow.get() == GlobalWindow()
    True
    """

    @staticmethod
    def get() -> GlobalWindow:
        """Return the window; all instances are equal."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """Return the largest time: event time never closes the window before the stream ends."""
        return MAX_MS

    def __repr__(self) -> str:
        return "GlobalWindow"


_GLOBAL_WINDOW = GlobalWindow()


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes a window of time as its start and its end, 8 bytes each.

    >>> stream = BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(0, 10), stream)
    >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
    TimeWindow(start=0, end=10)
    """

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        stream.write(struct.pack(">qq", element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        return TimeWindow(*struct.unpack(">qq", stream.read(16)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes a count window as its number, in 8 bytes."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        stream.write(struct.pack(">q", element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        return CountWindow(*struct.unpack(">q", stream.read(8)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes the one window that holds everything as a byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        stream.read(1)
        return GlobalWindow.get()
