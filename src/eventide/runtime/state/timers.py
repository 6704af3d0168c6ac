"""Timers of one kind: each is set for a time, a key and a namespace, and fires once, the earliest first."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from operator import itemgetter
from typing import Any, TypeAlias

from eventide.runtime.state.buckets import Buckets

TimerTable: TypeAlias = dict[tuple[int, Hashable], dict[Any, None]]
"""The keys that have a timer, in the order in which they were set, by time and namespace."""


class Timers:
    """The timers of one kind, which event time or processing time fires.

    Timers lie in the bucket of their key. ``next_in`` is a small index of the next timer of each stored bucket: with
    it, an advance of time reads only the buckets that it fires.

    Flink: one of the two queues of ``InternalTimerService``.
    """

    def __init__(self, buckets: Buckets, next_in: dict[int, int]) -> None:
        self.next_in = next_in
        self._buckets = buckets
        self._group_of = buckets.group_of
        self._timers: TimerTable = {}
        self._due: dict[int, deque[tuple[Hashable, Any]]] = {}
        self._due_times: list[int] = []
        self._firing_until: int | None = None

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer; setting it again changes nothing."""
        if key not in self._group_of:
            self._buckets.open(key)
        keys = self._timers.get((time_ms, namespace))
        if keys is None:
            keys = self._timers[time_ms, namespace] = {}
        elif key in keys:
            return
        keys[key] = None
        if self._firing_until is not None and time_ms <= self._firing_until:
            self._queue(time_ms).append((namespace, key))

    def register_all(self, time_ms: int, keys: Iterable[Any], namespace: Hashable) -> None:
        """Set a timer for each of many keys, but not while others fire."""
        self._buckets.open_all(keys)
        self._timers.setdefault((time_ms, namespace), {}).update(dict.fromkeys(keys))

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        if key not in self._group_of:
            self._buckets.open(key)
        keys = self._timers.get((time_ms, namespace))
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._timers[time_ms, namespace]

    def due(self, until_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before a time, in the order of their time over all keys.

        A timer that is set meanwhile, at or before that time, fires in the same advance; one that is deleted meanwhile
        does not fire.
        """
        self._load_due(until_ms)
        due = [
            (time_ms, self._group_of[key], namespace, key)
            for (time_ms, namespace), keys in self._timers.items()
            if time_ms <= until_ms
            for key in keys
        ]
        for time_ms, _, namespace, key in sorted(due, key=itemgetter(0, 1)):
            self._queue(time_ms).append((namespace, key))
        self._firing_until = until_ms
        while self._due_times:
            time_ms = self._due_times[0]
            queue = self._due[time_ms]
            if not queue:
                heapq.heappop(self._due_times)
                del self._due[time_ms]
                continue
            namespace, key = queue.popleft()
            if key in self._timers.get((time_ms, namespace), ()):
                self.delete(time_ms, key, namespace)
                yield time_ms, key, namespace
        self._firing_until = None

    def due_at_once(self, until_ms: int) -> Iterator[tuple[int, Hashable, list[Any]]]:
        """Fire as :meth:`due`, but all keys of a time and namespace together; nothing sets timers meanwhile."""
        self._load_due(until_ms)
        due = [at for at in self._timers if at[0] <= until_ms]
        for at in sorted(due, key=itemgetter(0)):
            yield *at, sorted(self._timers.pop(at), key=self._group_of.__getitem__)

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        stored = [time_ms for group, time_ms in self.next_in.items() if group not in self._buckets.loaded]
        return min([*stored, *(time_ms for time_ms, _ in self._timers)], default=None)

    def all(self) -> list[tuple[int, Any, Hashable]]:
        """Every timer that is set, in order of time: for harnesses."""
        self._buckets.load_all()
        timers = [(time_ms, key, namespace) for (time_ms, namespace), keys in self._timers.items() for key in keys]
        return sorted(timers, key=itemgetter(0))

    def take_in(self, group: int, table: TimerTable) -> None:
        """Take in what is stored in a bucket."""
        for at, keys in table.items():
            self._buckets.found(keys, group)
            self._timers.setdefault(at, {}).update(keys)

    def give_back(self) -> dict[int, TimerTable]:
        """What is to be stored in each bucket that was read; then no timer is at hand, and the index is up to date."""
        tables: dict[int, TimerTable] = {group: {} for group in self._buckets.loaded}
        for at, keys in self._timers.items():
            for group, part in self._buckets.split(keys).items():
                tables[group][at] = part
        self._timers.clear()
        self.next_in = {group: time_ms for group, time_ms in self.next_in.items() if group not in tables}
        for group, table in tables.items():
            if table:
                self.next_in[group] = min(time_ms for time_ms, _ in table)
        return tables

    def _load_due(self, until_ms: int) -> None:
        for group in sorted(group for group, next_ms in self.next_in.items() if next_ms <= until_ms):
            self._buckets.load(group)

    def _queue(self, time_ms: int) -> deque[tuple[Hashable, Any]]:
        if time_ms not in self._due:
            self._due[time_ms] = deque()
            heapq.heappush(self._due_times, time_ms)
        return self._due[time_ms]
