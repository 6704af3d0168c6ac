"""What is kept of one key, in memory and in bytes: its state by namespace and name, and its timers of both kinds."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.common._pickles import dumps, loads
from eventide.common.time_window import TimeWindow
from eventide.runtime.state.bucket import StoredEntry
from eventide.runtime.state.expiring import expiries

TimersOfKey: TypeAlias = dict[Any, int]
"""By time, or by time and namespace where there is one; the number says in which order timers of all keys were set."""


def timer_of(at: Any) -> tuple[int, Hashable]:
    """The time and the namespace of a timer, of those of its key.

    >>> timer_of(5), timer_of((5, "window"))
    ((5, None), (5, 'window'))
    """
    return at if type(at) is tuple else (at, None)


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
    times = [at if type(at) is int else at[0] for _, entry in kept for at in entry.timers[kind]]
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
                kind.update(_timers(*set_for))
        found.append((key, entry))
    return found


def _timers(times: Any, namespaces: Any, numbers: Any) -> Iterable[tuple[Any, int]]:
    if namespaces is None:
        return zip(array("q", times), array("q", numbers), strict=True)
    at = (
        (time_ms, _unpacked(ns)) if ns is not None else time_ms for time_ms, ns in zip(times, namespaces, strict=True)
    )
    return zip(at, numbers, strict=True)


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
        *[_form_of_timers(timers, known) if timers else None for timers in entry.timers],
    )


def _form_of_timers(timers: TimersOfKey, known: _Packed) -> tuple[Any, Any, Any]:
    """Times, namespaces and numbers; as the bytes of 64-bit numbers where no timer has a namespace."""
    try:
        return array("q", timers).tobytes(), None, array("q", timers.values()).tobytes()
    except (TypeError, OverflowError):
        set_for = [timer_of(at) for at in timers]
        return [time_ms for time_ms, _ in set_for], [known[ns] for _, ns in set_for], list(timers.values())


def _packed(namespace: Hashable) -> Any:
    """A namespace in few bytes: a window of time as its bounds, another window as a list of one; never empty."""
    if namespace is None:
        return None
    return (namespace.start, namespace.end) if type(namespace) is TimeWindow else [namespace]


def _unpacked(packed: Any) -> Hashable:
    if packed is None:
        return None
    return TimeWindow(*packed) if type(packed) is tuple else packed[0]
