"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Protocol, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.elements.ordering import order_by

_Entry: TypeAlias = tuple[int, int, Any, Hashable]
"""Key group, number, key and namespace: numbers differ, so that keys and namespaces are never compared."""

_FEW = 8
"""New times are few if the heap has this many times as many."""
_MANY = 32
"""So many are taken from a sorted list at once, which moves all that stay."""

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


class Keys(Protocol):
    """The keys that have timers."""

    keys: list[Any]
    """The keys at hand, in the order in which they came."""

    index: dict[Any, int]
    """Where each of them stands there."""

    def open(self, key: Any) -> None:
        """Have a key at hand that is not yet."""

    def open_everything(self) -> None:
        """Have every key at hand."""

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time."""

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not at hand."""

    def groups_of(self, keys: Iterable[Any]) -> list[int]:
        """The key group of each of some keys at hand."""


class StoredTimers(Protocol):
    """The timers of one kind, as they are read and stored; ``number`` is that of the last one that was set."""

    number: int

    def take_in(self, keys: list[Any], first: int, columns: tuple[TimerColumns | None, TimerColumns | None]) -> None:
        """Take note of the timers of a bucket that was read: those without namespaces, and those with.

        ``first`` is where the first of its keys stands among those at hand.
        """

    def in_order(self, places: Numbers) -> tuple[TimersInOrder, TimersInOrder]:
        """The timers without namespaces, and those with, given the places of all keys at hand."""

    def clear(self) -> None:
        """Forget what is at hand."""


class Timers(StoredTimers):
    """The timers of one kind, which event time or processing time fires.

    Timers of one time fire in the order of the key groups of their keys, and those of one group as they were set:
    ``number`` is that of the last one that was set, and goes on over micro-batches.

    Timers lie together by their time. Times that are new wait unsorted until one of them may be due; then they join a
    heap. Where most are new, all are sorted instead, which is cheaper, and a sorted list is a heap; from one that is
    sorted, many are taken at once. Timers that are set while others fire, and are to fire with them, have a heap of
    their own.

    Flink: one of the two queues of ``InternalTimerService``.
    """

    def __init__(self, keys: Keys, kind: int, number: int) -> None:
        self._keys = keys
        self._index = keys.index
        self._kind = kind
        self._at: ByTime = {}
        self._spaced_at: ByTime = {}
        self._waiting = WaitingTimers(keys.keys)
        self._deleted: set[tuple[int, Any]] = set()
        self._heap: list[int] = []
        self._is_sorted = True
        self._new: list[int] = []
        self._earliest_new = MAX_MS
        self._looked_at = 0
        self._firing_until: int | None = None
        self._meanwhile: list[tuple[int, _Entry]] = []
        self.number = number

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        if key not in self._index:
            self._keys.open(key)
        by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
        timers = by_time.get(time_ms)
        if timers is None:
            timers = by_time[time_ms] = {}
            self._new.append(time_ms)
        elif owner in timers:
            return
        self.number = timers[owner] = number = self.number + 1
        if self._firing_until is not None and time_ms <= self._firing_until:
            [group] = self._keys.groups_of([key])
            heapq.heappush(self._meanwhile, (time_ms, (group, number, key, namespace)))

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        if key not in self._index:
            self._keys.open(key)
        by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
        timers = by_time.get(time_ms)
        if timers is not None:
            timers.pop(owner, None)
        if namespace is None and self._waiting:
            self._deleted.add((time_ms, key))

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._keys.open_due(self._kind, until_ms)
        self._bring_up_waiting(until_ms)
        meanwhile = self._meanwhile
        times = self._taken(until_ms)
        self._firing_until = until_ms
        try:
            for time_ms in times:
                for timer in self._in_order(time_ms):
                    while meanwhile and meanwhile[0] < (time_ms, timer):
                        yield from self._fired(*heapq.heappop(meanwhile))
                    _, number, key, namespace = timer
                    by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
                    timers = by_time[time_ms]
                    if timers.get(owner) == number:
                        del timers[owner]
                        yield time_ms, key, namespace
            while meanwhile:
                yield from self._fired(*heapq.heappop(meanwhile))
        finally:
            self._firing_until = None
        for time_ms in times:
            self._at.pop(time_ms, None)
            self._spaced_at.pop(time_ms, None)

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        self._settle()
        heap = self._heap
        while heap and not (self._at.get(heap[0]) or self._spaced_at.get(heap[0])):
            time_ms = heapq.heappop(heap)
            self._at.pop(time_ms, None)
            self._spaced_at.pop(time_ms, None)
            self._is_sorted = False
        waiting, other = self._waiting.next_ms(self._deleted), self._keys.next_of_others(self._kind)
        return min((ms for ms in (heap[0] if heap else None, waiting, other) if ms is not None), default=None)

    def all(self) -> list[tuple[int, Any, Hashable]]:
        """Every timer that is set, in order of time: for harnesses."""
        self._keys.open_everything()
        self._bring_up_waiting(MAX_MS)
        times = sorted({*self._at, *self._spaced_at})
        return [(time_ms, key, namespace) for time_ms in times for _, _, key, namespace in self._in_order(time_ms)]

    def take_in(self, keys: list[Any], first: int, columns: tuple[TimerColumns | None, TimerColumns | None]) -> None:
        """Take note of the timers of a bucket that was read: those without namespaces, and those with.

        ``first`` is where the first of its keys stands among those at hand.
        """
        plain, spaced = columns
        if plain is not None:
            self._waiting.add(first, plain)
        if spaced is not None:
            self._bring_up(self._spaced_at, timers_of(keys, spaced))

    def in_order(self, places: Numbers) -> tuple[TimersInOrder, TimersInOrder]:
        """The timers without namespaces, and those with, given the places of all keys at hand."""
        index = self._index
        keys = list(chain.from_iterable(self._at.values()))
        of_keys = places[np.fromiter(map(index.__getitem__, keys), np.int64, len(keys))]
        owners = list(chain.from_iterable(self._spaced_at.values()))
        of_owners = places[np.fromiter((index[key] for key, _ in owners), np.int64, len(owners))]
        plain = [*self._waiting.rows(places, self._deleted), rows_of(self._at, of_keys)]
        spaced = [rows_of(self._spaced_at, of_owners)]
        return TimersInOrder(keys, plain), TimersInOrder(owners, spaced, has_namespaces=True)

    def clear(self) -> None:
        """Forget what is at hand."""
        self._at.clear()
        self._spaced_at.clear()
        self._waiting.clear()
        self._deleted.clear()
        self._heap.clear()
        self._is_sorted = True
        self._new.clear()
        self._earliest_new, self._looked_at = MAX_MS, 0

    def _bring_up_waiting(self, until_ms: int) -> None:
        """Have what waits, and is due at a time, at hand; what was deleted is gone."""
        due = self._waiting.due(until_ms)
        deleted = self._deleted
        self._bring_up(self._at, (timer for timer in due if timer[:2] not in deleted) if deleted else due)

    def _bring_up(self, by_time: ByTime, timers: Iterable[tuple[int, Any, int]]) -> None:
        """Have timers at hand; what was set again meanwhile has the number of when it was set first."""
        for time_ms, owner, number in timers:
            of_time = by_time.get(time_ms)
            if of_time is None:
                by_time[time_ms] = {owner: number}
                self._new.append(time_ms)
            else:
                of_time[owner] = number

    def _in_order(self, time_ms: int) -> list[_Entry]:
        """The timers of a time, in the order in which they fire."""
        plain, spaced = self._at.get(time_ms, {}), self._spaced_at.get(time_ms, {})
        if len(plain) < 2 and not spaced:
            return [(0, number, key, None) for key, number in plain.items()]  # the only one: its group does not matter
        groups_of = self._keys.groups_of
        timers: list[_Entry] = list(zip(groups_of(plain), plain.values(), plain, repeat(None)))
        keys, namespaces = zip(*spaced, strict=True) if spaced else ((), ())
        timers += zip(groups_of(keys), spaced.values(), keys, namespaces, strict=True)
        timers.sort()
        return timers

    def _fired(self, time_ms: int, timer: _Entry) -> Iterator[tuple[int, Any, Hashable]]:
        """A timer that was set meanwhile, if it was not deleted since."""
        _, number, key, namespace = timer
        by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
        timers = by_time[time_ms]
        if timers.get(owner) == number:
            del timers[owner]
            yield time_ms, key, namespace

    def _is_due(self, until_ms: int) -> bool:
        """Whether one of the times that wait unsorted is due."""
        new = self._new
        if len(new) > self._looked_at:
            self._earliest_new = min([self._earliest_new, *new[self._looked_at :]])
            self._looked_at = len(new)
        return self._earliest_new <= until_ms

    def _settle(self) -> None:
        """Have the times that are new in the heap."""
        heap, new = self._heap, self._new
        if len(new) > len(heap) // _FEW:
            heap += new
            heap.sort()
            self._is_sorted = True
        else:
            for time_ms in new:
                heapq.heappush(heap, time_ms)
            self._is_sorted = self._is_sorted and not new
        self._new = []
        self._earliest_new, self._looked_at = MAX_MS, 0

    def _taken(self, until_ms: int) -> list[int]:
        """The times that are due, in their order: taken out of the heap."""
        if self._is_due(until_ms):
            self._settle()
        heap = self._heap
        count = bisect_right(heap, until_ms) if self._is_sorted else 0
        if count > _MANY:
            ready = heap[:count]
            del heap[:count]
            return ready
        ready = []
        while heap and heap[0] <= until_ms:
            ready.append(heapq.heappop(heap))
            self._is_sorted = False
        return ready


class BatchTimers(Timers):
    """The timers of one kind in batch execution: from when the first of any kind fires on, none is set.

    They fire when all elements are through, so that a chain of timers ends with its first one.
    Flink: ``BatchExecutionInternalTimeService``.

    Attributes:
        kinds: the timers of all kinds, these among them.
    """

    def __init__(self, keys: Keys, kind: int, number: int) -> None:
        super().__init__(keys, kind, number)
        self.kinds: Sequence[BatchTimers] = (self,)
        self._is_quiesced = False

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer, unless timers fire."""
        if not self._is_quiesced:
            super().register(time_ms, key, namespace)

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys."""
        for timers in self.kinds:
            timers._is_quiesced = True
        return super().due(until_ms)


def timers_of_kinds(keys: Keys, numbers: Sequence[int], *, in_batch: bool) -> Sequence[Timers]:
    """The timers of each kind, in streaming or in batch execution.

    Args:
        keys: the keys that have timers.
        numbers: for each kind, the number of the last timer that was set.
        in_batch: whether they are those of batch execution.
    """
    if not in_batch:
        return [Timers(keys, kind, number) for kind, number in enumerate(numbers)]
    kinds = [BatchTimers(keys, kind, number) for kind, number in enumerate(numbers)]
    for timers in kinds:
        timers.kinds = kinds
    return kinds


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
        self.earliest: dict[int, int] = {}

    def keep(self, those: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Leave out some places, of which none has a timer."""
        self.places = (np.cumsum(those) - 1)[self.places]

    def cut(self, bounds: Numbers) -> None:
        """Cut it where a bucket ends, and find the earliest time of each that has any."""
        cuts = np.searchsorted(self.places, bounds)
        counts = np.diff(cuts)
        places = (self.places - np.repeat(bounds[:-1], counts)).astype(PLACES)
        self._cuts = cuts.tolist()
        self._columns = places.tobytes(), self._times.tobytes(), self._numbers.tobytes()
        have_any = np.flatnonzero(counts)
        earliest = np.minimum.reduceat(self._times, cuts[have_any]) if len(have_any) else have_any
        self.earliest = dict(zip(have_any.tolist(), earliest.tolist(), strict=True))

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


def placed(columns: TimerColumns | None, places: Numbers) -> TimerColumns | None:
    """Return the timers with other places of their keys, each that of its number."""
    if columns is None:
        return None
    found, times, numbers, namespaces = columns
    return places[np.frombuffer(found, PLACES)].astype(PLACES).tobytes(), times, numbers, namespaces


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
