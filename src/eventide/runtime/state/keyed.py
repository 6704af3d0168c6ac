"""Keyed state and timers of one subtask, stored in buckets of one key group each."""

from __future__ import annotations

import heapq
import pickle
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from operator import itemgetter
from typing import Any, TypeAlias

from eventide.common._pickles import dumps
from eventide.runtime.keys import key_group
from eventide.runtime.state.backend import StateBackend

_INDEX = "timers"

_Values: TypeAlias = dict[Hashable, dict[str, dict[Any, Any]]]
"""By namespace, name and key: few namespaces have many keys, so what belongs to a window lies together."""

_Timers: TypeAlias = dict[tuple[int, Hashable], dict[Any, None]]
"""The keys that have a timer, in the order in which they were set, by time and namespace."""


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
        index = backend.get(_INDEX)
        self._next_timer: dict[int, int] = {} if index is None else pickle.loads(index)
        self._loaded: set[int] = set()
        self._group_of: dict[Any, int] = {}
        self._values: _Values = {}
        self._timers: _Timers = {}
        self._due: dict[int, deque[tuple[Hashable, Any]]] = {}
        self._due_times: list[int] = []
        self._firing_until: int | None = None

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        if key not in self._group_of:
            self._open(key)
        names = self._values.get(namespace)
        table = None if names is None else names.get(name)
        return None if table is None else table.get(key)

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        if key not in self._group_of:
            self._open(key)
        self._table(namespace, name)[key] = value

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        if key not in self._group_of:
            self._open(key)
        names = self._values.get(namespace)
        table = None if names is None else names.get(name)
        if names is None or table is None:
            return None
        value = table.pop(key, None)
        if not table:
            del names[name]
            if not names:
                del self._values[namespace]
        return value

    def take_all(self, key: Any, namespace: Hashable, prefix: str) -> None:
        """Remove every value under a key and namespace whose name starts with a prefix."""
        if key not in self._group_of:
            self._open(key)
        for name in list(self._values.get(namespace, ())):
            if name.startswith(prefix):
                self.take(key, namespace, name)

    def table(self, keys: Iterable[Any], namespace: Hashable, name: str) -> dict[Any, Any]:
        """All values of a namespace and name by key, to be changed in place: at least those of the ``keys`` are there.

        Who asks must leave a value for one key at least.
        """
        self._open_all(keys)
        return self._table(namespace, name)

    def take_table(self, keys: Iterable[Any], namespace: Hashable, name: str) -> dict[Any, Any]:
        """Remove the values of some keys, and return them by key, in the order of the keys; some may have none."""
        self._open_all(keys)
        table = self._values.get(namespace, {}).get(name, {})
        taken = {key: table.pop(key) for key in keys if key in table}
        if taken and not table:
            del self._values[namespace][name]
            if not self._values[namespace]:
                del self._values[namespace]
        return taken

    def register_timer(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set an event-time timer; setting it again changes nothing."""
        if key not in self._group_of:
            self._open(key)
        keys = self._timers.get((time_ms, namespace))
        if keys is None:
            keys = self._timers[time_ms, namespace] = {}
        elif key in keys:
            return
        keys[key] = None
        if self._firing_until is not None and time_ms <= self._firing_until:
            self._queue(time_ms).append((namespace, key))

    def register_timers(self, time_ms: int, keys: Iterable[Any], namespace: Hashable) -> None:
        """Set a timer for each of many keys, but not while others fire."""
        self._open_all(keys)
        self._timers.setdefault((time_ms, namespace), {}).update(dict.fromkeys(keys))

    def delete_timer(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        if key not in self._group_of:
            self._open(key)
        keys = self._timers.get((time_ms, namespace))
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self._timers[time_ms, namespace]

    def due_timers(self, watermark_ms: int) -> Iterator[tuple[int, Any, Hashable]]:
        """Fire: take out the timers at or before the watermark, in the order of their time over all keys.

        A timer that is set meanwhile, at or before the watermark, fires in the same advance; one that is deleted
        meanwhile does not fire.
        """
        self._load_due(watermark_ms)
        due = [
            (time_ms, self._group_of[key], namespace, key)
            for (time_ms, namespace), keys in self._timers.items()
            if time_ms <= watermark_ms
            for key in keys
        ]
        for time_ms, _, namespace, key in sorted(due, key=itemgetter(0, 1)):
            self._queue(time_ms).append((namespace, key))
        self._firing_until = watermark_ms
        while self._due_times:
            time_ms = self._due_times[0]
            queue = self._due[time_ms]
            if not queue:
                heapq.heappop(self._due_times)
                del self._due[time_ms]
                continue
            namespace, key = queue.popleft()
            if key in self._timers.get((time_ms, namespace), ()):
                self.delete_timer(time_ms, key, namespace)
                yield time_ms, key, namespace
        self._firing_until = None

    def due_at_once(self, watermark_ms: int) -> Iterator[tuple[int, Hashable, list[Any]]]:
        """Fire as :meth:`due_timers`, but all keys of a time and namespace together; nothing sets timers meanwhile."""
        self._load_due(watermark_ms)
        due = [at for at in self._timers if at[0] <= watermark_ms]
        for at in sorted(due, key=itemgetter(0)):
            yield *at, sorted(self._timers.pop(at), key=self._group_of.__getitem__)

    def flush(self) -> None:
        """Write back every bucket that was read; call it once at the end of a micro-batch."""
        values: dict[int, _Values] = {group: {} for group in self._loaded}
        timers: dict[int, _Timers] = {group: {} for group in self._loaded}
        index = {group: time_ms for group, time_ms in self._next_timer.items() if group not in self._loaded}
        for namespace, names in self._values.items():
            for name, table in names.items():
                for group, part in self._by_group(table).items():
                    values[group].setdefault(namespace, {})[name] = part
        for (time_ms, namespace), keys in self._timers.items():
            for group, part in self._by_group(keys).items():
                timers[group][time_ms, namespace] = part
                index[group] = min(time_ms, index.get(group, time_ms))
        for group in sorted(self._loaded):
            if values[group] or timers[group]:
                self._backend.put(f"bucket/{group}", dumps((values[group], timers[group])))
            else:
                self._backend.delete(f"bucket/{group}")
        if index != self._next_timer:
            self._backend.put(_INDEX, dumps(index))
            self._next_timer = index
        for gone in (self._loaded, self._group_of, self._values, self._timers):
            gone.clear()

    def all_timers(self) -> list[tuple[int, Any, Hashable]]:
        """Every timer that is set, in order of time: for harnesses."""
        self._load_all()
        timers = [(time_ms, key, namespace) for (time_ms, namespace), keys in self._timers.items() for key in keys]
        return sorted(timers, key=itemgetter(0))

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        """Every key and namespace that holds values: for harnesses."""
        self._load_all()
        entries: dict[tuple[Any, Hashable], dict[str, Any]] = defaultdict(dict)
        for namespace, names in self._values.items():
            for name, table in names.items():
                for key, value in table.items():
                    entries[key, namespace][name] = value
        return dict(entries)

    def _table(self, namespace: Hashable, name: str) -> dict[Any, Any]:
        names = self._values.get(namespace)
        if names is None:
            names = self._values[namespace] = {}
        table = names.get(name)
        if table is None:
            table = names[name] = {}
        return table

    def _queue(self, time_ms: int) -> deque[tuple[Hashable, Any]]:
        if time_ms not in self._due:
            self._due[time_ms] = deque()
            heapq.heappush(self._due_times, time_ms)
        return self._due[time_ms]

    def _by_group(self, table: dict[Any, Any]) -> dict[int, dict[Any, Any]]:
        group_of = self._group_of
        parts: defaultdict[int, dict[Any, Any]] = defaultdict(dict)
        for key, value in table.items():
            parts[group_of[key]][key] = value
        return parts

    def _open(self, key: Any) -> None:
        group = key_group(key, self._max_parallelism)
        self._load(group)
        self._group_of[key] = group

    def _open_all(self, keys: Iterable[Any]) -> None:
        known = self._group_of
        for key in keys:
            if key not in known:
                self._open(key)

    def _load_due(self, watermark_ms: int) -> None:
        for group in sorted(g for g, next_ms in self._next_timer.items() if next_ms <= watermark_ms):
            self._load(group)

    def _load_all(self) -> None:
        for group in range(self._max_parallelism):
            self._load(group)

    def _load(self, group: int) -> None:
        if group in self._loaded:
            return
        self._loaded.add(group)
        stored = self._backend.get(f"bucket/{group}")
        if stored is None:
            return
        values, timers = pickle.loads(stored)
        for namespace, names in values.items():
            for name, part in names.items():
                self._group_of.update(dict.fromkeys(part, group))
                self._table(namespace, name).update(part)
        for at, part in timers.items():
            self._group_of.update(dict.fromkeys(part, group))
            self._timers.setdefault(at, {}).update(part)
