"""Window joins and co-groups: windows of what two streams have in common, each element with the side it came on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from eventide.api.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    RuntimeContext,
    WindowFunction,
)
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import no_results

Sided = tuple[int, Any]
"""An element with its side: 0 for the first stream, 1 for the second. Flink: ``TaggedUnion``."""


def apart(elements: Iterable[Sided]) -> tuple[list[Any], list[Any]]:
    """The elements of each side.

    >>> apart([(0, "a"), (1, "b"), (0, "c")])
    (['a', 'c'], ['b'])
    """
    sides: tuple[list[Any], list[Any]] = [], []
    for side, value in elements:
        sides[side].append(value)
    return sides


@dataclass(frozen=True, slots=True)
class OnSide:
    """Puts elements on a side."""

    side: int
    is_bare: ClassVar[bool] = True

    def __call__(self, value: Any) -> Sided:
        """An element of that side."""
        return self.side, value


class KeyOfSide:
    """The key of an element, which each side finds in its own way; it is called what both of its functions are."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any], name: str) -> None:
        self.selects = first, second
        self.__qualname__ = name

    def __call__(self, element: Sided) -> Any:
        """The key of an element."""
        side, value = element
        return self.selects[side](value)


class _OfBothSides(WindowFunction[Any, Any, Any, Any], ABC):
    """Calls a user function with what the two sides have in a window."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.__wrapped__ = function

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's function."""
        self._function.open(runtime_context)

    def close(self) -> None:
        """Close the user's function."""
        self._function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[Sided]) -> Iterable[Any]:
        """Take the sides apart."""
        results = self.results(*apart(inputs))
        return results or no_results(results)

    @abstractmethod
    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """Return the function's results for the two sides."""


class CoGroups(_OfBothSides):
    """Calls a ``CoGroupFunction`` once for each key and window."""

    _function: CoGroupFunction

    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """Return the function's results for both groups."""
        return self._function.co_group(first, second)


class JoinsPairs(_OfBothSides):
    """Calls a ``JoinFunction`` with each pair."""

    _function: JoinFunction

    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any]:
        """One element for each pair."""
        join = self._function.join
        return (join(own(one), own(other)) for one in first for other in second)


class FlatJoinsPairs(_OfBothSides):
    """Calls a ``FlatJoinFunction`` with each pair."""

    _function: FlatJoinFunction

    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any]:
        """Any number of elements for each pair."""
        join = self._function.join
        for one in first:
            for other in second:
                results = join(own(one), own(other))
                yield from results or no_results(results)


class CallableJoin(JoinFunction):
    """A plain function of two elements."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.__dict__.update(join=function, __wrapped__=function)

    def join(self, first: Any, second: Any) -> Any:
        """Return the function's result for two elements."""
        return self.__dict__["join"](first, second)
