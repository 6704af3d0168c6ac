"""Timers side by side, as they are stored: their keys, their times, and the order in which they were set."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS, MIN_MS

ByTime: TypeAlias = dict[int, dict[Any, int]]
"""Timers by time and key, or by time and pairs of key and namespace; the number says when each was set."""

TimerColumns: TypeAlias = tuple[bytes, bytes, bytes, list[Hashable] | None]
"""The places of the keys among those of a bucket, the times, the numbers, and the namespaces where there are any."""

PLACES, NUMBERS = np.dtype("<u4"), np.dtype("<i8")
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Rows: TypeAlias = tuple[Numbers, Numbers, Numbers]
"""The places of the keys among all keys, the times, and the numbers."""

NO_PLACE = -1
"""The place of a key that is left out."""


class TimersInOrder:
    """The timers of those keys that have a place, by place; those of a key in the order of time.

    One beyond the end of time, or before its beginning, is set for there.
    """

    def __init__(self, owners: Sequence[Any], rows: Sequence[Rows], *, has_namespaces: bool = False) -> None:
        found, times, numbers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        order = np.lexsort((numbers, times, found) if has_namespaces else (times, found))
        order = order[np.count_nonzero(found == NO_PLACE) :]
        if not has_namespaces and len(order):  # one that was set again is there twice: what was set first counts
            places, at = found[order], times[order]
            order = order[np.append(True, (places[1:] != places[:-1]) | (at[1:] != at[:-1]))]
        self.places = found[order]
        self._times = times[order]
        self._numbers = numbers[order]
        self._namespaces = [owners[i][1] for i in order.tolist()] if has_namespaces else None
        self._cuts: list[int] = []

    def keep(self, those: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Leave out some places, of which none has a timer."""
        self.places = (np.cumsum(those) - 1)[self.places]

    def cut(self, bounds: Numbers) -> None:
        """Cut it where a bucket ends."""
        self._cuts = np.searchsorted(self.places, bounds).tolist()

    def between(self, i: int, first_place: int) -> TimerColumns | None:
        """The columns of one bucket; None if it has no timers."""
        begin, end = self._cuts[i], self._cuts[i + 1]
        if begin == end:
            return None
        places = (self.places[begin:end] - first_place).astype(PLACES)
        namespaces = None if self._namespaces is None else self._namespaces[begin:end]
        return places.tobytes(), self._times[begin:end].tobytes(), self._numbers[begin:end].tobytes(), namespaces


def rows_of(by_time: ByTime, places: Numbers) -> Rows:
    """Timers that are at hand by time, given the places of their keys, one after the other."""
    parts = by_time.values()
    try:
        times = np.fromiter(by_time, NUMBERS, len(by_time))
    except OverflowError:
        times = np.fromiter((max(MIN_MS, min(MAX_MS, ms)) for ms in by_time), NUMBERS, len(by_time))
    numbers = np.fromiter(chain.from_iterable(map(dict.values, parts)), NUMBERS, len(places))
    return places, np.repeat(times, np.fromiter(map(len, parts), np.int64, len(parts))), numbers


def earliest_of(columns: Iterable[TimerColumns | None]) -> int | None:
    """The earliest time of some timers, in milliseconds; None if there are none."""
    times = (np.frombuffer(part[1], NUMBERS) for part in columns if part is not None)
    return min((int(part.min()) for part in times), default=None)


def count_of(columns: Iterable[TimerColumns | None]) -> int:
    """How many timers there are in some columns."""
    return sum(len(part[0]) // PLACES.itemsize for part in columns if part is not None)


def timers_of(keys: list[Any], columns: TimerColumns) -> Iterator[tuple[int, Any, int]]:
    """Time, owner and number of each timer of a bucket with some keys; the owner is a key, or one with a namespace."""
    places, times, numbers, namespaces = columns
    of_keys = map(keys.__getitem__, np.frombuffer(places, PLACES).tolist())
    owners = of_keys if namespaces is None else zip(of_keys, namespaces, strict=True)
    return zip(np.frombuffer(times, NUMBERS).tolist(), owners, np.frombuffer(numbers, NUMBERS).tolist(), strict=True)


def placed(columns: TimerColumns | None, places: Numbers) -> TimerColumns | None:
    """Return the timers with other places of their keys, each that of its number."""
    if columns is None:
        return None
    found, times, numbers, namespaces = columns
    return places[np.frombuffer(found, PLACES)].astype(PLACES).tobytes(), times, numbers, namespaces
