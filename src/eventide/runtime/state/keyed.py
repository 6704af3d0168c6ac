"""Keyed state and timers of one subtask, in buckets of one key group each."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from eventide.common._pickles import dumps
from eventide.runtime.keys import key_group
from eventide.runtime.state.backend import StateBackend

_INDEX = "timers"


@dataclass(slots=True)
class _Bucket:
    """What one key group holds: ``values[key, namespace][name]`` and ``timers[time][key, namespace]``."""

    values: dict[tuple[Any, Hashable], dict[str, Any]] = field(default_factory=dict)
    timers: dict[int, dict[tuple[Any, Hashable], None]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not self.values and not self.timers


class KeyedState:
    """State by key, namespace and name, and event-time timers by key and namespace.

    A bucket is read when one of its keys is touched, or one of its timers is due, and written once, by
    :meth:`flush`. A small index of the next timer of each bucket makes an advance of the watermark read only what it
    fires. The namespace is the window (None for state that belongs to the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their buckets.
    """

    def __init__(self, backend: StateBackend, max_parallelism: int) -> None:
        self._backend = backend
        self._max_parallelism = max_parallelism
        self._buckets: dict[int, _Bucket] = {}
        self._bucket_of: dict[Any, _Bucket] = {}
        index = backend.get(_INDEX)
        self._next_timer: dict[int, int] = {} if index is None else pickle.loads(index)
        self._index_at_start = dict(self._next_timer)
        self._due: list[tuple[int, int, Any, Hashable]] = []
        self._sequence = 0
        self._firing_until: int | None = None

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        named = self._bucket(key).values.get((key, namespace))
        return None if named is None else named.get(name)

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        values = self._bucket(key).values
        named = values.get((key, namespace))
        if named is None:
            named = values[key, namespace] = {}
        named[name] = value

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        values = self._bucket(key).values
        named = values.get((key, namespace))
        if named is None:
            return None
        value = named.pop(name, None)
        if not named:
            del values[key, namespace]
        return value

    def take_all(self, key: Any, namespace: Hashable, prefix: str) -> None:
        """Remove every value under a key and namespace whose name starts with a prefix."""
        for name in list(self._bucket(key).values.get((key, namespace), ())):
            if name.startswith(prefix):
                self.take(key, namespace, name)

    def register_timer(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set an event-time timer; setting it again changes nothing."""
        entries = self._bucket(key).timers.setdefault(time_ms, {})
        if (key, namespace) in entries:
            return
        entries[key, namespace] = None
        if self._firing_until is not None and time_ms <= self._firing_until:
            self._push(time_ms, key, namespace)

    def delete_timer(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        timers = self._bucket(key).timers
        entries = timers.get(time_ms, {})
        entries.pop((key, namespace), None)
        if not entries:
            timers.pop(time_ms, None)

    def due_timers(self, watermark_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before the watermark, in the order of their time over all keys.

        A timer that is set meanwhile, at or before the watermark, fires in the same advance; one that is deleted
        meanwhile does not fire.
        """
        self._firing_until = watermark_ms
        for group in sorted(g for g, next_ms in self._next_timer_now().items() if next_ms <= watermark_ms):
            timers = self._load(group).timers
            for time_ms in sorted(t for t in timers if t <= watermark_ms):
                for key, namespace in timers[time_ms]:
                    self._push(time_ms, key, namespace)
        while self._due:
            time_ms, _, key, namespace = heapq.heappop(self._due)
            if (key, namespace) in self._bucket(key).timers.get(time_ms, {}):
                self.delete_timer(time_ms, key, namespace)
                yield time_ms, key, namespace
        self._firing_until = None

    def _push(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (time_ms, self._sequence, key, namespace))

    def _next_timer_now(self) -> dict[int, int]:
        for group, bucket in self._buckets.items():
            if bucket.timers:
                self._next_timer[group] = min(bucket.timers)
            else:
                self._next_timer.pop(group, None)
        return self._next_timer

    def flush(self) -> None:
        """Write back every bucket that was read; call it once at the end of a micro-batch."""
        for group, bucket in self._buckets.items():
            if bucket.empty:
                self._backend.delete(f"bucket/{group}")
            else:
                self._backend.put(f"bucket/{group}", dumps((bucket.values, bucket.timers)))
        if self._next_timer_now() != self._index_at_start:
            self._backend.put(_INDEX, dumps(self._next_timer))
            self._index_at_start = dict(self._next_timer)
        self._buckets.clear()
        self._bucket_of.clear()

    def _bucket(self, key: Any) -> _Bucket:
        bucket = self._bucket_of.get(key)
        if bucket is None:
            bucket = self._bucket_of[key] = self._load(key_group(key, self._max_parallelism))
        return bucket

    def _load(self, group: int) -> _Bucket:
        bucket = self._buckets.get(group)
        if bucket is None:
            stored = self._backend.get(f"bucket/{group}")
            bucket = self._buckets[group] = _Bucket() if stored is None else _Bucket(*pickle.loads(stored))
        return bucket

    def all_timers(self) -> list[tuple[int, Any, Hashable]]:
        """Every timer that is set, in order of time: for harnesses."""
        timers = [
            (time_ms, key, namespace)
            for bucket in self._all_buckets()
            for time_ms, entries in bucket.timers.items()
            for key, namespace in entries
        ]
        return sorted(timers, key=lambda timer: timer[0])

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        """Every key and namespace that holds values: for harnesses."""
        return {entry: values for bucket in self._all_buckets() for entry, values in bucket.values.items()}

    def _all_buckets(self) -> list[_Bucket]:
        return [self._load(group) for group in range(self._max_parallelism)]
