"""Windows that are not stretches of time: the count window, and the one window that holds everything.

The serializers are for window assigners that name them, as PyFlink's do; eventide stores windows as they are.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from io import BytesIO

from eventide.common.ms import MAX_MS
from eventide.common.serializer import TypeSerializer
from eventide.common.time_window import TimeWindow, Window

__all__ = [
    "CountWindow",
    "GlobalWindow",
    "TimeWindow",
    "Window",
]


@dataclass(frozen=True, slots=True, order=True)
class CountWindow(Window):
    """A window that is known by a number and has no place in time, as `CountSlidingWindowAssigner` has them."""

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
