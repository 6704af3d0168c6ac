"""Timers as they are stored, in columns: those of the buckets that were read wait until they are due.

A column has 64-bit numbers, or what names the key: its place in a bucket, or among the keys at hand.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain, compress, pairwise
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
"""The places of the keys among those at hand, the times, and the numbers."""

NO_PLACE = -1
"""The place of a key that is left out."""

_NO_ROWS: Rows = (np.zeros(0, np.int64),) * 3


class WaitingTimers:
    """Timers without a namespace of the keys at hand, each taken out once, when it is due.

    Most timers of a key that is touched are set for later. To bring up each of them as an object, and to put it away
    again, would cost as much as to fire it.
    """

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys
        self._new: list[TimerColumns] = []
        self._runs: list[tuple[int, int, _Run]] = []
        """A heap: the earliest time of each run, a number, so that runs are not compared, and the run."""
        self._count = 0

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._new or self._runs)

    def add(self, columns: TimerColumns) -> None:
        """Have some more timers wait, whose keys have places among those at hand."""
        self._new.append(columns)

    def take(self, until_ms: int, deleted: Collection[Timer] = ()) -> Rows:
        """Take out those at or before a time, in no order; those that were deleted are gone."""
        self._settle()
        rows = []
        while self._runs and self._runs[0][0] <= until_ms:
            _, _, run = heapq.heappop(self._runs)
            rows.append(run.take(until_ms))
            self._push(run, run.next_ms(()))
        return _without(deleted, together(rows), self._keys)

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

    def rows(self, deleted: Collection[Timer]) -> list[Rows]:
        """The timers that still wait, but for those that were deleted."""
        self._settle()
        return [_without(deleted, run.rows(), self._keys) for _, _, run in self._runs]

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


def by_bucket(
    rows: Rows, namespaces: Sequence[Hashable] | None, places: Numbers, bounds: Numbers
) -> tuple[list[TimerColumns | None], Numbers]:
    """The timers of each bucket by the places of their keys, those of a key in the order of time; and how many they are.

    Args:
        rows: the timers of the keys at hand. One that was set again is there twice: what was set first counts.
        namespaces: those of the timers, if they have any, each of which is there once.
        places: the place of each key at hand; `NO_PLACE` for one that is left out.
        bounds: between which places each bucket lies.
    """
    owners, times, numbers = rows
    if not len(owners):
        return [None] * (len(bounds) - 1), np.zeros(len(bounds) - 1, np.int64)
    at = places[owners]
    order = order_by(at, times, numbers) if namespaces is not None else order_by(at, times)
    order = order[np.count_nonzero(at == NO_PLACE) :]
    at, times, numbers = at[order], times[order], numbers[order]
    if namespaces is None and len(order):
        first = np.flatnonzero(np.append(True, (at[1:] != at[:-1]) | (times[1:] != times[:-1])))
        at, times, numbers = at[first], times[first], np.minimum.reduceat(numbers, first)
    cuts = np.searchsorted(at, bounds)
    counts = np.diff(cuts)
    at = (at - np.repeat(bounds[:-1], counts)).astype(PLACES)
    found: list[TimerColumns | None] = []
    for begin, end in pairwise(cuts.tolist()):
        spaces = None if namespaces is None else [namespaces[i] for i in order[begin:end].tolist()]
        own, of_times, of_numbers = (column[begin:end].tobytes() for column in (at, times, numbers))
        found.append((own, of_times, of_numbers, spaces) if begin < end else None)
    return found, counts


def together(rows: Sequence[Rows]) -> Rows:
    """Several timers in one."""
    if len(rows) < 2:
        return rows[0] if rows else _NO_ROWS
    places, times, numbers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
    return places, times, numbers


def rows_of(by_time: ByTime, places: Numbers) -> Rows:
    """Timers that are at hand by time, given the places of their keys, one after the other.

    One beyond the end of time, or before its beginning, is set for there.
    """
    if not by_time:
        return _NO_ROWS
    parts = by_time.values()
    try:
        times = np.fromiter(by_time, NUMBERS, len(by_time))
    except OverflowError:
        times = np.fromiter((max(MIN_MS, min(MAX_MS, ms)) for ms in by_time), NUMBERS, len(by_time))
    numbers = np.fromiter(chain.from_iterable(map(dict.values, parts)), NUMBERS, len(places))
    return places, np.repeat(times, np.fromiter(map(len, parts), np.int64, len(parts))), numbers


def rows_of_columns(columns: TimerColumns) -> Rows:
    """Timers whose keys have places among those at hand."""
    places, times, numbers, _ = columns
    return (
        np.frombuffer(places, PLACES).astype(np.int64),
        np.frombuffer(times, NUMBERS),
        np.frombuffer(numbers, NUMBERS),
    )


def timers_of(keys: Sequence[Any], columns: TimerColumns) -> Iterator[tuple[int, Any, int]]:
    """Time, owner and number of each timer of a bucket with some keys; the owner is a key, or one with a namespace."""
    places, times, numbers, namespaces = columns
    of_keys = map(keys.__getitem__, np.frombuffer(places, PLACES).tolist())
    owners = of_keys if namespaces is None else zip(of_keys, namespaces, strict=True)
    return zip(np.frombuffer(times, NUMBERS).tolist(), owners, np.frombuffer(numbers, NUMBERS).tolist(), strict=True)


def joined(parts: Sequence[TimerColumns | None], firsts: Numbers, places: Numbers) -> TimerColumns | None:
    """The timers of several buckets in one; None if there are none.

    Args:
        parts: those of each bucket.
        firsts: where in `places` the keys of each bucket begin.
        places: the place that each key gets; the timers of a key that gets `NO_PLACE` are left out.
    """
    found = [part for part in parts if part is not None]
    if not found:
        return None
    counts = [0 if part is None else len(part[0]) // PLACES.itemsize for part in parts]
    at = np.frombuffer(b"".join(part[0] for part in found), PLACES) + np.repeat(firsts, counts)
    owners, times, numbers = places[at], b"".join(part[1] for part in found), b"".join(part[2] for part in found)
    spaces = None if found[0][3] is None else [space for part in found for space in part[3] or ()]
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
    """Timers that came to wait together."""

    def __init__(self, keys: list[Any], columns: Sequence[TimerColumns]) -> None:
        self._keys = keys
        self._owners, self._times, self._numbers = together(list(map(rows_of_columns, columns)))
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

    def rows(self) -> Rows:
        return self._owners[self._at :], self._times[self._at :], self._numbers[self._at :]

    def _sort(self) -> None:
        if not self._is_sorted:
            self._keep(np.argsort(self._times, kind="stable"))
            self._is_sorted = True

    def _keep(self, those: Any) -> None:
        self._owners, self._times, self._numbers = self._owners[those], self._times[those], self._numbers[those]
        self._at = 0


def _without(deleted: Collection[Timer], rows: Rows, keys: list[Any]) -> Rows:
    """Those timers that were not deleted."""
    owners, times, numbers = rows
    if not deleted or not len(owners):
        return rows
    timers = zip(times.tolist(), map(keys.__getitem__, owners.tolist()), strict=True)
    stays = np.fromiter((timer not in deleted for timer in timers), bool, len(owners))
    return owners[stays], times[stays], numbers[stays]
