"""The state of a function on a keyed stream: found once, when it is opened; of the key at hand, whenever it is used."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from eventide.common._ms import MIN_MS
from eventide.datastream.functions import Function
from eventide.datastream.state import StateTtlConfig
from eventide.errors import ProgramError
from eventide.runtime.state.entries import Entry
from eventide.runtime.state.expiring import SUFFIX, TimeToLive, with_times, without_times
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
        """The cell of a state without a time to live; if it had one before, what it kept then stays."""
        name = FUNCTION_STATE + name
        return _CellOfKey(self, name, name + SUFFIX, without_times)

    def _slot(self, name: str, config: StateTtlConfig, form: int) -> tuple[_CellOfKey, TimeToLive]:
        """The cell of a state that expires; what it kept before it had a time to live counts as used now."""
        self.expires = True
        ttl = TimeToLive.of(config, lambda: self.clock_ms)
        name = FUNCTION_STATE + name
        return _CellOfKey(self, name + SUFFIX, name, lambda plain: with_times(plain, ttl, form)), ttl

    def __reduce__(self) -> tuple[type[KeyAtHand], tuple[()]]:
        return KeyAtHand, ()


class _CellOfKey:
    """The slot of one named state of the key at hand.

    ``other`` is where an earlier program kept it, with a time to live where it has none now, or the other way round;
    ``converted`` makes what is kept there what is kept here.
    """

    __slots__ = ("_at", "_converted", "_name", "_other")

    def __init__(self, at: KeyAtHand, name: str, other: str, converted: Callable[[Any], Any]) -> None:
        self._at = at
        self._name = name
        self._other = other
        self._converted = converted

    def read(self) -> Any:
        names = self._at.entry.values.get(None)
        if names is None:
            return None
        value = names.get(self._name)
        if value is None and self._other in names:
            value = names[self._name] = self._converted(names.pop(self._other))
        return value

    def write(self, value: Any) -> None:
        values = self._at.entry.values
        names = values.get(None)
        if names is None:
            values[None] = {self._name: value}
        else:
            names[self._name] = value
            if self._other in names:
                del names[self._other]

    def clear(self) -> None:
        self.take(None)

    def take(self, namespace: Hashable) -> Any:
        value = self.read()
        names = self._at.entry.values.get(None)
        if names is not None:
            names.pop(self._name, None)
            if not names:
                del self._at.entry.values[None]
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
