"""Keyed state and timers of one subtask, stored in buckets of one key group each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from eventide.common._pickles import dumps, loads
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.buckets import Buckets
from eventide.runtime.state.timers import Timers

_INDEX = "timers"

_Values: TypeAlias = dict[Hashable, dict[str, dict[Any, Any]]]
"""By namespace, name and key: few namespaces have many keys, so what belongs to a window lies together."""


class KeyedState:
    """State by key, namespace and name, and timers by key and namespace: of event time, and of processing time.

    A bucket is read when one of its keys is touched, or one of its timers is due, and written once, by
    :meth:`flush`. A small index of the next timer of each bucket, for each of the two kinds, makes an advance of time
    read only what it fires. The namespace is the window (None for state that belongs to the key as a whole).

    Flink: keyed state back end and ``InternalTimerService`` in one, because they share their buckets.
    """

    def __init__(self, backend: StateBackend, max_parallelism: int) -> None:
        self._backend = backend
        index = backend.get(_INDEX)
        self._index: list[dict[int, int]] = [{}, {}] if index is None else loads(index)
        self._buckets = buckets = Buckets(max_parallelism, self._read)
        self._group_of = buckets.group_of
        self._values: _Values = {}
        self._timers = [Timers(buckets, next_in) for next_in in self._index]
        self.event_timers, self.processing_timers = self._timers

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        if key not in self._group_of:
            self._buckets.open(key)
        names = self._values.get(namespace)
        table = None if names is None else names.get(name)
        return None if table is None else table.get(key)

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        if key not in self._group_of:
            self._buckets.open(key)
        self._table(namespace, name)[key] = value

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        if key not in self._group_of:
            self._buckets.open(key)
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
            self._buckets.open(key)
        for name in list(self._values.get(namespace, ())):
            if name.startswith(prefix):
                self.take(key, namespace, name)

    def table(self, keys: Iterable[Any], namespace: Hashable, name: str) -> dict[Any, Any]:
        """All values of a namespace and name by key, to be changed in place: at least those of the ``keys`` are there.

        Who asks must leave a value for one key at least.
        """
        self._buckets.open_all(keys)
        return self._table(namespace, name)

    def take_table(self, keys: Iterable[Any], namespace: Hashable, name: str) -> dict[Any, Any]:
        """Remove the values of some keys, and return them by key, in the order of the keys; some may have none."""
        self._buckets.open_all(keys)
        table = self._values.get(namespace, {}).get(name, {})
        taken = {key: table.pop(key) for key in keys if key in table}
        if taken and not table:
            del self._values[namespace][name]
            if not self._values[namespace]:
                del self._values[namespace]
        return taken

    def flush(self) -> None:
        """Write back every bucket that was read; call it once at the end of a micro-batch."""
        values: dict[int, _Values] = {group: {} for group in self._buckets.loaded}
        for namespace, names in self._values.items():
            for name, table in names.items():
                for group, part in self._buckets.split(table).items():
                    values[group].setdefault(namespace, {})[name] = part
        timers = [kind.give_back() for kind in self._timers]
        for group in sorted(self._buckets.loaded):
            self._store(f"bucket/{group}", [values[group], *(tables[group] for tables in timers)])
        index = [kind.next_in for kind in self._timers]
        if index != self._index:
            self._store(_INDEX, index)
            self._index = index
        self._values.clear()
        self._buckets.clear()

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        """Every key and namespace that holds values: for harnesses."""
        self._buckets.load_all()
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

    def _store(self, name: str, content: list[Any]) -> None:
        """Store what there is, or forget the name if there is nothing."""
        if any(content):
            self._backend.put(name, dumps(content))
        else:
            self._backend.delete(name)

    def _read(self, group: int) -> None:
        stored = self._backend.get(f"bucket/{group}")
        if stored is None:
            return
        values, *timers = loads(stored)
        for namespace, names in values.items():
            for name, part in names.items():
                self._buckets.found(part, group)
                self._table(namespace, name).update(part)
        for kind, table in zip(self._timers, timers, strict=True):
            kind.take_in(group, table)
