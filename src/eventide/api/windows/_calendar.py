"""Cumulating windows, which grow step by step, and windows of the calendar of a time zone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from eventide.api.windows._assigners import InTime, WindowAssigner, check_offset, offset_ms_of
from eventide.common.calendar import Calendar
from eventide.common.ms import clamp_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.windows import TimeWindow
from eventide.errors import ProgramError


@dataclass(frozen=True)
class CumulatingEventTimeWindows(InTime[object]):
    """Windows that grow by `step` up to `size`, and then start over: the day up to each hour, say.

    They start at `offset` plus every multiple of `size`; from each start, there is a window of each multiple of `step`.
    A timestamp is in the windows of its start that end after it, up to ``size / step`` windows. Flink: ``CUMULATE`` in
    SQL.

    Raises:
        ProgramError: Size or step are not positive, the size is not a multiple of the step, or the offset is not
            smaller than the size.

    >>> windows = CumulatingEventTimeWindows.of(Time.seconds(10), Time.seconds(5))
    >>> windows.assign_windows("element", 12_000, None)
    [TimeWindow(start=10000, end=20000), TimeWindow(start=10000, end=15000)]
    """

    size: int
    step: int
    offset: int = 0

    def __post_init__(self) -> None:
        check_offset(self.offset, to_positive_ms(self.size, "window size"), "window size")
        if self.size % to_positive_ms(self.step, "window step"):
            raise ProgramError(f"window size: expected a multiple of the step of {self.step} ms, got {self.size} ms")

    @classmethod
    def of(
        cls, size: Duration | Time | int, step: Duration | Time | int, offset: Duration | Time | int | None = None
    ) -> Self:
        """Return windows that grow by `step` up to `size`, shifted by `offset`, which may be negative."""
        return cls(to_positive_ms(size, "window size"), to_positive_ms(step, "window step"), offset_ms_of(offset))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the windows of the element, longest first; a `DataError` says that it has no timestamp."""
        time = self._time_of(element, timestamp, context)
        start = time - (time - self.offset) % self.size
        steps = range(self.size // self.step, (time - start) // self.step, -1)
        return [TimeWindow(clamp_ms(start), clamp_ms(start + count * self.step)) for count in steps]


@dataclass(frozen=True)
class TumblingCalendarWindows(InTime[object]):
    """Windows of the calendar in a time zone, end to end: hours of a day, days, weeks, months, quarters or years.

    A window begins when the clocks of the zone first show its beginning. So a day of 23 or 25 hours, on which clocks
    are set, is one window. An hour that clocks show twice is one window of two hours; an hour that they skip has none.
    Times before the year 2 are in one window, and the last one of the year 9998 has no end. Not in Flink.

    >>> days = TumblingCalendarWindows.of("day", zone="America/New_York")
    >>> days.assign_windows("element", 1_710_050_400_000, None)  # 2024-03-10 06:00 UTC, before clocks are set forth
    [TimeWindow(start=1710046800000, end=1710129600000)]
    """

    calendar: Calendar

    @classmethod
    def of(cls, unit: str, zone: str = "UTC", every: int = 1) -> Self:
        """Return windows of the calendar.

        Args:
            unit: ``"hour"``, ``"day"``, ``"week"`` (from Monday), ``"month"``, ``"quarter"`` or ``"year"``.
            zone: A name of the IANA time zone database, such as ``"Europe/Berlin"``.
            every: How many units a window has: ``of("hour", zone, every=8)`` are the shifts of a day, which begin at
                0, 8 and 16 o'clock. Hours have to fill a day, months a year; with other units it is 1.

        Raises:
            ProgramError: The unit or the zone is not known, or windows of that many units do not fill a day or a year.
        """
        return cls(Calendar(unit, zone, every))

    def assign_windows(
        self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        """Return the one window of the element; a `DataError` says that it has no timestamp."""
        number = self.calendar.number_at(self._time_of(element, timestamp, context))
        return [TimeWindow(self.calendar.start(number), self.calendar.start(number + 1))]
