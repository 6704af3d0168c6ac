"""How each kind of window function is called when a window fires."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from eventide.api.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

if TYPE_CHECKING:
    from eventide.runtime.window.contexts import FiringContext


class FiringFunction(Protocol):
    """Makes the results of one firing, and clears what it kept for a window that is dropped."""

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """The results for one window."""

    def clear(self, context: FiringContext) -> None:
        """Called before the state of a window is dropped."""

    @property
    def user_function(self) -> Any:
        """The user's function, to be opened and closed; None where there is none."""

    @property
    def has_clear(self) -> bool:
        """Whether :meth:`clear` does anything."""


@dataclass(frozen=True, slots=True)
class _Firing:
    function: Any

    @property
    def user_function(self) -> Any:
        """The user's function."""
        return self.function

    @property
    def has_clear(self) -> bool:
        """False: nothing is kept by this kind of function."""
        return False

    def clear(self, context: FiringContext) -> None:
        """Nothing is kept by this kind of function."""


@dataclass(frozen=True, slots=True)
class PassOn:
    """No function on top: what the window holds is the result."""

    user_function: None = None
    has_clear: bool = False

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """The inputs themselves."""
        return inputs

    def clear(self, context: FiringContext) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class Apply(_Firing):
    """A ``WindowFunction``."""

    function: WindowFunction[Any, Any, Any, Any]

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """Call ``apply(key, window, inputs)``."""
        results: Iterable[Any] | None = self.function.apply(key, context.window(), inputs)
        return results


@dataclass(frozen=True, slots=True)
class ApplyAll(_Firing):
    """An ``AllWindowFunction``."""

    function: AllWindowFunction[Any, Any, Any]

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """Call ``apply(window, inputs)``."""
        results: Iterable[Any] | None = self.function.apply(context.window(), inputs)
        return results


@dataclass(frozen=True, slots=True)
class WindowProcess(_Firing):
    """A ``ProcessWindowFunction``."""

    function: ProcessWindowFunction[Any, Any, Any, Any]

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """Call ``process(key, context, elements)``."""
        results: Iterable[Any] | None = self.function.process(key, context, inputs)
        return results

    @property
    def has_clear(self) -> bool:
        """Whether the user has written it."""
        return type(self.function).clear is not ProcessWindowFunction.clear

    def clear(self, context: FiringContext) -> None:
        """Call ``clear(context)``."""
        self.function.clear(context)


@dataclass(frozen=True, slots=True)
class ProcessAll(_Firing):
    """A ``ProcessAllWindowFunction``."""

    function: ProcessAllWindowFunction[Any, Any, Any]

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """Call ``process(context, elements)``."""
        results: Iterable[Any] | None = self.function.process(context, inputs)
        return results

    @property
    def has_clear(self) -> bool:
        """Whether the user has written it."""
        return type(self.function).clear is not ProcessAllWindowFunction.clear

    def clear(self, context: FiringContext) -> None:
        """Call ``clear(context)``."""
        self.function.clear(context)
