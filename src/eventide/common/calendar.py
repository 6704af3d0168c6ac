"""Numbered stretches of the calendar in a time zone: hours of a day, days, weeks, months and longer.

A stretch begins when the clocks of the zone first show its beginning, or a later time, and ends where the next one
begins. So a day on which clocks are set has 23 or 25 hours, a day that a zone skipped has none, and every time is in
one stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import ProgramError

_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_MONTHS_OF_YEAR, _HOURS_OF_DAY, _DAYS_OF_WEEK = 12, 24, 7

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
UNITS = ("hour", "day", "week", *_MONTHS)
"""The units that stretches may have."""

_FIRST, _LAST = date(2, 1, 1), date(9998, 12, 31)
"""Days that are in a stretch in every zone; all times before them are in one stretch, and all times after them."""


@dataclass(frozen=True)
class Calendar:
    """All stretches of a unit in a time zone, numbered in the order of time.

    Args:
        unit: ``"hour"``, ``"day"``, ``"week"`` (from Monday), ``"month"``, ``"quarter"`` or ``"year"``.
        zone: a name of the IANA time zone database, such as ``"Europe/Berlin"``.
        every: how many units a stretch has: for hours and months, a divisor of the day or the year; else 1.

    Raises:
        ProgramError: The unit or the zone is not known, or stretches of that many units do not fill a day or a year.

    >>> days = Calendar("day", "Europe/Berlin")
    >>> number = days.number_at(1_711_843_200_000)  # 2024-03-31, on which clocks are set forth
    >>> (days.start(number + 1) - days.start(number)) / 3_600_000
    23.0
    """

    unit: str
    zone: str = "UTC"
    every: int = 1

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ProgramError(f"calendar windows: expected a unit out of {', '.join(UNITS)}, got {self.unit!r}")
        whole = {"hour": _HOURS_OF_DAY, "month": _MONTHS_OF_YEAR}.get(self.unit, 1)
        if type(self.every) is not int or self.every < 1 or whole % self.every:
            allowed = [str(n) for n in range(1, whole + 1) if whole % n == 0]
            raise ProgramError(
                f"calendar windows: every has to be {' or '.join(allowed)} for the unit {self.unit!r}, "
                f"not {self.every!r}"
            )
        _zone(self.zone)

    def start(self, number: int) -> int:
        """The time at which a stretch begins, in milliseconds since the epoch (UTC).

        It is the end of the one before. It saturates at the ends of the calendar, at ``MIN_MS`` and ``MAX_MS``.
        """
        if number < self.first:
            return MIN_MS
        if number > self.last:
            return MAX_MS
        return _begins(self, number)

    def number_at(self, time_ms: int) -> int:
        """The number of the stretch that a time is in, given in milliseconds since the epoch (UTC)."""
        if time_ms < self.start(self.first):
            return self.first - 1
        if time_ms >= self.start(self.last):
            return self.last
        number = self._number_of(_shown(time_ms, self.zone))
        while self.start(number + 1) <= time_ms:  # clocks that were set back show the day before again
            number += 1
        while self.start(number) > time_ms:
            number -= 1
        return number

    @cached_property
    def first(self) -> int:
        """The number of the first stretch with a beginning; the one before it has none."""
        return self._number_of(datetime.combine(_FIRST, datetime.min.time()))

    @cached_property
    def last(self) -> int:
        """The number of the last stretch, which has no end."""
        return self._number_of(datetime.combine(_LAST, datetime.min.time()))

    def _number_of(self, shown: datetime) -> int:
        """The number of the stretch that a date and a time of day belong to."""
        if self.unit in _MONTHS:
            months = _MONTHS_OF_YEAR * shown.year + shown.month - 1
            return months // (_MONTHS[self.unit] * self.every)
        day = shown.toordinal()
        if self.unit == "week":
            return (day - 1) // _DAYS_OF_WEEK  # the first day of all is a Monday
        if self.unit == "day":
            return day
        return day * (_HOURS_OF_DAY // self.every) + shown.hour // self.every

    def shown_at_start(self, number: int) -> datetime:
        """The date and the time of day with which a stretch begins."""
        if self.unit in _MONTHS:
            year, month = divmod(number * _MONTHS[self.unit] * self.every, _MONTHS_OF_YEAR)
            return datetime(year, month + 1, 1)  # noqa: DTZ001
        day, hour = number, 0
        if self.unit == "week":
            day = _DAYS_OF_WEEK * number + 1
        elif self.unit == "hour":
            day, hour = divmod(number * self.every, _HOURS_OF_DAY)
        return datetime.combine(date.fromordinal(day), datetime.min.time()) + timedelta(hours=hour)


@lru_cache(maxsize=4_096)
def _begins(calendar: Calendar, number: int) -> int:
    """The first time at which the clocks of a zone show the beginning of a stretch, or a later time."""
    beginning = calendar.shown_at_start(number)
    zone = _zone(calendar.zone)
    earlier, later = ((beginning.replace(tzinfo=zone, fold=fold) - _EPOCH_UTC) // _MS for fold in (0, 1))
    if _shown(earlier, calendar.zone) == beginning:
        return earlier
    # Clocks never showed it: they were set forward at a time between these two, which is searched for.
    before, reached = sorted((earlier, later))
    while reached - before > 1:
        middle = (before + reached) // 2
        if _shown(middle, calendar.zone) >= beginning:
            reached = middle
        else:
            before = middle
    return reached


def _shown(time_ms: int, zone: str) -> datetime:
    """The date and the time of day that the clocks of a zone show."""
    return (_EPOCH_UTC + time_ms * _MS).astimezone(_zone(zone)).replace(tzinfo=None, fold=0)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise ProgramError(
            f"calendar windows: no time zone {name!r} is known here; give a name of the IANA database such as "
            "'Europe/Berlin', and install the package tzdata where the system has no database"
        ) from error
