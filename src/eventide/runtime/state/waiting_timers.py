"""Timers of keys at hand that are not due yet: they stay the columns that they were stored in."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

import numpy as np

from eventide.runtime.state.timer_columns import NO_PLACE, NUMBERS, PLACES, Numbers, Rows, TimerColumns

Timer: TypeAlias = tuple[int, Any]
"""Time and key."""


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
        self._settle()
        while self._runs and self._runs[0][0] <= until_ms:
            _, _, run = heapq.heappop(self._runs)
            yield from run.due(until_ms)
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


class _Run:
    """The timers of the buckets that were read together, in the order of time."""

    def __init__(self, keys: list[Any], buckets: list[tuple[int, TimerColumns]]) -> None:
        self._keys = keys
        places = b"".join(columns[0] for _, columns in buckets)
        times = b"".join(columns[1] for _, columns in buckets)
        numbers = b"".join(columns[2] for _, columns in buckets)
        counts = [len(columns[0]) // PLACES.itemsize for _, columns in buckets]
        owners = np.frombuffer(places, PLACES) + np.repeat(np.array([first for first, _ in buckets]), counts)
        times_ms = np.frombuffer(times, NUMBERS)
        order = np.argsort(times_ms, kind="stable")
        self._owners: Numbers = owners[order]
        self._times: Numbers = times_ms[order]
        self._numbers: Numbers = np.frombuffer(numbers, NUMBERS)[order]
        self._at = 0

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, int]]:
        begin = self._at
        self._at = end = max(begin, int(np.searchsorted(self._times, until_ms, "right")))
        keys = map(self._keys.__getitem__, self._owners[begin:end].tolist())
        return zip(self._times[begin:end].tolist(), keys, self._numbers[begin:end].tolist(), strict=True)

    def next_ms(self, deleted: Collection[Timer]) -> int | None:
        while self._at < len(self._times):
            time_ms = int(self._times[self._at])
            if (time_ms, self._keys[self._owners[self._at]]) not in deleted:
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
