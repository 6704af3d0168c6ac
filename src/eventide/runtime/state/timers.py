"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first.

They are stored in columns of 64-bit numbers; a key is named there by its place in a bucket, or among the loaded keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS, clamp_ms
from eventide.runtime.elements.ordering import order_by

Timer: TypeAlias = tuple[int, Any]
"""Time and key."""

DeletedTimers: TypeAlias = Mapping[Timer, int]
"""Timers that were deleted, each with the number of the last one that had been set by then."""

TimersByTime: TypeAlias = dict[int, dict[tuple[Any, Hashable], int]]
"""Timers by time and pairs of key and namespace; the number says when each was set."""

TimerColumns: TypeAlias = tuple[bytes, bytes, bytes, list[Hashable] | None]
"""The places of the keys among those of a bucket, the times, the numbers, and the namespaces where there are any."""

PLACES, NUMBERS = np.dtype("<u4"), np.dtype("<i8")
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
TimerRows: TypeAlias = tuple[Numbers, Numbers, Numbers]
"""The places of the keys among the loaded ones, the times, and the numbers."""

NO_PLACE = -1
"""The place of a key that is left out."""

NO_NUMBER = -1
"""A number before those of all timers."""

_NONE: DeletedTimers = {}

_NO_ROWS: TimerRows = (np.zeros(0, np.int64),) * 3

_SetTimer: TypeAlias = tuple[int, Any, Hashable]
"""A timer that is set: time, key and namespace."""

_TimerEntry: TypeAlias = tuple[int, int, int, _SetTimer]
"""Time, key group, number, and the timer: numbers differ, so that keys and namespaces are never compared."""

_AFTER_ALL = MAX_MS + 1

PartsOfRows: TypeAlias = list[tuple[TimerRows, Sequence[Hashable] | None]]
"""Timers without a namespace; and those with one, and their namespaces."""


class LoadedKeys(Protocol):
    """The keys that have timers, by their places among the loaded ones."""

    is_quiesced: bool
    """Whether timers have begun to fire in batch execution: from then on, none is set."""

    def open_everything(self) -> None:
        """Load every key."""

    def open_due(self, kind: int, until_ms: int) -> None:
        """Load every key with a timer of a kind at or before a time, because these timers fire now."""

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not loaded, in milliseconds; None if there is none."""

    def groups(self, places: Numbers) -> Numbers:
        """The key groups of the keys at some places."""


class Keys(LoadedKeys, Protocol):
    """The keys that have timers; those that are touched have a place in an index."""

    keys: list[Any]
    """The loaded keys, by their places."""

    index: dict[Any, int]
    """The place of each of them that was touched."""

    def open(self, key: object) -> None:
        """Touch a key that was not touched yet."""

    def bring_up(self, places: Numbers, *, has_changed: bool = False) -> None:
        """Touch the keys at some places, and take note that their timers have changed, if they have."""


class Timers:
    """The timers of one kind, which event time or processing time fires.

    Timers of one time fire in the order of the key groups of their keys, and those of one group as they were set:
    ``number`` is that of the last one that was set, and goes on over micro-batches.

    Timers without a namespace that are new lie side by side until one of them may be due: then they become columns,
    as those that were stored are. Timers with a namespace lie together by their time, since many elements set the same
    one. All that are due are taken out, and fire in their order; those that are set meanwhile, and are to fire with
    them, have a heap of their own.

    Flink: one of the two queues of ``InternalTimerService``.

    Attributes:
        number: that of the last timer that was set.
        changed: the keys whose timers have changed, if that was not noted as timers became columns, or were taken out
            of them; a key may be there several times.
    """

    def __init__(self, keys: Keys, kind: int, number: int) -> None:
        self._keys = keys
        self._index = keys.index
        self._kind = kind
        self._new: dict[Timer, int] = {}
        """The timers without a namespace that are not in columns yet, and the number of each."""
        self._earliest_new = MAX_MS
        self._waiting = WaitingTimers(keys.keys)
        self._deleted: dict[Timer, int] = {}
        self._by_time: TimersByTime = {}
        self._heap: list[int] = []
        self._firing_until: int | None = None
        self._firing: dict[_SetTimer, int] = {}
        """The timers that are still to fire in this advance, and the number of each."""
        self._meanwhile: list[_TimerEntry] = []
        self.number = number
        self.changed: list[Any] = []

    def register(self, time_ms: int, key: object, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        if key not in self._index:
            self._keys.open(key)
        if self._firing_until is not None and time_ms <= self._firing_until:
            self._register_meanwhile((time_ms, key, namespace))
        elif namespace is not None:
            self._register_spaced(time_ms, key, namespace)
        elif (timer := (time_ms, key)) not in self._new:
            self.number = self._new[timer] = self.number + 1
            if time_ms < self._earliest_new:  # noqa: PLR1730 - without a call, for each timer
                self._earliest_new = time_ms

    def delete(self, time_ms: int, key: object, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        if key not in self._index:
            self._keys.open(key)
        if namespace is None:
            self._new.pop((time_ms, key), None)
            if self._waiting:
                self._deleted[time_ms, key] = self.number
        elif time_ms in self._by_time:
            self._by_time[time_ms].pop((key, namespace), None)
        self._firing.pop((time_ms, key, namespace), None)
        self.changed.append(key)

    def due(self, until_ms: int) -> Iterator[_SetTimer]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._keys.open_due(self._kind, until_ms)
        timers, groups, numbers = self._in_order(self._take(until_ms))
        meanwhile, firing = self._meanwhile, self._firing
        firing.update(zip(reversed(timers), reversed(numbers), strict=True))  # of one set again, the first counts
        self._firing_until = until_ms
        try:
            for timer, group, number in zip(timers, groups, numbers, strict=True):
                if meanwhile:
                    yield from self._due_meanwhile((timer[0], group, number))
                if firing.get(timer) == number:
                    del firing[timer]
                    yield timer
            yield from self._due_meanwhile((_AFTER_ALL,))
        finally:
            self._firing_until = None
            firing.clear()
            meanwhile.clear()

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        self.settle()
        heap = self._heap
        while heap and not self._by_time[heap[0]]:
            del self._by_time[heapq.heappop(heap)]
        waiting, other = self._waiting.next_ms(self._deleted), self._keys.next_of_others(self._kind)
        return min((ms for ms in (heap[0] if heap else None, waiting, other) if ms is not None), default=None)

    def all(self) -> list[_SetTimer]:
        """Every timer that is set, in order of time: for harnesses."""
        self._keys.open_everything()
        return [*dict.fromkeys(self._in_order(self.rows())[0])]

    def take_in(self, *columns: TimerColumns | None) -> None:
        """Take note of timers without a namespace, and with one, whose keys have places among the loaded ones."""
        plain, spaced = columns
        if plain is not None:
            self._waiting.add(rows_of_columns(plain))
        if spaced is not None:
            self._keys.bring_up(np.frombuffer(spaced[0], PLACES))
            for time_ms, owner, number in timers_of(self._keys.keys, spaced):
                self._of_time(time_ms)[owner] = number

    def settle(self) -> None:
        """Put the new timers without a namespace into columns, and take note that those of their keys have changed."""
        new = self._new
        if new:
            times = _times([*map(itemgetter(0), new)])
            places = self._places_of(map(itemgetter(1), new), len(new))
            self._keys.bring_up(places, has_changed=True)
            self._waiting.add((places, times, np.fromiter(new.values(), NUMBERS, len(new))))
            new.clear()
            self._earliest_new = MAX_MS

    def rows(self) -> PartsOfRows:
        """The timers of the loaded keys; one that was set again is there twice."""
        self.settle()
        return self._parts(self._waiting.rows(self._deleted), self._by_time)

    def clear(self) -> None:
        """Forget what is loaded."""
        for of_timers in (self.changed, self._new, self._waiting, self._deleted, self._by_time, self._heap):
            of_timers.clear()
        self._earliest_new = MAX_MS

    def _register_spaced(self, time_ms: int, key: object, namespace: Hashable) -> None:
        """Set a timer with a namespace."""
        timers = self._of_time(time_ms)
        if (key, namespace) not in timers:
            self.number = timers[key, namespace] = self.number + 1
            self.changed.append(key)

    def _of_time(self, time_ms: int) -> dict[tuple[Any, Hashable], int]:
        """The timers with a namespace of a time."""
        timers = self._by_time.get(time_ms)
        if timers is None:
            timers = self._by_time[time_ms] = {}
            heapq.heappush(self._heap, time_ms)
        return timers

    def _register_meanwhile(self, timer: _SetTimer) -> None:
        """Set a timer that is to fire in this advance."""
        if timer in self._firing:
            return
        time_ms, key, _ = timer
        self.number = self._firing[timer] = self.number + 1
        [group] = self._keys.groups(np.array([self._index[key]])).tolist()
        heapq.heappush(self._meanwhile, (time_ms, group, self.number, timer))
        self.changed.append(key)

    def _due_meanwhile(self, before: tuple[int, ...]) -> Iterator[_SetTimer]:
        """Fire those that were set in this advance and come before a time, or a time, a key group and a number."""
        meanwhile, firing = self._meanwhile, self._firing
        while meanwhile and meanwhile[0][:3] < before:
            _, _, number, timer = heapq.heappop(meanwhile)
            if firing.get(timer) == number:
                del firing[timer]
                yield timer

    def _take(self, until_ms: int) -> PartsOfRows:
        """Take out the timers at or before a time."""
        if self._earliest_new <= until_ms:
            self.settle()
        waiting = self._waiting.take(until_ms, self._deleted)
        if len(waiting[0]):
            self._keys.bring_up(waiting[0], has_changed=True)
        spaced: TimersByTime = {}
        while self._heap and self._heap[0] <= until_ms:
            time_ms = heapq.heappop(self._heap)
            spaced[time_ms] = self._by_time.pop(time_ms)
        self.changed += [key for of_time in spaced.values() for key, _ in of_time]
        return self._parts([waiting], spaced)

    def _parts(self, waiting: Sequence[TimerRows], by_time: TimersByTime) -> PartsOfRows:
        """Some timers that wait, and some with a namespace."""
        owners = list(chain.from_iterable(by_time.values()))
        places = self._places_of((key for key, _ in owners), len(owners))
        return [(together(waiting), None), (rows_of(by_time, places), [namespace for _, namespace in owners])]

    def _places_of(self, keys: Iterable[Any], count: int) -> Numbers:
        return np.fromiter(map(self._index.__getitem__, keys), np.int64, count)

    def _in_order(self, parts: PartsOfRows) -> tuple[list[_SetTimer], list[int], list[int]]:
        """Timers in the order in which they fire, the key group of each, and its number."""
        places, times, numbers = together([rows for rows, _ in parts])
        if not len(places):
            return [], [], []
        of_keys = self._keys.groups(places)
        order = order_by(times, of_keys, numbers)
        keys = map(self._keys.keys.__getitem__, places[order].tolist())
        [(plain, _), (_, namespaces)] = parts
        of_timers: Iterable[Hashable] = repeat(None)
        if namespaces:
            of_all = [*repeat(None, len(plain[0])), *namespaces]
            of_timers = map(of_all.__getitem__, order.tolist())
        timers = list(zip(times[order].tolist(), keys, of_timers, strict=False))
        return timers, of_keys[order].tolist(), numbers[order].tolist()


class BatchTimers(Timers):
    """The timers of one kind in batch execution: from when the first of any kind fires on, none is set.

    They fire when all elements are through, so that a chain of timers ends with its first one.
    Flink: ``BatchExecutionInternalTimeService``.
    """

    def register(self, time_ms: int, key: object, namespace: Hashable) -> None:
        """Set a timer, unless timers fire."""
        if not self._keys.is_quiesced:
            super().register(time_ms, key, namespace)


class WaitingTimers:
    """Timers without a namespace of the loaded keys, each taken out once, when it is due.

    Most timers of a key that is touched are set for later. Loading each of them as an object, and storing it again,
    would cost as much as firing it.
    """

    def __init__(self, keys: list[Any]) -> None:
        self._keys = keys
        self._new: list[TimerRows] = []
        self._runs: list[tuple[int, int, _TimerRun]] = []
        """A heap: the earliest time of each run, a number, so that runs are not compared, and the run."""
        self._count = 0

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._new or self._runs)

    def add(self, rows: TimerRows) -> None:
        """Add timers."""
        self._new.append(rows)

    def take(self, until_ms: int, deleted: DeletedTimers = _NONE) -> TimerRows:
        """Take out those at or before a time, in no order; those that were deleted are gone."""
        self._settle()
        rows = []
        while self._runs and self._runs[0][0] <= until_ms:
            _, _, run = heapq.heappop(self._runs)
            rows.append(run.take(until_ms))
            self._push(run, run.next_ms(_NONE))
        return _without(deleted, together(rows), self._keys)

    def delete(self, places: Numbers, times: Numbers) -> None:
        """Take timers out, given the places of their keys and their times."""
        self._settle()
        runs = [run for _, _, run in self._runs]
        self._runs.clear()
        for run in runs:
            run.delete(places, times)
            self._push(run, run.next_ms(_NONE))

    def next_ms(self, deleted: DeletedTimers) -> int | None:
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

    def rows(self, deleted: DeletedTimers) -> list[TimerRows]:
        """The timers that still wait, but for those that were deleted."""
        self._settle()
        return [_without(deleted, run.rows(), self._keys) for _, _, run in self._runs]

    def clear(self) -> None:
        """Forget all waiting timers."""
        self._new.clear()
        self._runs.clear()

    def _settle(self) -> None:
        if self._new:
            run = _TimerRun(self._keys, self._new)
            self._push(run, run.next_ms(_NONE))
            self._new = []

    def _push(self, run: _TimerRun, next_ms: int | None) -> None:
        if next_ms is not None:
            self._count += 1
            heapq.heappush(self._runs, (next_ms, self._count, run))


def together(rows: Sequence[TimerRows]) -> TimerRows:
    """Several timers in one."""
    if len(rows) < 2:
        return rows[0] if rows else _NO_ROWS
    places, times, numbers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
    return places, times, numbers


def rows_of(by_time: TimersByTime, places: Numbers) -> TimerRows:
    """Timers by time, given the places of their keys, one after the other."""
    if not by_time:
        return _NO_ROWS
    parts, times = by_time.values(), _times(by_time)
    numbers = np.fromiter(chain.from_iterable(map(dict.values, parts)), NUMBERS, len(places))
    return places, np.repeat(times, np.fromiter(map(len, parts), np.int64, len(parts))), numbers


def _times(of_timers: Collection[int]) -> Numbers:
    """The times of some timers: one beyond the end of time, or before its beginning, is set for there."""
    try:
        return np.fromiter(of_timers, NUMBERS, len(of_timers))
    except OverflowError:
        return np.fromiter(map(clamp_ms, of_timers), NUMBERS, len(of_timers))


def rows_of_columns(columns: TimerColumns) -> TimerRows:
    """Timers whose keys have places among the loaded ones."""
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


def are_among(places: Numbers, times: Numbers, of_places: Numbers, of_times: Numbers) -> np.ndarray[Any, Any]:
    """For each timer, by the place of its key and its time, whether it is among others.

    >>> are_among(np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([1, 0]), np.array([5, 6])).tolist()
    [False, True, True]
    """
    _, moments = np.unique(np.concatenate([times, of_times]), return_inverse=True)
    timers = (moments << 32) | np.concatenate([places, of_places])
    return np.isin(timers[: len(times)], timers[len(times) :])


class _TimerRun:
    """Timers that came to wait together."""

    def __init__(self, keys: list[Any], rows: Sequence[TimerRows]) -> None:
        self._keys = keys
        self._owners, self._times, self._numbers = together(rows)
        self._takes = 0
        self._is_sorted = False
        self._at = 0

    def take(self, until_ms: int) -> TimerRows:
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
        if is_due.all():
            rows = self.rows()
            self._keep(slice(0))
            return rows
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

    def next_ms(self, deleted: DeletedTimers) -> int | None:
        if not deleted and not self._is_sorted:
            return int(self._times.min()) if len(self._times) else None
        self._sort()
        while self._at < len(self._times):
            time_ms = int(self._times[self._at])
            if not deleted or self._number_deleted(deleted, time_ms) < self._numbers[self._at]:
                return time_ms
            self._at += 1
        return None

    def _number_deleted(self, deleted: DeletedTimers, time_ms: int) -> int:
        """The number up to which the first timer, which is of some time, was deleted."""
        return deleted.get((time_ms, self._keys[self._owners[self._at]]), NO_NUMBER)

    def rows(self) -> TimerRows:
        return self._owners[self._at :], self._times[self._at :], self._numbers[self._at :]

    def _sort(self) -> None:
        if not self._is_sorted:
            self._keep(np.argsort(self._times, kind="stable"))
            self._is_sorted = True

    def _keep(self, those: Any) -> None:
        self._owners, self._times, self._numbers = self._owners[those], self._times[those], self._numbers[those]
        self._at = 0


def _without(deleted: DeletedTimers, rows: TimerRows, keys: list[Any]) -> TimerRows:
    """The timers that were not deleted."""
    owners, times, numbers = rows
    if not deleted or not len(owners):
        return rows
    timers = zip(times.tolist(), map(keys.__getitem__, owners.tolist()), strict=True)
    stays = np.fromiter((deleted.get(timer, NO_NUMBER) for timer in timers), NUMBERS, len(owners)) < numbers
    return owners[stays], times[stays], numbers[stays]
