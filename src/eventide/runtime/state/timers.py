"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Hashable, Iterator
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from eventide.common._ms import MAX_MS
from eventide.runtime.state.entries import Entry


class Keys(Protocol):
    """The keys whose entries have timers."""

    entries: dict[Any, Entry]

    def open(self, key: Any) -> Entry:
        """Have the entry of a key that is not at hand yet."""

    def open_everything(self) -> None:
        """Have every entry."""

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every entry that has a timer of a kind at or before a time."""

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the entries that are not at hand."""


_Timer: TypeAlias = tuple[int, int, int, Any, Hashable]
"""Time, key group, number, key and namespace: numbers differ, so that keys and namespaces are never compared."""
_time_of = itemgetter(0)
_FEW = 8
"""New timers are few if there are so many times as many in the heap."""
_MANY = 32
"""So many are taken from a sorted list at once, which moves all that stay."""


class Timers:
    """The timers of one kind, which event time or processing time fires.

    Timers of one time fire in the order of the key groups of their keys, and those of one group as they were set:
    ``number`` is that of the last one that was set, and goes on over micro-batches.

    Those that were set wait unsorted until one of them may be due; then they join a heap. Where most are new, all are
    sorted instead, which is cheaper, and a sorted list is a heap; from one that is sorted, many are taken at once.
    Those that are set while others fire, and are to fire with them, have a heap of their own.

    Flink: one of the two queues of ``InternalTimerService``.
    """

    def __init__(self, keys: Keys, kind: int, number: int) -> None:
        self._keys = keys
        self._entries = keys.entries
        self._kind = kind
        self._heap: list[_Timer] = []
        self._is_sorted = True
        self._new: list[_Timer] = []
        self._earliest_new = MAX_MS
        self._looked_at = 0
        self._firing_until: int | None = None
        self._meanwhile: list[_Timer] = []
        self.number = number

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        self.register_in(self._entries.get(key) or self._keys.open(key), time_ms, key, namespace)

    def register_in(self, entry: Entry, time_ms: int, key: Any, namespace: Hashable) -> None:
        """The same, for the key of an entry that is at hand."""
        timers = entry.timers[self._kind]
        at = (time_ms, namespace)
        if at not in timers:
            self.number = timers[at] = number = self.number + 1
            timer = (time_ms, entry.group, number, key, namespace)
            if self._firing_until is not None and time_ms <= self._firing_until:
                heapq.heappush(self._meanwhile, timer)
            else:
                self._new.append(timer)

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        entry = self._entries.get(key) or self._keys.open(key)
        entry.timers[self._kind].pop((time_ms, namespace), None)

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._keys.open_due(self._kind, until_ms)
        entries, kind = self._entries, self._kind
        ready = self._taken(until_ms)
        self._firing_until = until_ms
        try:
            for time_ms, _, number, key, namespace in self._with_those_set_meanwhile(ready):
                timers = entries[key].timers[kind]
                at = (time_ms, namespace)
                if timers.get(at) == number:
                    del timers[at]
                    yield time_ms, key, namespace
        finally:
            self._firing_until = None

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        self._settle()
        heap = self._heap
        while heap and self._is_gone(*heap[0]):
            heapq.heappop(heap)
            self._is_sorted = False
        times = [heap[0][0]] if heap else []
        other = self._keys.next_of_others(self._kind)
        return min([*times, *([] if other is None else [other])], default=None)

    def all(self) -> list[tuple[int, Any, Hashable]]:
        """Every timer that is set, in order of time: for harnesses."""
        self._keys.open_everything()
        timers = [
            (time_ms, entry.group, number, key, namespace)
            for key, entry in self._entries.items()
            for (time_ms, namespace), number in entry.timers[self._kind].items()
        ]
        return [(time_ms, key, namespace) for time_ms, _, _, key, namespace in sorted(timers, key=itemgetter(0, 1, 2))]

    def take_in(self, key: Any, entry: Entry) -> None:
        """Take note of the timers of an entry that was read."""
        timers, group = entry.timers[self._kind], entry.group
        self._new += [(time_ms, group, number, key, namespace) for (time_ms, namespace), number in timers.items()]

    def clear(self) -> None:
        """Forget what is at hand."""
        self._heap.clear()
        self._is_sorted = True
        self._new.clear()
        self._earliest_new, self._looked_at = MAX_MS, 0

    def _is_due(self, until_ms: int) -> bool:
        """Whether one of the timers that wait unsorted is due."""
        new = self._new
        if len(new) > self._looked_at:
            self._earliest_new = min(self._earliest_new, min(new[self._looked_at :])[0])
            self._looked_at = len(new)
        return self._earliest_new <= until_ms

    def _settle(self) -> None:
        """Have the timers that were set since the last time in the heap."""
        heap, new = self._heap, self._new
        if len(new) > len(heap) // _FEW:
            heap += new
            heap.sort()
            self._is_sorted = True
        else:
            for timer in new:
                heapq.heappush(heap, timer)
            self._is_sorted = self._is_sorted and not new
        self._new = []
        self._earliest_new, self._looked_at = MAX_MS, 0

    def _taken(self, until_ms: int) -> list[_Timer]:
        """The timers that are due, in their order: taken out of the heap."""
        if self._is_due(until_ms):
            self._settle()
        heap = self._heap
        count = bisect_right(heap, until_ms, key=_time_of) if self._is_sorted else 0
        if count > _MANY:
            ready = heap[:count]
            del heap[:count]
            return ready
        ready = []
        while heap and heap[0][0] <= until_ms:
            ready.append(heapq.heappop(heap))
            self._is_sorted = False
        return ready

    def _with_those_set_meanwhile(self, ready: list[_Timer]) -> Iterator[_Timer]:
        """Timers in their order, with those that are set, to fire with them, while they fire."""
        meanwhile = self._meanwhile
        for timer in ready:
            while meanwhile and meanwhile[0] < timer:
                yield heapq.heappop(meanwhile)
            yield timer
        while meanwhile:
            yield heapq.heappop(meanwhile)

    def _is_gone(self, time_ms: int, group: int, number: int, key: Any, namespace: Hashable) -> bool:
        return self._entries[key].timers[self._kind].get((time_ms, namespace)) != number
