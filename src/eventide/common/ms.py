"""Arithmetic on event time, which is an integer of milliseconds since the epoch (UTC) in 64 bits.

Results outside the range saturate at `MIN_MS` and `MAX_MS`. Only this module handles the ends of the range.
"""

from typing import Any

from eventide.common.time import Duration, Time
from eventide.errors import ProgramError

MIN_MS = -(2**63)
"""The smallest time; as a timestamp it means "none", as a watermark "nothing known yet"."""

MAX_MS = 2**63 - 1
"""The largest time; as a watermark it means that no element will follow."""


def clamp_ms(value: int) -> int:
    """Return the time nearest to `value` that 64 bits can hold.

    >>> clamp_ms(2**70) == MAX_MS, clamp_ms(-7)
    (True, -7)
    """
    return MIN_MS if value < MIN_MS else MAX_MS if value > MAX_MS else value


def add_ms(a: int, b: int) -> int:
    """Add two times; the sum saturates at `MIN_MS` and `MAX_MS`.

    >>> add_ms(1, 2), add_ms(MAX_MS, 1) == MAX_MS, add_ms(MIN_MS, -1) == MIN_MS
    (3, True, True)
    """
    total = a + b
    return total if MIN_MS <= total <= MAX_MS else clamp_ms(total)


def whole_ms(time: Any) -> int:
    """Return the time of a timer in whole milliseconds; it saturates at the end of time.

    As in PyFlink, a fraction is cut off, towards zero.

    Raises:
        ProgramError: if it is not a number, or is before the beginning of time.

    >>> whole_ms(5.9), whole_ms(2**70) == MAX_MS
    (5, True)
    """
    if type(time) is int and MIN_MS <= time <= MAX_MS:
        return time
    try:
        whole = int(time) if not isinstance(time, str) else None
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None:
        raise ProgramError(f"a timer is set for a time in milliseconds, not for {time!r}")
    if whole < MIN_MS:
        raise ProgramError(
            f"a timer is set for {time!r} ms, but the smallest time is -2**63 ms, the watermark before the first one; "
            "do not subtract from it"
        )
    return min(whole, MAX_MS)


def window_start(timestamp_ms: int, offset_ms: int, size_ms: int) -> int:
    """Return the start of the window of `size_ms` that contains `timestamp_ms`.

    Windows start at `offset_ms` plus every multiple of `size_ms`, below zero too; a start below `MIN_MS` saturates.

    >>> window_start(12, 0, 5), window_start(-1, 0, 5), window_start(12, 3, 5)
    (10, -5, 8)
    """
    return clamp_ms(timestamp_ms - (timestamp_ms - offset_ms) % size_ms)


def window_bounds(timestamp_ms: int, offset_ms: int, size_ms: int, slide_ms: int) -> list[tuple[int, int]]:
    """Return start and end of every window of `size_ms` that contains `timestamp_ms`, the latest first.

    A window starts at `offset_ms` plus every multiple of `slide_ms`. Bounds saturate one by one, so that the windows of
    one timestamp differ from each other even at the ends of the range.

    >>> window_bounds(12, 0, 10, 5)
    [(10, 20), (5, 15)]
    >>> window_bounds(7, 0, 5, 10)
    []
    """
    last_start = timestamp_ms - (timestamp_ms - offset_ms) % slide_ms
    starts = range(last_start, timestamp_ms - size_ms, -slide_ms)
    if MIN_MS + size_ms <= last_start <= MAX_MS - size_ms:
        return [(start, start + size_ms) for start in starts]
    return [(clamp_ms(start), clamp_ms(start + size_ms)) for start in starts]


def to_ms(value: object, what: str, *, least: int = MIN_MS) -> int:
    """Convert a `Duration`, a `Time` or an integer of milliseconds to milliseconds.

    Args:
        value: The length of time that the user gave.
        what: The purpose of the value for the error, such as ``"window size"``.
        least: The smallest allowed value, in milliseconds.

    Raises:
        ProgramError: `value` is neither a length of time nor a whole number of milliseconds, is less than `least`, or
            does not fit into 64 bits.

    >>> to_ms(Duration.of_seconds(2), "gap"), to_ms(Time.minutes(1), "gap"), to_ms(5, "gap")
    (2000, 60000, 5)
    >>> to_ms("5 s", "gap")
    Traceback (most recent call last):
    eventide.errors.ProgramError: gap: expected a Duration, a Time or an int of milliseconds, got '5 s'
    """
    if isinstance(value, Duration):
        ms = value.to_millis()
    elif isinstance(value, Time):
        ms = value.to_milliseconds()
    elif isinstance(value, int) and not isinstance(value, bool):
        ms = value
    else:
        raise ProgramError(f"{what}: expected a Duration, a Time or an int of milliseconds, got {value!r}")
    if clamp_ms(ms) != ms:
        raise ProgramError(f"{what}: {value!r} does not fit into 64 bits of milliseconds")
    if ms != int(ms):
        raise ProgramError(f"{what}: {value!r} is not a whole number of milliseconds")
    if ms < least:
        raise ProgramError(f"{what}: expected at least {least} ms, got {value!r}")
    return int(ms)  # Time.seconds(0.5) holds a float


def to_positive_ms(value: object, what: str) -> int:
    """Convert as `to_ms` does, and refuse zero and less.

    Raises:
        ProgramError: `value` is not a length of time, or is not positive.

    >>> to_positive_ms(0, "window size")
    Traceback (most recent call last):
    eventide.errors.ProgramError: window size: expected more than 0 ms, got 0
    """
    ms = to_ms(value, what)
    if ms <= 0:
        raise ProgramError(f"{what}: expected more than 0 ms, got {value!r}")
    return ms
