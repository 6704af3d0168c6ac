"""Notes on what is certainly odd about a stream, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from eventide.advisor.disorder import Disorder
from eventide.common.words import count, length

_HOUR = 3_600_000
_MINUTE = 60_000
_SHOWN = 3


def notes_on(found: Disorder, bound_ms: int, has_splits: bool) -> Iterator[str]:
    """Sentences, the one that matters most first."""
    yield from _leaps(found, bound_ms)
    if has_splits:
        yield from _zones(found)
    if found.future:
        yield (
            f"{count(found.future, 'element')} happened after they arrived, by up to {length(found.most_future_ms)}: "
            "look at the clock, or the time zone, of what makes them"
        )
    if found.nulls:
        yield (
            f"{count(found.nulls, 'element')} without a time: a job fails at the first of them, unless "
            "with_null_timestamps(NullTimestamps.DROP), or with an OutputTag, says what becomes of them"
        )
    if found.silent:
        names = ", ".join(found.silent[:_SHOWN]) + (", …" if len(found.silent) > _SHOWN else "")
        yield f"{names} had nothing to read: without idleness, a split that has never spoken holds all windows"


def _leaps(found: Disorder, bound_ms: int) -> Iterator[str]:
    """One element with a time far ahead makes all others late, and every bound too small or absurd."""
    name, split = max(found.splits.items(), key=lambda named: named[1].leap_ms)
    if split.leap_ms and bound_ms >= split.leap_ms / 2:
        yield (
            f"an element of the split {name} is {length(split.leap_ms)} ahead of all before it, and later elements "
            "are not: its time is most probably wrong. Leave such elements out, and measure again: this bound is theirs"
        )


def _zones(found: Disorder) -> Iterator[str]:
    """A split that lags by whole hours, and never by less, most probably writes another time zone."""
    for name, split in found.splits.items():
        hours = round(split.mean_apart_ms / _HOUR)
        off_ms = abs(split.mean_apart_ms - hours * _HOUR)
        if hours and off_ms <= _MINUTE and split.least_apart_ms >= hours * _HOUR - 10 * _MINUTE:
            yield (
                f"the split {name} is {hours} h behind the others, no more and no less: is that a time zone? If the "
                "elements do not arrive that late, their times are local, or name a wrong zone"
            )
            return
