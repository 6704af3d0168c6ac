"""Transactions on keyed state: a function's changes to the state and the timers of a key stand as a whole or not."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from eventide.common.typeinfo.widening import Conversion
from eventide.pickling.pickles import dumps
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import PLAIN, Pickled, live
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import BatchTimers

_UNCHANGING = PLAIN | {type(None), Pickled}

_Change: TypeAlias = Callable[[int, Any, Hashable], None]
"""Sets or deletes the timer of a time, key and namespace."""

_Touched: TypeAlias = dict[tuple[Hashable, str], tuple[Any, int | None]]
"""Values by namespace and name, as they were; of a list that grows, the list and its length."""

_Transaction: TypeAlias = tuple[Any, list[tuple[str, Any]], _Touched, int]
"""The key, its state without a namespace, its state with one, and how many timers waited, when it began."""


class TransactionalState(KeyedState):
    """Keyed state with transactions, each of which changes what one key has.

    A transaction may be within another one of its key, as the firing of a window is within the handling of an element.
    Where none is open, changes take effect at once.

    Of state without a namespace, all that the key has is remembered when a transaction begins, which is little; of
    state with a namespace, what is touched. Of values that can be changed in place, a pickle is kept. Nothing reads
    timers while a function works, so they are set and deleted when the outermost transaction is committed.

    Args:
        backend: where it is stored.
        max_parallelism: the number of key groups.
        growing: names under which there are lists that grow at their end alone, so that their length is enough.
        in_batch: as in `KeyedState`.

    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> state = TransactionalState(MemoryBackend(), 128)
    >>> state.write("a", None, "list", [1])
    >>> state.begin("a")
    >>> state.read("a", None, "list").append(2)
    >>> state.rollback()
    >>> state.read("a", None, "list")
    [1]
    """

    def __init__(
        self,
        backend: Backend,
        max_parallelism: int,
        growing: frozenset[str] = frozenset(),
        *,
        in_batch: bool = False,
    ) -> None:
        super().__init__(backend, max_parallelism, in_batch=in_batch)
        self._growing = growing
        self._transactions: list[_Transaction] = []
        self._touched: _Touched | None = None
        self._waiting: list[tuple[_Change, int, Any, Hashable]] = []
        timers = [DeferredTimers(self, kind, of_kind.number) for kind, of_kind in enumerate(self._timers)]
        self._timers = self.event_timers, self.processing_timers = timers

    def begin(self, key: object) -> None:
        """Begin a transaction on a key, within the one that is open, if one is."""
        if key not in self.index:
            self.open(key)
        before = [
            (name, value if type(value := values[key]) in _UNCHANGING else _pickled(value))
            for name, values in self.values.items()
            if key in values
        ]
        self._touched = {}
        self._transactions.append((key, before, self._touched, len(self._waiting)))

    def commit(self) -> None:
        """End a transaction: its changes stand; within another one, they stand or fall with that."""
        _, _, touched, _ = self._transactions.pop()
        if self._transactions:
            outer = self._touched = self._transactions[-1][2]
            outer |= touched | outer
            return
        self._touched = None
        if self._waiting:
            for change, time_ms, key, namespace in self._waiting:
                change(time_ms, key, namespace)
            self._waiting.clear()

    def rollback(self) -> None:
        """End a transaction: the key has what it had when it began."""
        key, before, touched, waiting = self._transactions.pop()
        for values in self.values.values():
            values.pop(key, None)
        for name, value in before:
            self.values[name][key] = value
        for (namespace, name), (value, length) in touched.items():
            if value is None:
                super().take(key, namespace, name)
                continue
            if length is not None:
                del value[length:]
            super().write(key, namespace, name, live(value))
        del self._waiting[waiting:]
        self._touched = self._transactions[-1][2] if self._transactions else None

    def read(self, key: object, namespace: Hashable, name: str) -> Any:
        value = super().read(key, namespace, name)
        touched = self._touched
        if touched is not None and namespace is not None and (namespace, name) not in touched:
            grows = value is not None and name in self._growing
            touched[namespace, name] = (value, len(value)) if grows else (_pickled(value), None)
        return value

    def write(self, key: object, namespace: Hashable, name: str, value: object) -> None:
        if self._touched is not None and namespace is not None:
            self.read(key, namespace, name)
        super().write(key, namespace, name, value)

    def take(self, key: object, namespace: Hashable, name: str) -> Any:
        if self._touched is not None and namespace is not None:
            self.read(key, namespace, name)
        return super().take(key, namespace, name)

    def _convert(self, name: str, convert: Conversion) -> None:
        """Convert values, and those that open transactions remember: the wider type stays if they are rolled back."""
        super()._convert(name, convert)
        for _, before, touched, _ in self._transactions:
            before[:] = [(other, convert(live(value)) if other == name else value) for other, value in before]
            for place, (value, length) in touched.items():
                if place[1] == name and value is not None:
                    touched[place] = convert(live(value)), length

    def change_timer(self, change: _Change, time_ms: int, key: object, namespace: Hashable) -> None:
        """Set or delete a timer: when the transaction is committed, if one is open."""
        if self._transactions:
            self._waiting.append((change, time_ms, key, namespace))
        else:
            change(time_ms, key, namespace)


class DeferredTimers(BatchTimers):
    """The timers of one kind, which are set and deleted when a transaction is committed."""

    def __init__(self, state: TransactionalState, kind: int, number: int) -> None:
        super().__init__(state, kind, number)
        self._change = state.change_timer
        self._register, self._delete = super().register, super().delete

    def register(self, time_ms: int, key: object, namespace: Hashable) -> None:
        self._change(self._register, time_ms, key, namespace)

    def delete(self, time_ms: int, key: object, namespace: Hashable) -> None:
        self._change(self._delete, time_ms, key, namespace)


def _pickled(value: object) -> Any:
    """The pickle of a value that can be changed in place; else the value."""
    return value if type(value) in _UNCHANGING else Pickled(dumps(value))
