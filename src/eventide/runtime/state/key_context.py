"""The state of a function on a keyed stream: found once, when it is opened; of the key at hand, whenever it is used."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from eventide.api.functions import Function
from eventide.api.state import StateTtlConfig
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.state.bucket import Pickled, live, unpickled
from eventide.runtime.state.expiring import SUFFIX, TimeToLive, with_times, without_times
from eventide.runtime.state.handles import StateHandles
from eventide.runtime.state.keyed import KeyedState

FUNCTION_STATE = "global:"
"""The beginning of the names of functions' state: windows have others beside it."""


class KeyContext:
    """The key that a function is called for, and where what is kept of it is found.

    It stays for as long as the function is open, while each micro-batch has its own view of the state: the operator
    says which key is at hand before it calls the function. On its way to a worker it forgets everything.

    Attributes:
        key: the key.
        values: what is kept of all keys at hand, by name and key.
        clock_ms: the time of the micro-batch by the clock.
        expires: whether any state has a time to live.
    """

    __slots__ = ("_declared", "_keyed", "clock_ms", "expires", "key", "store", "values")

    def __init__(self) -> None:
        self.key: Any = None
        self.values: Mapping[str, dict[Any, Any]] = _NO_VALUES
        self.clock_ms = MIN_MS
        self.expires = False
        self.store = StateHandles(self._cell, self._declare, self._slot)
        self._keyed: KeyedState | None = None
        self._declared: dict[str, TypeInformation] = {}

    def begin(self, keyed: KeyedState, clock_ms: int) -> None:
        """Begin a micro-batch of a time by the clock, on the state that an operator has in it.

        Raises:
            StateError: if a state was stored with a type that does not widen to the one that the program declares.
        """
        self._keyed, self.clock_ms = keyed, clock_ms
        for name, type_info in self._declared.items():
            keyed.declare(name, type_info)

    def leave(self) -> None:
        """Have no key at hand: what a function does with state now is a mistake."""
        self.key, self.values = None, _NO_VALUES

    def _declare(self, name: str, type_info: TypeInformation) -> None:
        """Take down the type of a state; what was stored with another one is brought to it before it is used."""
        self._declared[FUNCTION_STATE + name] = type_info
        if self._keyed is not None:
            self._keyed.declare(FUNCTION_STATE + name, type_info)

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

    def __reduce__(self) -> tuple[type[KeyContext], tuple[()]]:
        return KeyContext, ()


class _CellOfKey:
    """The slot of one named state of the key at hand.

    ``other`` is where an earlier program kept it, with a time to live where it has none now, or the other way round;
    ``converted`` makes what is kept there what is kept here.
    """

    __slots__ = ("_at", "_converted", "_name", "_other")

    def __init__(self, at: KeyContext, name: str, other: str, converted: Callable[[Any], Any]) -> None:
        self._at = at
        self._name = name
        self._other = other
        self._converted = converted

    def read(self) -> Any:
        at = self._at
        values = at.values[self._name]
        value = values.get(at.key)
        if type(value) is Pickled:
            value = values[at.key] = live(value)
        elif value is None and self._other in at.values:
            earlier = unpickled(at.values[self._other], at.key)
            if earlier is not None:
                value = values[at.key] = self._converted(earlier)
                del at.values[self._other][at.key]
        return value

    def write(self, value: Any) -> None:
        at = self._at
        at.values[self._name][at.key] = value
        if self._other in at.values:
            at.values[self._other].pop(at.key, None)

    def clear(self) -> None:
        self.take(None)

    def take(self, namespace: Hashable) -> Any:
        value = self.read()
        self._at.values[self._name].pop(self._at.key, None)
        return value


class _NoValues(dict[str, dict[Any, Any]]):
    """Stands where no key is at hand."""

    def __missing__(self, name: str) -> dict[Any, Any]:
        raise ProgramError(
            "state belongs to a key, and no key is at hand here; get it in open(), and use it where an element or a "
            "timer is handled"
        )


_NO_VALUES = _NoValues()


def is_rich(function: Any) -> bool:
    """Whether a function is opened, so that it may have state of its own."""
    return isinstance(function, Function) and type(function).open is not Function.open
