"""Text for people: points in time, lengths of time, numbers, sizes, lists and the progress of a job; units of time."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from eventide.common.job import BatchProgress
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import ProgramError

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))

PER_S = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The units of time since the epoch, and how many of each a second has."""

UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
"""The names of these units."""

_FROM_S, _UNTIL_S = 631_152_000, 4_102_444_800  # 1990 and 2100

Line: TypeAlias = tuple[str, str]
"""The subject of a line, and its text."""

_RECENT = 20
"""Number of micro-batches for the average rate of rows."""


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
    """A length of time, in its two largest units; a few seconds with a decimal.

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


def other_unit_of(number: int) -> str | None:
    """The unit other than milliseconds in which a number is a date of these decades; None if there is none.

    >>> other_unit_of(1_790_000_000), other_unit_of(1_790_000_000_000), other_unit_of(7)
    ('s', None, None)
    """
    units = [unit for unit, per_s in PER_S.items() if _FROM_S <= number // per_s < _UNTIL_S]
    return units[0] if units and units[0] != "ms" else None


def summary(progress: Sequence[BatchProgress]) -> list[Line]:
    """Describe the progress of a job, given its known micro-batches, the latest last.

    >>> at = 1_700_000_000_000
    >>> late = {"sums": {"numLateRecordsDropped": 2}}
    >>> splits = {"orders": {"0": at, "1": at - 65_000}}
    >>> batch = BatchProgress(
    ...     4, late, {"sums": at - 65_000}, splits, late, rows_in=500, began_ms=at - 1_000, took_ms=1_000)
    >>> for line in summary([batch]):
    ...     print(": ".join(line))
    micro-batch: 4, 1 s
    rows: 500 in the micro-batch, 500 a second; 2 late
    watermark: 2023-11-14 22:12:15 (sums), 1 min 5 s behind the clock
    slowest split: 1 of orders at 2023-11-14 22:12:15, 1 min 5 s behind the next
    >>> waiting = BatchProgress(5, {}, {}, {}, pending={"orders": 70}, pending_of={"orders": {"1": 64, "0": 6}})
    >>> summary([waiting])[-1]
    ('waiting', '70 elements; most of them, 64, in 1 of orders')
    """
    if not progress:
        return [("micro-batch", "the first has not ended yet")]
    last = progress[-1]
    spent = ", ".join(f"{what} {length(ms)}" for what, ms in last.spent_ms.items() if ms)
    lines = [("micro-batch", f"{last.batch}, {length(last.took_ms)}" + (f" ({spent})" if spent else ""))]
    lines.append(("rows", f"{last.rows_in:,} in the micro-batch{_rate(progress)}; {_late(last):,} late{_dead(last)}"))
    if last.watermarks:
        name = min(last.watermarks, key=lambda one: last.watermarks[one])
        ms = last.watermarks[name]
        lag = f", {length(last.ended_ms - ms)} behind the clock" if MIN_MS < ms <= last.ended_ms else ""
        lines.append(("watermark", f"{moment(ms)} ({name}){lag}"))
    slowest, waiting = _slowest(last), _waiting(last)
    lines += [("slowest split", slowest)] if slowest else []
    return [*lines, ("waiting", waiting)] if waiting else lines


def _rate(progress: Sequence[BatchProgress]) -> str:
    recent = progress[-_RECENT:]
    took_ms = recent[-1].ended_ms - recent[0].began_ms
    return f", {sum(one.rows_in for one in recent) * 1000 // took_ms:,} a second" if took_ms > 0 else ""


def _late(last: BatchProgress) -> int:
    """The number of late elements since the start of the job."""
    late = ("numLateRecordsDropped", "numLateRecordsToSideOutput")
    return sum(counters.get(name, 0) for counters in last.counters.values() for name in late)


def _dead(last: BatchProgress) -> str:
    """The number of dead letters since the start of the job, if there were any."""
    letters = sum(counters.get("numDeadLetters", 0) for counters in last.counters.values())
    return f", {letters:,} dead" + (" letter" if letters == 1 else " letters") if letters else ""


def _slowest(last: BatchProgress) -> str:
    """The split with the lowest watermark, if several have not ended."""
    known = sorted(
        (ms, split, source) for source, splits in last.splits_of.items() for split, ms in splits.items() if ms < MAX_MS
    )
    if len(known) < 2:
        return ""
    (ms, split, source), (following, *_) = known[:2]
    silent = sum(1 for at, *_ in known if at == MIN_MS)
    if silent:
        others = f", nor {silent - 1} other(s)" if silent > 1 else ""
        return f"{split} of {source} has not spoken yet{others}"
    gap = f", {length(following - ms)} behind the next" if following > ms else ""
    return f"{split} of {source} at {moment(ms)}{gap}"


def _waiting(last: BatchProgress) -> str:
    """How many elements wait for later micro-batches, and in which split most of them do."""
    text = count(sum(last.pending.values()), "element")
    if not any(last.pending.values()):
        return ""
    found = most_pending(last)
    return text if found is None else f"{text}; most of them, {found[2]:,}, in {found[1]} of {found[0]}"


def most_pending(last: BatchProgress) -> tuple[str, str, int] | None:
    """The source and the split in which most elements wait, and how many; None if none waits, or that is not known."""
    known = [(n, source, split) for source, splits in last.pending_of.items() for split, n in splits.items() if n]
    if not known:
        return None
    records, source, split = max(known)
    return source, split, records


def in_utc(ms: int) -> str:
    """An event time or a time of the clock, with milliseconds only if they matter: watermarks end with a window.

    >>> in_utc(1357000000000), in_utc(1357000000250)
    ('2013-01-01 00:26:40 UTC', '2013-01-01 00:26:40.250 UTC')
    """
    said = moment(ms)
    if not said[:1].isdecimal():
        return said
    return f"{said}{f'.{ms % 1_000:03d}' if ms % 1_000 else ''} UTC"


def shortened(texts: Iterable[str], most: int = 3) -> str:
    """The first texts of a list, and the number of the others.

    >>> shortened("abcde"), shortened("ab")
    ('a, b, c and 2 more', 'a, b')
    """
    every = list(texts)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def ms_of_text(text: str) -> int:
    """Parse a time as milliseconds: ISO 8601, in UTC without a zone, or the number itself.

    Raises:
        ProgramError: if it is neither, or a number outside the range of timestamps.

    >>> ms_of_text("2013-01-01T00:26:40"), ms_of_text("2013-01-01 01:26:40+01:00"), ms_of_text("1357000000000")
    (1357000000000, 1357000000000, 1357000000000)
    """
    try:
        if text.removeprefix("-").isdecimal() and MIN_MS <= (ms := int(text)) <= MAX_MS:
            return ms
        at = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise ProgramError(f"{text!r} is not a time; write 2026-05-01T08:30, or epoch milliseconds") from error
    aware = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
    return (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
