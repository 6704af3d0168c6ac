"""Changes of a function to the state and the timers of a key, which stand as a whole or not at all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from eventide.common._pickles import dumps
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.bucket import Pickled, live
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers

_UNCHANGING = frozenset({str, int, float, bool, bytes, type(None), Pickled})


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
        """Setter of timers of event time."""

    @property
    def processing_timers(self) -> SetsTimers:
        """Setter of timers of processing time."""


class Attempt:
    """One element, or one timer, of a key: what it brings about can be undone until the next one begins.

    There may be one within it, of the same key, such as the firing of a window within the handling of an element: what
    that brought about is undone by itself, or stands with the rest.

    Timers are not read while a function works, so what is set and deleted waits until it is known that it stands. Of
    state without a namespace, all that the key has is remembered, which is little; of what has one, what is touched, as
    `UndoableState` tells. Of what can be changed in place, a pickle is kept.

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

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed
        self._key: Any = None
        self._before: list[list[tuple[str, Any]]] = []
        self.event_timers = _Waiting(keyed.event_timers)
        self.processing_timers = _Waiting(keyed.processing_timers)

    def begin(self, key: Any) -> None:
        """Remember what a key has."""
        if key not in self._keyed.index:
            self._keyed.open(key)
        self._key = key
        self._before = [self._remembered()]

    def begin_within(self) -> None:
        """Begin one within it."""
        self._before.append(self._remembered())
        self.event_timers.begin_within()
        self.processing_timers.begin_within()

    def keep(self) -> None:
        """Let stand what was done."""
        self.event_timers.take_effect()
        self.processing_timers.take_effect()

    def keep_within(self) -> None:
        """Have what was done in the one within it stand or not with the rest."""
        self._before.pop()
        self.event_timers.keep_within()
        self.processing_timers.keep_within()

    def undo(self) -> None:
        """Have the key as it was when that began which began last."""
        for values in self._keyed.values.values():
            values.pop(self._key, None)
        for name, value in self._before.pop():
            self._keyed.values[name][self._key] = value
        self.event_timers.forget()
        self.processing_timers.forget()

    def _remembered(self) -> list[tuple[str, Any]]:
        key = self._key
        return [(name, _kept(values[key])) for name, values in self._keyed.values.items() if key in values]


class _Waiting:
    """Timers of one kind that are set and deleted later."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._waiting: list[tuple[bool, int, Any, Hashable]] = []
        self._within: list[int] = []

    def begin_within(self) -> None:
        self._within.append(len(self._waiting))

    def keep_within(self) -> None:
        self._within.pop()

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
        del self._waiting[self._within.pop() if self._within else 0 :]


class UndoableState(KeyedState):
    """Keyed state that remembers what is touched under a namespace, from :meth:`begin` on, and within that.

    Args:
        backend: where it is stored.
        max_parallelism: the number of key groups.
        growing: names under which there are lists that grow at their end alone, so that their length is enough.
        in_batch: as in `KeyedState`.
    """

    def __init__(
        self,
        backend: StateBackend,
        max_parallelism: int,
        growing: frozenset[str] = frozenset(),
        *,
        in_batch: bool = False,
    ) -> None:
        super().__init__(backend, max_parallelism, in_batch=in_batch)
        self._growing = growing
        self._touched: dict[tuple[Any, Hashable, str], tuple[Any, int | None]] = {}
        self._outside: list[dict[tuple[Any, Hashable, str], tuple[Any, int | None]]] = []

    def begin(self) -> None:
        """Forget what was touched so far: that stands."""
        self._touched.clear()

    def begin_within(self) -> None:
        """Remember apart what is touched from now on."""
        self._outside.append(self._touched)
        self._touched = {}

    def keep_within(self) -> None:
        """Have what was touched in the one within stand or not with the rest."""
        within, self._touched = self._touched, self._outside.pop()
        self._touched = {**within, **self._touched}

    def undo(self) -> None:
        """Have all as it was that was touched since that began which began last."""
        for (key, namespace, name), (value, length) in self._touched.items():
            if value is None:
                super().take(key, namespace, name)
                continue
            if length is not None:
                del value[length:]
            super().write(key, namespace, name, live(value))
        self._touched = self._outside.pop() if self._outside else {}

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        value = super().read(key, namespace, name)
        self._touch(key, namespace, name, value)
        return value

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        if namespace is not None and (key, namespace, name) not in self._touched:
            self._touch(key, namespace, name, super().read(key, namespace, name))
        super().write(key, namespace, name, value)

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        if namespace is not None and (key, namespace, name) not in self._touched:
            self._touch(key, namespace, name, super().read(key, namespace, name))
        return super().take(key, namespace, name)

    def _touch(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        place = key, namespace, name
        if namespace is None or place in self._touched:
            return
        if value is not None and name in self._growing:
            self._touched[place] = value, len(value)
        else:
            self._touched[place] = _kept(value), None


def _kept(value: Any) -> Any:
    return value if type(value) in _UNCHANGING else Pickled(dumps(value))
