"""A value of JSON that may have large tables in it, of which a micro-batch writes what has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from eventide.runtime.state.backend import Backend, content_of
from eventide.runtime.state.runs import compressed, decompressed

Json: TypeAlias = dict[str, Any]

_LARGE = 8_192
"""The number of bytes up to which the value is written as a whole."""
_CHANGES = "\0changes"
"""The name of what has changed since the base; no value has an entry of this name."""


class Journal:
    """A value among the small ones of an operator; if it is large, a base of its own and what has changed since.

    The base is written again, compressed, when the changes have grown to a quarter of it. So what a micro-batch writes
    follows what it changes; if it changes everything, it writes the base. Open one for each micro-batch.

    Args:
        backend: the state of the operator.
        name: the name of the value.

    Raises:
        StateError: if the base is not there.

    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> backend = MemoryBackend()
    >>> places = {f"split {n}": [n, False] for n in range(1_000)}
    >>> Journal(backend, "gate").write({"splits": places})
    >>> journal = Journal(backend, "gate")
    >>> journal.write({"splits": places | {"split 7": [8, False]}})
    >>> len(backend.get("gate")), Journal(backend, "gate").content["splits"]["split 7"]
    (56, [8, False])
    """

    def __init__(self, backend: Backend, name: str) -> None:
        self._backend = backend
        self._name = name
        self._base_name = f"{name}/base"
        self._base: Json | None = None
        self._base_bytes = 0
        self.content: Json | None = None
        """The value; None if there is none. It is not to be changed."""
        small = backend.get(name)
        if small is not None:
            self.content = self._read_with_base(small) if has_base(small) else json.loads(small)

    def _read_with_base(self, small: bytes) -> Json:
        base = decompressed(content_of(self._backend, self._base_name))
        self._base, self._base_bytes = json.loads(base), len(base)
        content: Json = changed(self._base, json.loads(small)[_CHANGES])
        return content

    def write(self, content: Json) -> None:
        """Store the value as it is after the micro-batch."""
        if self._base is not None:
            changes = _encoded({_CHANGES: differences(self._base, content)})
            if len(changes) <= max(_LARGE, self._base_bytes // 4):
                self._backend.put(self._name, changes)
                return
        whole = _encoded(content)
        if len(whole) > _LARGE:
            self._backend.put(self._base_name, compressed(whole))
            self._backend.put(self._name, _encoded({_CHANGES: {}}))
        else:
            self._backend.put(self._name, whole)
            if self._base is not None:
                self._backend.delete(self._base_name)


def has_base(small: bytes) -> bool:
    """Whether a value, as it lies among the small ones, says what has changed since a base."""
    return small.startswith(_BEGINNING)


def whole(backend: Backend, name: str) -> bytes:
    """The value as it would be if it were small; there must be one."""
    return _encoded(Journal(backend, name).content or {})


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Json:
    """Return what makes one value of another: by name, the new value in a list, or an empty list if it is gone.

    Of objects, and of lists of one length that have objects in them, it is the changes within.

    >>> differences({"a": 1, "b": [{"c": 2, "d": 3}, 7], "e": 4}, {"a": 1, "b": [{"c": 2, "d": 5}, 7], "f": None})
    {'b': {'0': {'d': [5]}}, 'f': [None], 'e': []}
    """
    found: Json = {}
    for name, value in now.items():
        if name not in before:
            found[name] = [value]
        elif (entries := _entries(before[name], value)) is not None:
            if within := differences(*entries):
                found[name] = within
        elif value != before[name]:
            found[name] = [value]
    return found | {name: [] for name in before if name not in now}


def _entries(before: Any, now: Any) -> tuple[Json, Json] | None:
    """Two values by the names or numbers of their entries, if it is these that are compared."""
    if isinstance(before, dict) and isinstance(now, dict):
        return before, now
    is_list = isinstance(before, list) and isinstance(now, list) and len(before) == len(now)
    if is_list and any(isinstance(entry, dict) for entry in now):
        return {str(i): entry for i, entry in enumerate(before)}, {str(i): entry for i, entry in enumerate(now)}
    return None


def changed(before: Any, changes: Mapping[str, Any]) -> Any:
    """Return the value that changes make of another; that one stays as it is.

    >>> before, now = {"b": [{"c": 2, "d": 3}, 7], "e": 4}, {"b": [{"c": 2, "d": 5}, 7], "f": None}
    >>> changed(before, differences(before, now)) == now
    True
    """
    if isinstance(before, list):
        return [_changed_entry(entry, changes.get(str(i))) for i, entry in enumerate(before)]
    value = {
        name: _changed_entry(entry, changes.get(name)) for name, entry in before.items() if changes.get(name) != []
    }
    return value | {name: change[0] for name, change in changes.items() if name not in before}


def _changed_entry(before: object, change: Any) -> Any:
    """Return an entry after its change, if there is one."""
    if change is None:
        return before
    return changed(before, change) if isinstance(change, dict) else change[0]


def _encoded(content: Json) -> bytes:
    return json.dumps(content).encode()


_BEGINNING = _encoded({_CHANGES: {}}).removesuffix(b" {}}")
