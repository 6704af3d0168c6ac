"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Hashable, Iterator
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from eventide.common._ms import MAX_MS
from eventide.runtime.state.entries import Entry, timer_of


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


_Timer: TypeAlias = tuple[int, int, Any, Hashable]
"""Key group, number, key and namespace: numbers differ, so that keys and namespaces are never compared."""
_FEW = 8
"""New times are few if there are so many times as many in the heap."""
_MANY = 32
"""So many are taken from a sorted list at once, which moves all that stay."""


class Timers:
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
        self._entries = keys.entries
        self._kind = kind
        self._at: dict[int, list[_Timer]] = {}
        self._heap: list[int] = []
        self._is_sorted = True
        self._new: list[int] = []
        self._earliest_new = MAX_MS
        self._looked_at = 0
        self._firing_until: int | None = None
        self._meanwhile: list[tuple[int, _Timer]] = []
        self.number = number

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        self.register_in(self._entries.get(key) or self._keys.open(key), time_ms, key, namespace)

    def register_in(self, entry: Entry, time_ms: int, key: Any, namespace: Hashable) -> None:
        """The same, for the key of an entry that is at hand."""
        timers = entry.timers[self._kind]
        at = time_ms if namespace is None else (time_ms, namespace)
        if at in timers:
            return
        self.number = timers[at] = number = self.number + 1
        timer = (entry.group, number, key, namespace)
        if self._firing_until is not None and time_ms <= self._firing_until:
            heapq.heappush(self._meanwhile, (time_ms, timer))
        elif time_ms in self._at:
            self._at[time_ms].append(timer)
        else:
            self._at[time_ms] = [timer]
            self._new.append(time_ms)

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        entry = self._entries.get(key) or self._keys.open(key)
        entry.timers[self._kind].pop(time_ms if namespace is None else (time_ms, namespace), None)

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._keys.open_due(self._kind, until_ms)
        entries, kind, meanwhile = self._entries, self._kind, self._meanwhile
        times = self._taken(until_ms)
        self._firing_until = until_ms
        try:
            for time_ms in times:
                timers = self._at.pop(time_ms)
                timers.sort()
                for timer in timers:
                    while meanwhile and meanwhile[0] < (time_ms, timer):
                        yield from self._fired(*heapq.heappop(meanwhile))
                    _, number, key, namespace = timer
                    at = time_ms if namespace is None else (time_ms, namespace)
                    of_key = entries[key].timers[kind]
                    if of_key.get(at) == number:
                        del of_key[at]
                        yield time_ms, key, namespace
            while meanwhile:
                yield from self._fired(*heapq.heappop(meanwhile))
        finally:
            self._firing_until = None

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        self._settle()
        heap = self._heap
        while heap and all(self._is_gone(heap[0], timer) for timer in self._at[heap[0]]):
            del self._at[heapq.heappop(heap)]
            self._is_sorted = False
        times = [heap[0]] if heap else []
        other = self._keys.next_of_others(self._kind)
        return min([*times, *([] if other is None else [other])], default=None)

    def all(self) -> list[tuple[int, Any, Hashable]]:
        """Every timer that is set, in order of time: for harnesses."""
        self._keys.open_everything()
        timers = [
            (*timer_of(at), entry.group, number, key)
            for key, entry in self._entries.items()
            for at, number in entry.timers[self._kind].items()
        ]
        in_order = sorted(timers, key=itemgetter(0, 2, 3))
        return [(time_ms, key, namespace) for time_ms, namespace, _, _, key in in_order]

    def take_in(self, key: Any, entry: Entry) -> None:
        """Take note of the timers of an entry that was read."""
        known, new, group = self._at, self._new, entry.group
        for at, number in entry.timers[self._kind].items():
            time_ms, namespace = (at, None) if type(at) is int else at
            if time_ms in known:
                known[time_ms].append((group, number, key, namespace))
            else:
                known[time_ms] = [(group, number, key, namespace)]
                new.append(time_ms)

    def clear(self) -> None:
        """Forget what is at hand."""
        self._at.clear()
        self._heap.clear()
        self._is_sorted = True
        self._new.clear()
        self._earliest_new, self._looked_at = MAX_MS, 0

    def _fired(self, time_ms: int, timer: _Timer) -> Iterator[tuple[int, Any, Hashable]]:
        """A timer that was set meanwhile, if it was not deleted since."""
        if not self._is_gone(time_ms, timer):
            _, _, key, namespace = timer
            del self._entries[key].timers[self._kind][time_ms if namespace is None else (time_ms, namespace)]
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

    def _is_gone(self, time_ms: int, timer: _Timer) -> bool:
        _, number, key, namespace = timer
        at = time_ms if namespace is None else (time_ms, namespace)
        return self._entries[key].timers[self._kind].get(at) != number
