"""Times and distances in words."""

from __future__ import annotations

import datetime as dt

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.errors import ProgramError

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def moment(ms: int) -> str:
    """A time of events or of the clock, in UTC.

    >>> moment(1357000000000)
    '2013-01-01 00:26:40 UTC'
    >>> moment(1357000000250)
    '2013-01-01 00:26:40.250 UTC'
    """
    if ms == MIN_MS:
        return "the beginning"
    if ms == MAX_MS:
        return "the end"
    try:
        at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return f"{at:%Y-%m-%d %H:%M:%S}{f'.{ms % 1_000:03d}' if ms % 1_000 else ''} UTC"


def length(ms: int) -> str:
    """A distance, in its two largest units.

    >>> length(0), length(999), length(1_500), length(3_725_000), length(90_000_000)
    ('0 ms', '999 ms', '1.5 s', '1 h 2 min', '1 d 1 h')
    """
    if abs(ms) < 1_000:
        return f"{ms} ms"
    sign, ms = ("-", -ms) if ms < 0 else ("", ms)
    if ms < 60_000:
        return f"{sign}{ms / 1_000:.3g} s"
    parts: list[str] = []
    for unit, size in _UNITS:
        count, ms = divmod(ms, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return sign + " ".join(part for part in parts[:2] if part)


def to_ms(text: str) -> int:
    """A time that somebody has written, in milliseconds: ISO 8601, in UTC without a zone, or the number itself.

    Raises:
        ProgramError: if it is neither.

    >>> to_ms("2013-01-01T00:26:40"), to_ms("2013-01-01 01:26:40+01:00"), to_ms("1357000000000")
    (1357000000000, 1357000000000, 1357000000000)
    """
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        at = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise ProgramError(f"{text!r} is no time; write 2026-05-01T08:30, or milliseconds since the epoch") from error
    aware = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
