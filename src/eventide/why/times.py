"""Times to the millisecond, as they are written by people and for them; and long lists in few words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from eventide.common import words
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import ProgramError


def moment(ms: int) -> str:
    """A time of events or of the clock, to the millisecond where that says something: watermarks end with a window.

    >>> moment(1357000000000), moment(1357000000250)
    ('2013-01-01 00:26:40 UTC', '2013-01-01 00:26:40.250 UTC')
    """
    said = words.moment(ms)
    if not said[:1].isdecimal():
        return said
    return f"{said}{f'.{ms % 1_000:03d}' if ms % 1_000 else ''} UTC"


def shortened(texts: Iterable[str], most: int = 3) -> str:
    """The first texts of a list, and how many more there are.

    >>> shortened("abcde"), shortened("ab")
    ('a, b, c and 2 more', 'a, b')
    """
    every = list(texts)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def to_ms(text: str) -> int:
    """A time that somebody has written, in milliseconds: ISO 8601, in UTC without a zone, or the number itself.

    Raises:
        ProgramError: if it is neither, or a number that no element can have for its time.

    >>> to_ms("2013-01-01T00:26:40"), to_ms("2013-01-01 01:26:40+01:00"), to_ms("1357000000000")
    (1357000000000, 1357000000000, 1357000000000)
    """
    try:
        if text.removeprefix("-").isdecimal() and MIN_MS <= (ms := int(text)) <= MAX_MS:
            return ms
        at = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise ProgramError(f"{text!r} is not a time; write 2026-05-01T08:30, or epoch milliseconds") from error
    aware = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
