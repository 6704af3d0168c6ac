"""What a function does with the state and the timers of a key, which stands as a whole or not at all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, TypeAlias

from eventide.common._pickles import dumps
from eventide.runtime.state.bucket import Pickled
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers

_UNCHANGING = frozenset({str, int, float, bool, bytes, type(None), Pickled})

_Kept: TypeAlias = list[tuple[str, Any]]


class SetsTimers(Protocol):
    """Takes the timers of one kind."""

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer."""

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""


class HasTimers(Protocol):
    """Has timers of both kinds: keyed state, or an attempt on it."""

    @property
    def event_timers(self) -> SetsTimers:
        """Those of event time."""

    @property
    def processing_timers(self) -> SetsTimers:
        """Those of processing time."""


class Attempt:
    """One element, or one timer, of a key: what it brings about can be undone until the next one begins.

    Nobody reads timers while a function works, so what is set and deleted waits until it is known that it stands. Of
    values that can be changed in place, a pickle is kept. Of lists that only grow, under the names ``growing``, it is a
    list of the same objects.

    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> keyed = KeyedState(MemoryBackend(), 128)
    >>> attempt = Attempt(keyed)
    >>> attempt.begin("a")
    >>> keyed.write("a", None, "list", [1])
    >>> attempt.keep()
    >>> attempt.begin("a")
    >>> keyed.read("a", None, "list").append(2)
    >>> attempt.undo()
    >>> keyed.read("a", None, "list")
    [1]
    """

    def __init__(self, keyed: KeyedState, growing: frozenset[str] = frozenset()) -> None:
        self._keyed = keyed
        self._growing = growing
        self._key: Any = None
        self._before: list[_Kept] = []
        self.event_timers = _Waiting(keyed.event_timers)
        self.processing_timers = _Waiting(keyed.processing_timers)

    def begin(self, key: Any) -> None:
        """Remember what a key has."""
        if key not in self._keyed.index:
            self._keyed.open(key)
        self._key = key
        self._before = [
            [(name, self._kept(name, values[key])) for name, values in by_name.items() if key in values]
            for by_name in self._keyed.by_name
        ]

    def _kept(self, name: str, value: Any) -> Any:
        if type(value) in _UNCHANGING:
            return value
        if name in self._growing:  # a list for each namespace
            return {namespace: [*of] for namespace, of in value.items()}
        return Pickled(dumps(value))

    def keep(self) -> None:
        """Let stand what was done."""
        self.event_timers.take_effect()
        self.processing_timers.take_effect()

    def undo(self) -> None:
        """Have the key as it was."""
        key = self._key
        for by_name, before in zip(self._keyed.by_name, self._before, strict=True):
            for values in by_name.values():
                values.pop(key, None)
            for name, value in before:
                by_name[name][key] = value
        self.event_timers.forget()
        self.processing_timers.forget()


class _Waiting:
    """Timers of one kind that are set and deleted later."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: list[tuple[bool, int, Any, Hashable]] = []

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        self._waiting.append((True, time_ms, key, namespace))

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        self._waiting.append((False, time_ms, key, namespace))

    def take_effect(self) -> None:
        if not self._waiting:
            return
        for is_set, time_ms, key, namespace in self._waiting:
            (self._timers.register if is_set else self._timers.delete)(time_ms, key, namespace)
        self._waiting.clear()

    def forget(self) -> None:
        self._waiting.clear()
