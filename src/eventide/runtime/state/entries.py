"""What is kept of one key, in memory and in bytes: its state by namespace and name, and its timers of both kinds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.common._pickles import dumps, loads
from eventide.common.time_window import TimeWindow
from eventide.runtime.state.bucket import StoredEntry
from eventide.runtime.state.expiring import expiries

TimersOfKey: TypeAlias = dict[tuple[int, Hashable], int]
"""By time and namespace; the number says in which order timers of all keys were set."""


class Entry:
    """The state of a key by namespace and name, and its timers of each kind, while they are at hand."""

    __slots__ = ("group", "hash", "timers", "values")

    def __init__(self, key_hash: int, group: int) -> None:
        self.hash = key_hash
        self.group = group
        self.values: dict[Hashable, dict[str, Any]] = {}
        self.timers: tuple[TimersOfKey, TimersOfKey] = ({}, {})

    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not (self.values or any(self.timers))


def stored(entries: Iterable[tuple[Any, Entry]]) -> StoredEntry | None:
    """The bytes of what is kept of the keys of one hash: of one key, but for accidents; None if nothing is kept.

    Raises what pickling raises.
    """
    kept = [(key, entry) for key, entry in entries if not entry.is_empty()]
    if not kept:
        return None
    content = dumps([_form(key, entry) for key, entry in kept])
    by_event, by_clock = _earliest(0, kept), _earliest(1, kept)
    expiry = min((ms for _, entry in kept for ms in expiries(entry.values)), default=None)
    return (content, by_event, by_clock) if expiry is None else (content, by_event, by_clock, expiry)


def _earliest(kind: int, kept: Iterable[tuple[Any, Entry]]) -> int | None:
    """The earliest timer; one beyond the end of time, or before its beginning, is looked at there."""
    times = [time_ms for _, entry in kept for time_ms, _ in entry.timers[kind]]
    return max(MIN_MS, min(MAX_MS, *times)) if times else None


def read(content: bytes, key_hash: int, group: int) -> list[tuple[Any, Entry]]:
    """The keys of one hash and what is kept of them."""
    found = []
    for key, values, *timers in loads(content):
        entry = Entry(key_hash, group)
        parts = iter(values)
        entry.values = {_unpacked(namespace): names for namespace, names in zip(parts, parts, strict=True)}
        for kind, set_for in zip(entry.timers, timers, strict=True):
            if set_for:
                namespaces = set_for[1::3]
                unpacked = map(_unpacked, namespaces) if any(namespaces) else namespaces
                kind.update(zip(zip(set_for[::3], unpacked, strict=True), set_for[2::3], strict=True))
        found.append((key, entry))
    return found


class _Packed(dict[Hashable, Any]):
    """Namespaces as they are pickled; equal ones are one object there, so that their bytes are there once."""

    def __missing__(self, namespace: Hashable) -> Any:
        packed = self[namespace] = _packed(namespace)
        return packed


def _form(key: Any, entry: Entry) -> tuple[Any, ...]:
    """What is pickled of a key."""
    known = _Packed()
    return (
        key,
        [part for namespace, names in entry.values.items() for part in (known[namespace], names)],
        *[[part for (time_ms, ns), n in timers.items() for part in (time_ms, known[ns], n)] for timers in entry.timers],
    )


def _packed(namespace: Hashable) -> Any:
    """A namespace in few bytes: a window of time as its bounds, another window as a list of one; never empty."""
    if namespace is None:
        return None
    return (namespace.start, namespace.end) if type(namespace) is TimeWindow else [namespace]


def _unpacked(packed: Any) -> Hashable:
    if packed is None:
        return None
    return TimeWindow(*packed) if type(packed) is tuple else packed[0]
