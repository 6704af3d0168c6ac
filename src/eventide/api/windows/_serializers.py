"""How PyFlink writes windows: for window assigners that say it. eventide stores windows as they are."""

from __future__ import annotations

import struct
from io import BytesIO

from eventide.api.windows._windows import CountWindow, GlobalWindow, TimeWindow
from eventide.common.serializer import TypeSerializer


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
