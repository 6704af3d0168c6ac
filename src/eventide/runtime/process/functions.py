"""How each kind of function is called with the elements of each input, and with timers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from eventide.api.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)

Results: TypeAlias = Iterable[Any] | None
"""Outputs of a function; None stands for nothing."""

Handle: TypeAlias = Callable[[Any, Any], Results]
"""Handles an element, or the time of a timer, in a context."""


class Processing(Protocol):
    """A user function, and how it is called."""

    @property
    def user_function(self) -> Any:
        """The user's function, to be opened and closed."""

    @property
    def kind(self) -> str:
        """Its kind, in words that stay."""

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """The handlers of the elements of each input."""

    @property
    def on_timer(self) -> Handle | None:
        """The handler of timers; None where there are no timers."""

    @property
    def may_wait_for_clock(self) -> bool:
        """Whether it may set timers of processing time: what it does with timers, only it knows."""


@dataclass(frozen=True, slots=True)
class ProcessEach:
    """A ``KeyedProcessFunction``."""

    user_function: KeyedProcessFunction
    kind: str = "keyed process"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """Its ``process_element``."""
        return (self.user_function.process_element,)

    @property
    def on_timer(self) -> Handle | None:
        """Its ``on_timer``, where it has one."""
        overridden = type(self.user_function).on_timer is not KeyedProcessFunction.on_timer
        return self.user_function.on_timer if overridden else None

    @property
    def may_wait_for_clock(self) -> bool:
        """Whether it has timers."""
        return self.on_timer is not None


@dataclass(frozen=True, slots=True)
class ProcessBoth:
    """A ``CoProcessFunction`` or ``KeyedCoProcessFunction``."""

    user_function: CoProcessFunction | KeyedCoProcessFunction
    kind: str = "process of two inputs"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """Its ``process_element1`` and ``process_element2``."""
        return self.user_function.process_element1, self.user_function.process_element2

    @property
    def on_timer(self) -> Handle | None:
        """Its ``on_timer``, where it has one."""
        function = self.user_function
        if not isinstance(function, KeyedCoProcessFunction):
            return None
        return function.on_timer if type(function).on_timer is not KeyedCoProcessFunction.on_timer else None

    @property
    def may_wait_for_clock(self) -> bool:
        """Whether it has timers."""
        return self.on_timer is not None


@dataclass(frozen=True, slots=True)
class _WithoutTimers:
    """A function that is called with elements alone."""

    user_function: Any

    @property
    def on_timer(self) -> Handle | None:
        """None."""
        return None

    @property
    def may_wait_for_clock(self) -> bool:
        """False: it has no timers."""
        return False


@dataclass(frozen=True, slots=True)
class MapEach(_WithoutTimers):
    """A ``MapFunction`` that may use state."""

    kind: str = "keyed map"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """One element for one."""
        call = self.user_function.map
        return (lambda value, _: (call(value),),)


@dataclass(frozen=True, slots=True)
class FlatMapEach(_WithoutTimers):
    """A ``FlatMapFunction`` that may use state."""

    kind: str = "keyed flat_map"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """Any number for one."""
        call = self.user_function.flat_map
        return (lambda value, _: call(value),)


@dataclass(frozen=True, slots=True)
class FilterEach(_WithoutTimers):
    """A ``FilterFunction`` that may use state."""

    kind: str = "keyed filter"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """Itself or nothing for one."""
        call = self.user_function.filter
        return (lambda value, _: (value,) if call(value) else None,)


@dataclass(frozen=True, slots=True)
class MapBoth(_WithoutTimers):
    """A ``CoMapFunction``; as in PyFlink, None is no element."""

    user_function: CoMapFunction
    kind: str = "map of two inputs"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """One element, or none, for one."""
        return _one_or_none(self.user_function.map1), _one_or_none(self.user_function.map2)


@dataclass(frozen=True, slots=True)
class FlatMapBoth(_WithoutTimers):
    """A ``CoFlatMapFunction``."""

    user_function: CoFlatMapFunction
    kind: str = "flat_map of two inputs"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        """Any number for one."""
        first, second = self.user_function.flat_map1, self.user_function.flat_map2
        return (lambda value, _: first(value)), (lambda value, _: second(value))


def _one_or_none(call: Callable[[Any], Any]) -> Handle:
    def handle(value: Any, _: Any) -> Results:
        result = call(value)
        return None if result is None else (result,)

    return handle
