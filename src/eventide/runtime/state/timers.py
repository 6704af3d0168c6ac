"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Protocol, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS
from eventide.runtime.elements.ordering import order_by
from eventide.runtime.state.stored_timers import (
    PLACES,
    ByTime,
    Numbers,
    Rows,
    TimerColumns,
    WaitingTimers,
    rows_of,
    timers_of,
    together,
)

_Timer: TypeAlias = tuple[int, Any, Hashable]
"""Time, key and namespace."""

_Entry: TypeAlias = tuple[int, int, int, Any, Hashable]
"""Time, key group, number, key and namespace: numbers differ, so that keys and namespaces are never compared."""

_Parts: TypeAlias = list[tuple[Rows, Sequence[Hashable] | None]]
"""Timers without a namespace; and those with one, and their namespaces."""


class Keys(Protocol):
    """The keys that have timers."""

    keys: list[Any]
    """The keys at hand, by their places."""

    index: dict[Any, int]
    """The place of each of them that was touched."""

    def open(self, key: Any) -> None:
        """Touch a key that was not touched yet."""

    def bring_up(self, places: Numbers, *, has_changed: bool = False) -> None:
        """Touch the keys at some places, and take note that their timers have changed, if they have."""

    def open_everything(self) -> None:
        """Touch every key."""

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time."""

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not at hand."""

    def groups(self, places: Numbers) -> Numbers:
        """The key groups of the keys at some places."""


class Timers:
    """The timers of one kind, which event time or processing time fires.

    Timers of one time fire in the order of the key groups of their keys, and those of one group as they were set:
    ``number`` is that of the last one that was set, and goes on over micro-batches.

    Timers that are new lie together by their time, and these times wait unsorted until one of them may be due. Those
    that were stored wait as they are. All that are due are taken out, and fire in their order; those that are set
    meanwhile, and are to fire with them, have a heap of their own.

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
        self._new: list[int] = []
        self._earliest_new = MAX_MS
        self._firing_until: int | None = None
        self._firing: dict[_Timer, int] = {}
        """What is still to fire in this advance, and the number of each."""
        self._meanwhile: list[_Entry] = []
        self.number = number
        self.changed: list[Any] = []

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        if key not in self._index:
            self._keys.open(key)
        if self._firing_until is not None and time_ms <= self._firing_until:
            self._register_meanwhile((time_ms, key, namespace))
            return
        by_time, owner = (self._at, key) if namespace is None else (self._spaced_at, (key, namespace))
        timers = by_time.get(time_ms)
        if timers is None:
            timers = by_time[time_ms] = {}
            self._expect(time_ms)
        elif owner in timers:
            return
        self.number = timers[owner] = self.number + 1
        self.changed.append(key)

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
        self._firing.pop((time_ms, key, namespace), None)
        self.changed.append(key)

    def due(self, until_ms: int) -> Iterator[_Timer]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._keys.open_due(self._kind, until_ms)
        entries, meanwhile, firing = self._in_order(self._take(until_ms)), self._meanwhile, self._firing
        for time_ms, _, number, key, namespace in entries:
            firing.setdefault((time_ms, key, namespace), number)  # of one that was set again, what was set first counts
        self._firing_until = until_ms
        try:
            for entry in entries:
                while meanwhile and meanwhile[0] < entry:
                    yield from self._fired(heapq.heappop(meanwhile))
                time_ms, _, number, key, namespace = entry
                timer = time_ms, key, namespace
                if firing.get(timer) == number:
                    del firing[timer]
                    yield timer
            while meanwhile:
                yield from self._fired(heapq.heappop(meanwhile))
        finally:
            self._firing_until = None
            firing.clear()
            meanwhile.clear()

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        self._settle()
        heap = self._heap
        while heap and not (self._at.get(heap[0]) or self._spaced_at.get(heap[0])):
            time_ms = heapq.heappop(heap)
            self._at.pop(time_ms, None)
            self._spaced_at.pop(time_ms, None)
        waiting, other = self._waiting.next_ms(self._deleted), self._keys.next_of_others(self._kind)
        return min((ms for ms in (heap[0] if heap else None, waiting, other) if ms is not None), default=None)

    def all(self) -> list[_Timer]:
        """Every timer that is set, in order of time: for harnesses."""
        self._keys.open_everything()
        return [
            *dict.fromkeys((time_ms, key, namespace) for time_ms, _, _, key, namespace in self._in_order(self.rows()))
        ]

    def take_in(self, *columns: TimerColumns | None) -> None:
        """Take note of timers without a namespace, and with one, whose keys have places among those at hand."""
        plain, spaced = columns
        if plain is not None:
            self._waiting.add(plain)
        if spaced is not None:
            self._keys.bring_up(np.frombuffer(spaced[0], PLACES))
            for time_ms, owner, number in timers_of(self._keys.keys, spaced):
                if time_ms not in self._spaced_at:
                    self._spaced_at[time_ms] = {}
                    self._expect(time_ms)
                self._spaced_at[time_ms][owner] = number

    def rows(self) -> _Parts:
        """The timers of the keys at hand; one that was set again is there twice."""
        return self._parts(self._at, self._spaced_at, self._waiting.rows(self._deleted))

    def clear(self) -> None:
        """Forget what is at hand."""
        for of_timers in (self.changed, self._at, self._spaced_at, self._waiting, self._deleted, self._heap, self._new):
            of_timers.clear()
        self._earliest_new = MAX_MS

    def _register_meanwhile(self, timer: _Timer) -> None:
        """Set a timer that is to fire in this advance."""
        if timer in self._firing:
            return
        time_ms, key, namespace = timer
        self.number = self._firing[timer] = self.number + 1
        [group] = self._keys.groups(np.array([self._index[key]])).tolist()
        heapq.heappush(self._meanwhile, (time_ms, group, self.number, key, namespace))
        self.changed.append(key)

    def _fired(self, entry: _Entry) -> Iterator[_Timer]:
        """A timer that was set meanwhile, if it was not deleted since."""
        time_ms, _, number, key, namespace = entry
        if self._firing.get((time_ms, key, namespace)) == number:
            del self._firing[time_ms, key, namespace]
            yield time_ms, key, namespace

    def _expect(self, time_ms: int) -> None:
        """Take note of a time of which there is no timer at hand."""
        self._new.append(time_ms)
        self._earliest_new = min(self._earliest_new, time_ms)

    def _take(self, until_ms: int) -> _Parts:
        """Take out the timers at or before a time."""
        if self._earliest_new <= until_ms:
            self._settle()
        plain: ByTime = {}
        spaced: ByTime = {}
        while self._heap and self._heap[0] <= until_ms:
            time_ms = heapq.heappop(self._heap)
            for by_time, taken in ((self._at, plain), (self._spaced_at, spaced)):
                if time_ms in by_time:
                    taken[time_ms] = by_time.pop(time_ms)
        waiting = self._waiting.take(until_ms, self._deleted)
        if len(waiting[0]):
            self._keys.bring_up(waiting[0], has_changed=True)
        parts = self._parts(plain, spaced, [waiting])
        self.changed += [key for of_time in spaced.values() for key, _ in of_time]
        return parts

    def _parts(self, plain: ByTime, spaced: ByTime, waiting: Sequence[Rows]) -> _Parts:
        """Timers at hand by time, and some that wait."""
        keys, owners = (list(chain.from_iterable(by_time.values())) for by_time in (plain, spaced))
        without = together([*waiting, rows_of(plain, self._places_of(keys))])
        places = self._places_of([key for key, _ in owners])
        return [(without, None), (rows_of(spaced, places), [namespace for _, namespace in owners])]

    def _places_of(self, keys: list[Any]) -> Numbers:
        return np.fromiter(map(self._index.__getitem__, keys), np.int64, len(keys))

    def _in_order(self, parts: _Parts) -> list[_Entry]:
        """Timers in the order in which they fire."""
        places, times, numbers = together([rows for rows, _ in parts])
        if not len(places):
            return []
        of_keys = self._keys.groups(places)
        order = order_by(times, of_keys, numbers)
        columns = (column[order].tolist() for column in (times, of_keys, numbers))
        keys = map(self._keys.keys.__getitem__, places[order].tolist())
        [(plain, _), (_, namespaces)] = parts
        if not namespaces:
            return list(zip(*columns, keys, repeat(None), strict=False))
        of_all = [*repeat(None, len(plain[0])), *namespaces]
        return list(zip(*columns, keys, map(of_all.__getitem__, order.tolist()), strict=True))

    def _settle(self) -> None:
        """Have the times that are new in the heap."""
        if len(self._new) > len(self._heap):
            self._heap += self._new
            heapq.heapify(self._heap)
        else:
            for time_ms in self._new:
                heapq.heappush(self._heap, time_ms)
        self._new.clear()
        self._earliest_new = MAX_MS


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

    def due(self, until_ms: int) -> Iterator[_Timer]:
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
