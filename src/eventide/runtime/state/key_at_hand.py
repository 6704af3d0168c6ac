"""The state of a function on a keyed stream: found once, when it is opened; of the key at hand, whenever it is used."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from eventide.common._ms import MIN_MS
from eventide.datastream.functions import Function
from eventide.datastream.state import StateTtlConfig
from eventide.errors import ProgramError
from eventide.runtime.state.entries import Entry
from eventide.runtime.state.expiring import SUFFIX, Slot, TimeToLive, with_times, without_times
from eventide.runtime.state.handles import StateHandles

FUNCTION_STATE = "global:"
"""What the names of the state of functions begin with: windows have others beside it."""


class KeyAtHand:
    """The key that a function is called for, and what is kept of it.

    It stays for as long as the function is open, while each micro-batch has its own view of the state: the operator
    says which key is at hand before it calls the function. On its way to a worker it forgets everything.

    Attributes:
        key: the key.
        entry: what is kept of it.
        clock_ms: the time of the micro-batch by the clock.
        expires: whether any state has a time to live.
    """

    __slots__ = ("clock_ms", "entry", "expires", "key", "store")

    def __init__(self) -> None:
        self.key: Any = None
        self.entry: Entry = _NO_ENTRY
        self.clock_ms = MIN_MS
        self.expires = False
        self.store = StateHandles(self._cell, self._slot)

    def leave(self) -> None:
        """Have no key at hand: what a function does with state now is a mistake."""
        self.key, self.entry = None, _NO_ENTRY

    def _cell(self, name: str) -> _CellOfKey:
        return _PlainCell(self, FUNCTION_STATE + name)

    def _slot(self, name: str, config: StateTtlConfig) -> tuple[Slot, TimeToLive]:
        """The slot of a state that expires; what it kept before it had a time to live was used now."""
        self.expires = True
        cell, plain = _CellOfKey(self, FUNCTION_STATE + name + SUFFIX), _CellOfKey(self, FUNCTION_STATE + name)
        ttl = TimeToLive.of(config, lambda: self.clock_ms)

        def read() -> Any:
            stored = cell.read()
            if stored is None and (before := plain.read()) is not None:
                plain.clear()
                stored = with_times(before, ttl)
                cell.write(stored)
            return stored

        return Slot(read, cell.write, cell.clear), ttl

    def __reduce__(self) -> tuple[type[KeyAtHand], tuple[()]]:
        return KeyAtHand, ()


class _CellOfKey:
    """The slot of one named state of the key at hand."""

    __slots__ = ("_at", "_name")

    def __init__(self, at: KeyAtHand, name: str) -> None:
        self._at = at
        self._name = name

    def read(self) -> Any:
        names = self._at.entry.values.get(None)
        return None if names is None else names.get(self._name)

    def write(self, value: Any) -> None:
        values = self._at.entry.values
        names = values.get(None)
        if names is None:
            values[None] = {self._name: value}
        else:
            names[self._name] = value

    def clear(self) -> None:
        self.take(None)

    def take(self, namespace: Hashable) -> Any:
        values = self._at.entry.values
        names = values.get(namespace)
        if names is None:
            return None
        value = names.pop(self._name, None)
        if not names:
            del values[namespace]
        return value


class _PlainCell(_CellOfKey):
    """The slot of a state without a time to live; if it had one before, what it kept then stays."""

    __slots__ = ()

    def read(self) -> Any:
        names = self._at.entry.values.get(None)
        if names is None:
            return None
        value = names.get(self._name)
        if value is None and self._name + SUFFIX in names:
            value = names[self._name] = without_times(names.pop(self._name + SUFFIX))
        return value


class _NoEntry(Entry):
    """Stands where no key is at hand."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @property
    def values(self) -> Any:  # type: ignore[override]
        raise ProgramError(
            "state belongs to a key, and no key is at hand here; get it in open(), and use it where an element or a "
            "timer is handled"
        )


_NO_ENTRY = _NoEntry()


def is_rich(function: Any) -> bool:
    """Whether a function is opened, so that it may have state of its own."""
    return isinstance(function, Function) and type(function).open is not Function.open
