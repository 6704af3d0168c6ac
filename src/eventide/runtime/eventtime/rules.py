"""The rules of time for windows: the only place where a window is compared with a watermark.

A watermark ``t`` promises that no element at or before ``t`` will follow. A window covers ``start <= time < end``;
its last millisecond is ``end - 1``, its ``max_timestamp``.

| question | answer |
|---|---|
| when does a window fire by itself? | when the watermark reaches its last millisecond |
| when is a window late, and its state dropped? | when last millisecond + allowed lateness <= watermark |
| when is the state of a window dropped that does not follow event time? | when last millisecond <= clock |
| when is an element without an open window late? | when timestamp + allowed lateness <= watermark |

All arguments are milliseconds since the epoch (UTC); sums saturate at the ends of the 64-bit range.
"""

from __future__ import annotations

from typing import Any

from eventide.common.ms import MAX_MS, add_ms


def cleanup_time(last_ms: int, lateness_ms: int) -> int | None:
    """The time at which a window's state is dropped; None if no time is that high (it is kept).

    It is the watermark's time for windows that follow event time, and the clock's, without lateness, for others.

    Flink: ``WindowOperator.cleanupTime``.

    >>> cleanup_time(last_ms=9, lateness_ms=5)
    14
    >>> cleanup_time(last_ms=MAX_MS, lateness_ms=0) is None
    True
    """
    time_ms = add_ms(last_ms, lateness_ms)
    return None if time_ms == MAX_MS else time_ms


def is_cleanup_time(time_ms: int, last_ms: int, lateness_ms: int) -> bool:
    """Say whether a timer's time is the one at which the state of a window is dropped, be it the highest time.

    Flink: ``WindowOperator.isCleanupTime``.

    >>> is_cleanup_time(14, last_ms=9, lateness_ms=5), is_cleanup_time(MAX_MS, last_ms=MAX_MS, lateness_ms=0)
    (True, True)
    """
    return time_ms == add_ms(last_ms, lateness_ms)


def is_window_late(last_ms: int, lateness_ms: int, watermark_ms: int) -> bool:
    """Say whether a window can no longer be updated.

    Equality is late, because a watermark t promises that nothing at or before t will follow.

    Flink: ``WindowOperator.isWindowLate``.

    >>> is_window_late(last_ms=999, lateness_ms=0, watermark_ms=998)
    False
    >>> is_window_late(last_ms=999, lateness_ms=0, watermark_ms=999)
    True
    """
    return add_ms(last_ms, lateness_ms) <= watermark_ms


def has_passed(last_ms: Any, watermark_ms: int) -> Any:
    """Say whether the watermark has reached a window's last millisecond, for one or a column of them: it has fired.

    >>> has_passed(last_ms=999, watermark_ms=998), has_passed(last_ms=999, watermark_ms=999)
    (False, True)
    """
    return last_ms <= watermark_ms


def passes(last_ms: Any, before_ms: int, watermark_ms: int) -> Any:
    """Say whether a watermark that goes up from ``before_ms`` reaches a last millisecond, or a column of them, now.

    >>> passes(last_ms=999, before_ms=998, watermark_ms=1_500), passes(last_ms=999, before_ms=999, watermark_ms=1_500)
    (True, False)
    """
    return (before_ms < last_ms) & (last_ms <= watermark_ms)


def reached(watermark_ms: int) -> int:
    """The last of all last milliseconds of windows that the watermark has reached: :func:`has_passed` solved for it.

    >>> reached(8), reached(MAX_MS) > MAX_MS
    (8, True)
    """
    return last_late(0, watermark_ms)


def last_late(lateness_ms: int, watermark_ms: int) -> int:
    """The last of all last milliseconds of windows that are late: :func:`is_window_late` solved for it.

    Where a last millisecond saturates it is ``MAX_MS - 1``, so a watermark there reaches those beyond as well.

    >>> last_late(5, 14)
    9
    """
    reaches_all = add_ms(MAX_MS - 1, lateness_ms) <= watermark_ms
    return 2 * MAX_MS if reaches_all else watermark_ms - lateness_ms


def last_cleaned_up(lateness_ms: int, watermark_ms: int) -> int:
    """The last of all last milliseconds of windows whose :func:`cleanup_time` has come.

    >>> last_cleaned_up(5, 14), last_cleaned_up(MAX_MS, MAX_MS) < 0
    (9, True)
    """
    return last_late(lateness_ms, min(watermark_ms, MAX_MS - 1))


def is_element_late(timestamp_ms: int, lateness_ms: int, watermark_ms: int) -> bool:
    """Say whether an element that found no open window came too late for one.

    Flink: ``WindowOperator.isElementLate``.

    >>> is_element_late(timestamp_ms=5, lateness_ms=2, watermark_ms=7)
    True
    """
    return add_ms(timestamp_ms, lateness_ms) <= watermark_ms


def latest_late_time(lateness_ms: int, watermark_ms: int) -> int:
    """The last timestamp that is late: :func:`is_element_late` solved for the timestamp, for whole columns of them.

    >>> latest_late_time(lateness_ms=2, watermark_ms=7)
    5
    """
    return MAX_MS if watermark_ms == MAX_MS else add_ms(watermark_ms, -lateness_ms)
