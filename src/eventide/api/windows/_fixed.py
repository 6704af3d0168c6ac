"""Windows of fixed size, in event time and in processing time: tumbling and sliding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from eventide.api.windows._assigners import WindowAssigner
from eventide.api.windows._time import EVENT_TIME, PROCESSING_TIME, InTime, KindOfTime
from eventide.common.ms import to_ms, to_positive_ms, window_bounds
from eventide.common.time import Duration, Time
from eventide.common.time_window import TimeWindow
from eventide.errors import ProgramError


@dataclass(frozen=True)
class _TumblingWindows(InTime[object]):
    """The shared part of tumbling windows of both kinds of time."""

    size: int
    offset: int = 0

    def __post_init__(self) -> None:
        _check_offset(self.offset, to_positive_ms(self.size, "window size"), "window size")

    @classmethod
    def of(cls, size: Duration | Time | int, offset: Duration | Time | int | None = None) -> Self:
        """Return windows of `size`, shifted by `offset`, which may be negative (a day's offset from UTC, say)."""
        return cls(to_positive_ms(size, "window size"), _offset_ms(offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the one window of the element; in event time, a `DataError` says that it has no timestamp."""
        time = self._TIME.time_of(element, timestamp, context)
        return [TimeWindow(start, end) for start, end in window_bounds(time, self.offset, self.size, self.size)]


class TumblingEventTimeWindows(_TumblingWindows):
    """Windows of one size, end to end: each timestamp is in exactly one.

    They start at `offset` plus every multiple of `size`, below zero too. Window bounds saturate at the ends of the
    64-bit range.

    Raises:
        ProgramError: The size is not positive, or the offset is not smaller than the size.

    >>> hours = TumblingEventTimeWindows.of(Time.hours(1))
    >>> hours.assign_windows("element", 3_600_000, None)
    [TimeWindow(start=3600000, end=7200000)]
    """

    _TIME: ClassVar[KindOfTime] = EVENT_TIME


class TumblingProcessingTimeWindows(_TumblingWindows):
    """Windows of one size, end to end, by the clock: an element is in that of the time at which it is handled.

    That is the time of its micro-batch; timestamps play no role, and nothing can be late. A window fires in the first
    micro-batch whose time has reached its last millisecond, and is gone then. Windows start where those of
    `TumblingEventTimeWindows` do.

    Raises:
        ProgramError: The size is not positive, or the offset is not smaller than the size.

    >>> TumblingProcessingTimeWindows.of(Time.hours(1), Time.minutes(15))
    TumblingProcessingTimeWindows(size=3600000, offset=900000)
    """

    _TIME: ClassVar[KindOfTime] = PROCESSING_TIME


@dataclass(frozen=True)
class _SlidingWindows(InTime[object]):
    """The shared part of sliding windows of both kinds of time."""

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        to_positive_ms(self.size, "window size")
        _check_offset(self.offset, to_positive_ms(self.slide, "window slide"), "window slide")

    @classmethod
    def of(
        cls, size: Duration | Time | int, slide: Duration | Time | int, offset: Duration | Time | int | None = None
    ) -> Self:
        """Return windows of `size`, one every `slide`, shifted by `offset`, which may be negative."""
        return cls(to_positive_ms(size, "window size"), to_positive_ms(slide, "window slide"), _offset_ms(offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of the element, latest first; in event time, a `DataError` says it has no timestamp."""
        time = self._TIME.time_of(element, timestamp, context)
        return [TimeWindow(start, end) for start, end in window_bounds(time, self.offset, self.size, self.slide)]


class SlidingEventTimeWindows(_SlidingWindows):
    """Windows of one size that start at every multiple of `slide`, plus `offset`.

    A timestamp is in ``size / slide`` of them; where `slide` is larger than `size` there are gaps, and an element in
    a gap has no window.

    Raises:
        ProgramError: Size or slide are not positive, or the offset is not smaller than the slide.

    >>> windows = SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    >>> windows.assign_windows("element", 12_000, None)
    [TimeWindow(start=10000, end=20000), TimeWindow(start=5000, end=15000)]
    """

    _TIME: ClassVar[KindOfTime] = EVENT_TIME


class SlidingProcessingTimeWindows(_SlidingWindows):
    """Windows of one size by the clock, which start at every multiple of `slide`, plus `offset`.

    An element is in those of the time at which it is handled, the time of its micro-batch; timestamps play no role, and
    nothing can be late.

    Raises:
        ProgramError: Size or slide are not positive, or the offset is not smaller than the slide.

    >>> SlidingProcessingTimeWindows.of(Time.seconds(10), Time.seconds(5))
    SlidingProcessingTimeWindows(size=10000, slide=5000, offset=0)
    """

    _TIME: ClassVar[KindOfTime] = PROCESSING_TIME


def _offset_ms(offset: Duration | Time | int | None) -> int:
    return 0 if offset is None else to_ms(offset, "window offset")


def _check_offset(offset: int, limit: int, what: str) -> None:
    if abs(to_ms(offset, "window offset")) >= limit:
        message = f"window offset: expected less than the {what} of {limit} ms, got {offset} ms"
        raise ProgramError(message)
