"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Protocol, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.elements.ordering import order_by
from eventide.runtime.state.stored_timers import (
    ByTime,
    Numbers,
    Timer,
    TimerColumns,
    TimersInOrder,
    WaitingTimers,
    rows_of,
    timers_of,
)

_Entry: TypeAlias = tuple[int, int, Any, Hashable]
"""Key group, number, key and namespace: numbers differ, so that keys and namespaces are never compared."""

_FEW = 8
"""New times are few if the heap has this many times as many."""
_MANY = 32
"""So many are taken from a sorted list at once, which moves all that stay."""


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


class Timers:
    """The timers of one kind, which event time or processing time fires.

    Timers of one time fire in the order of the key groups of their keys, and those of one group as they were set:
    ``number`` is that of the last one that was set, and goes on over micro-batches.

    Timers lie together by their time. Times that are new wait unsorted until one of them may be due; then they join a
    heap. Where most are new, all are sorted instead, which is cheaper, and a sorted list is a heap; from one that is
    sorted, many are taken at once. Timers that are set while others fire, and are to fire with them, have a heap of
    their own. Those that were stored wait as they are, and fire so where no other is due.

    Flink: one of the two queues of ``InternalTimerService``.

    Attributes:
        number: that of the last timer that was set.
        changed: the keys one of whose timers was set, deleted or fired; some are there several times.
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
        self._left: Sequence[tuple[int, int, int, Any]] = ()
        """While timers that waited fire: time, group, number and key of each."""
        self._left_by_owner: set[Timer] | None = None
        self._last = (MIN_MS, 0, 0)
        self._meanwhile: list[tuple[int, _Entry]] = []
        self.number = number
        self.changed: list[Any] = []

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        if key not in self._index:
            self._keys.open(key)
        by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
        timers = by_time.get(time_ms)
        if timers is not None and owner in timers:
            return
        if self._left and namespace is None and self._is_left(time_ms, key):
            return
        if timers is None:
            timers = by_time[time_ms] = {}
            self._new.append(time_ms)
        self.number = timers[owner] = number = self.number + 1
        self.changed.append(key)
        if self._firing_until is not None and time_ms <= self._firing_until:
            [group] = self._keys.groups_of([key])
            heapq.heappush(self._meanwhile, (time_ms, (group, number, key, namespace)))

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        if key not in self._index:
            self._keys.open(key)
        self.changed.append(key)
        by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
        timers = by_time.get(time_ms)
        if timers is not None:
            timers.pop(owner, None)
        if namespace is None and (self._waiting or self._left):
            self._deleted.add((time_ms, key))

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._keys.open_due(self._kind, until_ms)
        self._firing_until = until_ms
        try:
            if self._is_due(until_ms) or (self._heap and self._heap[0] <= until_ms):
                self._bring_up_waiting(until_ms)
                yield from self._fire_at_hand(until_ms)
            else:
                yield from self._fire_waiting(until_ms)
        finally:
            self._firing_until, self._left, self._left_by_owner = None, (), None

    def _fire_at_hand(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire timers that are at hand by time, and those that are set meanwhile up to the last of them."""
        meanwhile = self._meanwhile
        times = self._taken(until_ms)
        for time_ms in times:
            for timer in self._in_order(time_ms):
                while meanwhile and meanwhile[0] < (time_ms, timer):
                    yield from self._fired(*heapq.heappop(meanwhile))
                _, number, key, namespace = timer
                by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
                timers = by_time[time_ms]
                if timers.get(owner) == number:
                    del timers[owner]
                    self.changed.append(key)
                    yield time_ms, key, namespace
        while meanwhile:
            yield from self._fired(*heapq.heappop(meanwhile))
        for time_ms in times:
            self._at.pop(time_ms, None)
            self._spaced_at.pop(time_ms, None)

    def _fire_waiting(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire timers that wait, where no other is due: they need not be at hand by time."""
        rows = [*self._waiting.take(until_ms)]
        if not rows:
            return
        places, times, numbers = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        keys = list(map(self._keys.keys.__getitem__, places.tolist()))
        groups = self._keys.groups_of(keys)
        order = order_by(times, np.array(groups), numbers).tolist() if len(keys) > 1 else [0]
        columns = times.tolist(), groups, numbers.tolist(), keys
        self._left = list(zip(*(map(column.__getitem__, order) for column in columns), strict=True))
        meanwhile, deleted, changed = self._meanwhile, self._deleted, self.changed
        for time_ms, group, number, key in self._left:
            while meanwhile and meanwhile[0] < (time_ms, (group, number, key, None)):
                yield from self._fired(*heapq.heappop(meanwhile))
            if deleted and (time_ms, key) in deleted:
                continue
            if self._left_by_owner is not None:
                self._left_by_owner.discard((time_ms, key))
            self._last = time_ms, group, number
            changed.append(key)
            yield time_ms, key, None
        while meanwhile:
            yield from self._fired(*heapq.heappop(meanwhile))

    def _is_left(self, time_ms: int, key: Any) -> bool:
        """Whether a timer that waited is still to fire in this advance."""
        if self._firing_until is None or time_ms > self._firing_until:
            return False
        if self._left_by_owner is None:
            self._left_by_owner = {(at, of) for at, group, number, of in self._left if (at, group, number) > self._last}
        return (time_ms, key) in self._left_by_owner and (time_ms, key) not in self._deleted

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
        self.changed.clear()
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
            self.changed.append(key)
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
