"""Transactions on keyed state: a function's changes to the state and the timers of a key stand as a whole or not."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from eventide.common._pickles import dumps
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.bucket import Pickled, live
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import BatchTimers

_UNCHANGING = frozenset({str, int, float, bool, bytes, type(None), Pickled})

_Change: TypeAlias = Callable[[int, Any, Hashable], None]
"""Sets or deletes the timer of a time, key and namespace."""


class TransactionalState(KeyedState):
    """Keyed state with transactions, each of which changes what one key has.

    A transaction may be within another one of its key, as the firing of a window is within the handling of an element.
    Where none is open, changes take effect at once.

    Args:
        backend: where it is stored.
        max_parallelism: the number of key groups.
        growing: names under which there are lists that grow at their end alone, so that their length is enough.
        in_batch: as in `KeyedState`.

    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> state = TransactionalState(MemoryBackend(), 128)
    >>> state.write("a", None, "list", [1])
    >>> transaction = state.begin("a")
    >>> state.read("a", None, "list").append(2)
    >>> transaction.rollback()
    >>> state.read("a", None, "list")
    [1]
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
        self.transaction: StateTransaction | None = None
        timers = [DeferredTimers(self, kind, of_kind.number) for kind, of_kind in enumerate(self._timers)]
        for of_kind in timers:
            of_kind.kinds = timers if in_batch else ()
        self._timers = timers
        self.event_timers, self.processing_timers = timers

    def begin(self, key: Any) -> StateTransaction:
        """Begin a transaction on a key, within the one that is open, if one is."""
        if key not in self.index:
            self.open(key)
        self.transaction = StateTransaction(self, key, self.transaction)
        return self.transaction

    def read(self, key: Any, namespace: Hashable, name: str) -> Any:
        """The value of a name under a key and namespace, or None."""
        self._remember(key, namespace, name)
        return super().read(key, namespace, name)

    def write(self, key: Any, namespace: Hashable, name: str, value: Any) -> None:
        """Store a value under a key, namespace and name."""
        self._remember(key, namespace, name)
        super().write(key, namespace, name, value)

    def take(self, key: Any, namespace: Hashable, name: str) -> Any:
        """Remove a value, and return what it was (None if it was not there)."""
        self._remember(key, namespace, name)
        return super().take(key, namespace, name)

    def _remember(self, key: Any, namespace: Hashable, name: str) -> None:
        """Have the open transaction remember a value with a namespace, before it can be changed."""
        transaction = self.transaction
        if transaction is None or namespace is None or (namespace, name) in transaction.touched:
            return
        value = super().read(key, namespace, name)
        grows = value is not None and name in self._growing
        transaction.touched[namespace, name] = (value, len(value)) if grows else (_remembered(value), None)


class StateTransaction:
    """What one element, or one timer, of a key brings about: to be committed or rolled back.

    Of state without a namespace, all that the key has is remembered at the beginning, which is little; of what has one,
    what is touched. Of values that can be changed in place, a pickle is kept. Nothing reads timers while a function
    works, so they are set and deleted when the outermost transaction is committed.
    """

    __slots__ = ("_before", "_key", "_outer", "_state", "timers", "touched")

    def __init__(self, state: TransactionalState, key: Any, outer: StateTransaction | None) -> None:
        self._state = state
        self._key = key
        self._outer = outer
        self._before = [(name, _remembered(values[key])) for name, values in state.values.items() if key in values]
        self.touched: dict[tuple[Hashable, str], tuple[Any, int | None]] = {}
        self.timers: list[tuple[_Change, int, Any, Hashable]] = []

    def commit(self) -> None:
        """Let stand what was done; within another transaction, that stands or not with the rest of it."""
        outer = self._state.transaction = self._outer
        if outer is None:
            for change, time_ms, key, namespace in self.timers:
                change(time_ms, key, namespace)
        else:
            outer.timers += self.timers
            outer.touched = self.touched | outer.touched

    def rollback(self) -> None:
        """Have the key as it was when the transaction began."""
        state, key = self._state, self._key
        state.transaction = None
        for values in state.values.values():
            values.pop(key, None)
        for name, value in self._before:
            state.values[name][key] = value
        for (namespace, name), (value, length) in self.touched.items():
            if value is None:
                state.take(key, namespace, name)
                continue
            if length is not None:
                del value[length:]
            state.write(key, namespace, name, live(value))
        state.transaction = self._outer


class DeferredTimers(BatchTimers):
    """The timers of one kind, which wait for the commit where a transaction is open."""

    def __init__(self, state: TransactionalState, kind: int, number: int) -> None:
        super().__init__(state, kind, number)
        self._state = state

    def register(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Set a timer."""
        self._change(super().register, time_ms, key, namespace)

    def delete(self, time_ms: int, key: Any, namespace: Hashable) -> None:
        """Delete a timer, whether it is set or not."""
        self._change(super().delete, time_ms, key, namespace)

    def _change(self, change: _Change, time_ms: int, key: Any, namespace: Hashable) -> None:
        if self._state.transaction is None:
            change(time_ms, key, namespace)
        else:
            self._state.transaction.timers.append((change, time_ms, key, namespace))


def _remembered(value: Any) -> Any:
    """A value, or its pickle if it can be changed in place."""
    return value if type(value) in _UNCHANGING else Pickled(dumps(value))
