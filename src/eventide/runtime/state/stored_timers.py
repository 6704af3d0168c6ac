"""Timers as they are stored, in columns: those of the buckets that were read wait until they are due.

A column has 64-bit numbers, or what names the key: its place in a bucket, or among the keys at hand.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import Any, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.elements.ordering import order_by

Timer: TypeAlias = tuple[int, Any]
"""Time and key."""

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


class WaitingTimers:
    """Timers without a namespace of the buckets that were read, each taken out once, when it is due.

    Most timers of a key that is touched are set for later. To bring up each of them as an object, and to put it away
    again, would cost as much as to fire it.
    """

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys
        self._new: list[tuple[int, TimerColumns]] = []
        self._runs: list[tuple[int, int, _Run]] = []
        """A heap: the earliest time of each run, a number, so that runs are not compared, and the run."""
        self._count = 0

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._new or self._runs)

    def add(self, first: int, columns: TimerColumns) -> None:
        """Have the timers of one more bucket wait; ``first`` is the place of its first key among all keys."""
        self._new.append((first, columns))

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, int]]:
        """Take out those at or before a time, with their numbers."""
        for places, times, numbers in self.take(until_ms):
            keys = map(self._keys.__getitem__, places.tolist())
            yield from zip(times.tolist(), keys, numbers.tolist(), strict=True)

    def take(self, until_ms: int) -> Iterator[Rows]:
        """Take out those at or before a time, as columns, in no order."""
        self._settle()
        while self._runs and self._runs[0][0] <= until_ms:
            _, _, run = heapq.heappop(self._runs)
            yield run.take(until_ms)
            self._push(run, run.next_ms(()))

    def delete(self, places: Numbers, times: Numbers) -> None:
        """Take timers out, given the places of their keys and their times."""
        self._settle()
        runs = [run for _, _, run in self._runs]
        self._runs.clear()
        for run in runs:
            run.delete(places, times)
            self._push(run, run.next_ms(()))

    def next_ms(self, deleted: Collection[Timer]) -> int | None:
        """The earliest time, in milliseconds, but for those that were deleted; None if there is none."""
        self._settle()
        while self._runs:
            known_ms, _, run = self._runs[0]
            next_ms = run.next_ms(deleted)
            if next_ms == known_ms:
                return known_ms
            heapq.heappop(self._runs)
            self._push(run, next_ms)
        return None

    def rows(self, places: Numbers, deleted: Collection[Timer]) -> list[Rows]:
        """Return the timers that still wait, given the places of all keys."""
        self._settle()
        return [run.rows(places, deleted) for _, _, run in self._runs]

    def clear(self) -> None:
        """Forget them."""
        self._new.clear()
        self._runs.clear()

    def _settle(self) -> None:
        if self._new:
            run = _Run(self._keys, self._new)
            self._push(run, run.next_ms(()))
            self._new = []

    def _push(self, run: _Run, next_ms: int | None) -> None:
        if next_ms is not None:
            self._count += 1
            heapq.heappush(self._runs, (next_ms, self._count, run))


class TimersInOrder:
    """The timers of those keys that have a place, by place; those of a key in the order of time.

    One beyond the end of time, or before its beginning, is set for there.
    """

    def __init__(self, owners: Sequence[Any], rows: Sequence[Rows], *, has_namespaces: bool = False) -> None:
        found, times, numbers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        order = order_by(found, times, numbers) if has_namespaces else order_by(found, times)
        order = order[np.count_nonzero(found == NO_PLACE) :]
        self.places, self._times, self._numbers = found[order], times[order], numbers[order]
        if not has_namespaces and len(order):  # one that was set again is there twice: what was set first counts
            places, at = self.places, self._times
            first = np.flatnonzero(np.append(True, (places[1:] != places[:-1]) | (at[1:] != at[:-1])))
            self.places, self._times = places[first], at[first]
            self._numbers = np.minimum.reduceat(self._numbers, first)
        self._namespaces = [owners[i][1] for i in order.tolist()] if has_namespaces else None
        self._cuts: list[int] = []
        self._columns = (b"", b"", b"")

    def keep(self, those: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Leave out some places, of which none has a timer."""
        self.places = (np.cumsum(those) - 1)[self.places]

    def cut(self, bounds: Numbers) -> None:
        """Cut it where a bucket ends."""
        cuts = np.searchsorted(self.places, bounds)
        counts = np.diff(cuts)
        places = (self.places - np.repeat(bounds[:-1], counts)).astype(PLACES)
        self._cuts = cuts.tolist()
        self._columns = places.tobytes(), self._times.tobytes(), self._numbers.tobytes()

    def between(self, i: int) -> TimerColumns | None:
        """The columns of one bucket; None if it has no timers."""
        begin, end = self._cuts[i], self._cuts[i + 1]
        if begin == end:
            return None
        places, times, numbers = self._columns
        namespaces = None if self._namespaces is None else self._namespaces[begin:end]
        of_places, of_times = (slice(begin * size, end * size) for size in (PLACES.itemsize, NUMBERS.itemsize))
        return places[of_places], times[of_times], numbers[of_times], namespaces


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


def joined(parts: Sequence[TimerColumns | None], places: Sequence[Numbers]) -> TimerColumns | None:
    """The timers of several buckets in one, given the places that the keys of each get there; None if there are none.

    Those of keys whose place is `NO_PLACE` are left out.
    """
    if parts.count(None) == len(parts):
        return None
    found = [
        (part, of_keys[np.frombuffer(part[0], PLACES)])
        for part, of_keys in zip(parts, places, strict=True)
        if part is not None
    ]
    owners = np.concatenate([of_part for _, of_part in found])
    times, numbers = b"".join(part[1] for part, _ in found), b"".join(part[2] for part, _ in found)
    spaces = None if found[0][0][3] is None else [space for part, _ in found for space in part[3] or ()]
    stays = owners != NO_PLACE
    if not stays.all():
        owners = owners[stays]
        times, numbers = (np.frombuffer(column, NUMBERS)[stays].tobytes() for column in (times, numbers))
        spaces = None if spaces is None else list(compress(spaces, stays.tolist()))
    return (owners.astype(PLACES).tobytes(), times, numbers, spaces) if len(owners) else None


def are_among(places: Numbers, times: Numbers, of_places: Numbers, of_times: Numbers) -> np.ndarray[Any, Any]:
    """For each timer, by the place of its key and its time, whether it is among others.

    >>> are_among(np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([1, 0]), np.array([5, 6])).tolist()
    [False, True, True]
    """
    _, moments = np.unique(np.concatenate([times, of_times]), return_inverse=True)
    timers = (moments << 32) | np.concatenate([places, of_places])
    return np.isin(timers[: len(times)], timers[len(times) :])


class _Run:
    """The timers of the buckets that were read together."""

    def __init__(self, keys: list[Any], buckets: list[tuple[int, TimerColumns]]) -> None:
        self._keys = keys
        places = b"".join(columns[0] for _, columns in buckets)
        times = b"".join(columns[1] for _, columns in buckets)
        numbers = b"".join(columns[2] for _, columns in buckets)
        counts = [len(columns[0]) // PLACES.itemsize for _, columns in buckets]
        self._owners: Numbers = np.frombuffer(places, PLACES) + np.repeat(
            np.array([first for first, _ in buckets]), counts
        )
        self._times: Numbers = np.frombuffer(times, NUMBERS)
        self._numbers: Numbers = np.frombuffer(numbers, NUMBERS)
        self._takes = 0
        self._is_sorted = False
        self._at = 0

    def take(self, until_ms: int) -> Rows:
        """Take out those at or before a time.

        All are sorted when some are taken for the second time; before that it is cheaper to look at each.
        """
        self._takes += 1
        if self._takes > 1:
            self._sort()
        begin = self._at
        if self._is_sorted:
            self._at = end = max(begin, int(np.searchsorted(self._times, until_ms, "right")))
            return self._owners[begin:end], self._times[begin:end], self._numbers[begin:end]
        is_due = self._times <= until_ms
        due = self._owners[is_due], self._times[is_due], self._numbers[is_due]
        self._keep(~is_due)
        return due

    def delete(self, places: Numbers, times: Numbers) -> None:
        """Take timers out, given the places of their keys and their times."""
        stays = (self._times < times.min()) | (self._times > times.max())
        found = np.flatnonzero(~stays)
        stays[found] = ~are_among(self._owners[found], self._times[found], places, times)
        stays[: self._at] = False
        self._keep(stays)

    def next_ms(self, deleted: Collection[Timer]) -> int | None:
        if not deleted and not self._is_sorted:
            return int(self._times.min()) if len(self._times) else None
        self._sort()
        while self._at < len(self._times):
            time_ms = int(self._times[self._at])
            if not deleted or (time_ms, self._keys[self._owners[self._at]]) not in deleted:
                return time_ms
            self._at += 1
        return None

    def rows(self, places: Numbers, deleted: Collection[Timer]) -> Rows:
        owners, times, numbers = (part[self._at :] for part in (self._owners, self._times, self._numbers))
        found = places[owners]
        if deleted:
            timers = zip(times.tolist(), map(self._keys.__getitem__, owners.tolist()), strict=True)
            found[np.fromiter((timer in deleted for timer in timers), bool, len(found))] = NO_PLACE
        return found, times, numbers

    def _sort(self) -> None:
        if not self._is_sorted:
            self._keep(np.argsort(self._times, kind="stable"))
            self._is_sorted = True

    def _keep(self, those: Any) -> None:
        self._owners, self._times, self._numbers = self._owners[those], self._times[those], self._numbers[those]
        self._at = 0
