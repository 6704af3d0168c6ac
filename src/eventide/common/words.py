"""Points in time, lengths of time, numbers and sizes, in words for people."""

from __future__ import annotations

import datetime

from eventide.common.ms import MAX_MS, MIN_MS

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def moment(ms: int) -> str:
    """A point in time, or a watermark, in UTC.

    >>> moment(1357000000000)
    '2013-01-01 00:26:40'
    """
    if ms == MIN_MS:
        return "the beginning"
    if ms == MAX_MS:
        return "the end"
    try:
        return f"{datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def length(ms: int) -> str:
    """A length of time, in its two largest units; of few seconds, with a decimal.

    >>> length(90), length(1_250), length(61_000), length(7_260_000), length(86_400_000)
    ('90 ms', '1.2 s', '1 min 1 s', '2 h 1 min', '1 d')
    """
    if ms < 0:
        return f"-{length(-ms)}"
    if 1_000 <= ms < 10_000 and ms % 1_000 >= 100:
        return f"{ms // 100 / 10} s"
    for place, (unit, size) in enumerate(_UNITS):
        whole, rest = divmod(ms, size)
        if whole:
            smaller = _UNITS[place + 1 : place + 2]
            parts = [(whole, unit), *((rest // size, unit) for unit, size in smaller)]
            return " ".join(f"{number:,} {unit}" for number, unit in parts if number)
    return f"{ms} ms"


def count(number: int, what: str) -> str:
    """A number of things.

    >>> count(1, "file"), count(1_200, "file")
    ('1 file', '1,200 files')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def size(number: int) -> str:
    """A number of bytes.

    >>> size(999), size(12_345), size(7_000_000)
    ('999 bytes', '12.3 kB', '7.0 MB')
    """
    for unit, unit_size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= unit_size:
            return f"{number / unit_size:,.1f} {unit}"
    return f"{number} bytes"
