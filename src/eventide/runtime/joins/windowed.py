"""Window joins and co-groups: windows of what two streams have in common, each element with the side it came on.

``Selection`` is the result of a join that names fields of either side; such joins run on columns where they can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from eventide.api.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    ProcessJoinFunction,
    RuntimeContext,
    WindowFunction,
)
from eventide.common.column_expression import ColumnExpression
from eventide.common.typeinfo import RowTypeInfo, TypeInformation
from eventide.common.types import Row
from eventide.common.windows import TimeWindow
from eventide.joins import JoinedColumn
from eventide.runtime.columnar.computed_keys import computed_key
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import results_of
from eventide.runtime.tasks.operator import Key

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

    def __call__(self, value: object) -> Sided:
        """An element of that side."""
        return self.side, value


class KeyOfSide:
    """The key of an element, which each side finds in its own way; it is called what both of its functions are."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any], name: str) -> None:
        self.selects = first, second
        self.__qualname__ = name
        if any(isinstance(select, ColumnExpression) for select in self.selects):
            self.of_elements = self._of_elements

    def _of_elements(self, elements: Sequence[Sided]) -> list[Any]:
        """The key of each element, where expressions find those of one side together."""
        keys: list[Any] = [None] * len(elements)
        for side, select in enumerate(self.selects):
            places = [place for place, (of, _) in enumerate(elements) if of == side]
            values = [elements[place][1] for place in places]
            found = select.of_elements(values) if isinstance(select, ColumnExpression) else [*map(select, values)]
            for place, key in zip(places, found, strict=True):
                keys[place] = key
        return keys

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

    def apply(self, key: object, window: object, inputs: Iterable[Sided]) -> Iterable[Any]:
        """Take the sides apart."""
        return results_of(self.results(*apart(inputs)))

    @abstractmethod
    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """Return the function's results for the two sides."""


class CoGroups(_OfBothSides):
    """Calls a ``CoGroupFunction`` once for each key and window."""

    _function: CoGroupFunction

    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """Return the function's results for both groups."""
        return self._function.co_group(first, second)


class OfPairs(_OfBothSides, ABC):
    """Calls a function with each pair; ``obstacle`` says why the join does not run on columns."""

    obstacle: str | None = None


class JoinsPairs(OfPairs):
    """Calls a ``JoinFunction`` with each pair."""

    _function: JoinFunction

    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any]:
        """One element for each pair."""
        join = self._function.join
        return (join(own(one), own(other)) for one in first for other in second)


class FlatJoinsPairs(OfPairs):
    """Calls a ``FlatJoinFunction`` with each pair."""

    _function: FlatJoinFunction

    def results(self, first: list[Any], second: list[Any]) -> Iterable[Any]:
        """Any number of elements for each pair."""
        join = self._function.join
        for one in first:
            for other in second:
                yield from results_of(join(own(one), own(other)))


class CallableJoin(JoinFunction):
    """A plain function of two elements."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.__dict__.update(join=function, __wrapped__=function)

    def join(self, first: object, second: object) -> Any:
        """Return the function's result for two elements."""
        return self.__dict__["join"](first, second)


class CallableProcessJoin(ProcessJoinFunction):
    """A plain function of two elements and the context of their times."""

    def __init__(self, function: Callable[[Any, Any, Any], Any]) -> None:
        self.__dict__.update(process_element=function, __wrapped__=function)

    def process_element(self, left: object, right: object, ctx: ProcessJoinFunction.Context) -> Any:
        """Return the function's results for two elements."""
        return self.__dict__["process_element"](left, right, ctx)


KEEPS = {"inner": (False, False), "left": (True, False), "right": (False, True), "full": (True, True)}
"""By the kind of join, which sides keep elements that meet none."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some fields of two elements, and their window.

    ``places`` say where each field is found in a Python element: by name in a row, by number in a tuple.
    """

    columns: tuple[JoinedColumn, ...]
    places: tuple[Any, ...]
    type_info: RowTypeInfo

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields of the results."""
        return tuple(column.output_name for column in self.columns)

    @property
    def has_window(self) -> bool:
        """Whether the window is one of the fields of the results."""
        return any(column.side is None for column in self.columns)

    def of_side(self, side: int) -> tuple[str, ...]:
        """The fields that are used of one side, each once."""
        return tuple(dict.fromkeys(column.column for column in self.columns if column.side == side))

    def row(self, sides: Sequence[Any], window: Any = None) -> Row:
        """Return the result for two elements, of which one may be None."""
        values = []
        for column, place in zip(self.columns, self.places, strict=True):
            element = window if column.side is None else sides[column.side]
            values.append(element if column.side is None or element is None else element[place])
        return Row.of_fields(self.names, values)

    def array(self, sides: Sequence[pa.Table], at: Sequence[pa.Array], windows: pa.Array | None = None) -> pa.Array:
        """Return the results for rows of two tables, given by their indices; one of a pair may be null."""
        fields = list(self.type_info.arrow_type())
        arrays = []
        for column, field in zip(self.columns, fields, strict=True):
            if column.side is None:
                arrays.append(windows)
            else:
                found = sides[column.side].column(column.column).take(at[column.side]).combine_chunks()
                arrays.append(found.cast(field.type))
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def __repr__(self) -> str:
        return ", ".join(map(repr, self.columns))


def obstacle_of_keys(keys: Sequence[Key | None], types: Sequence[TypeInformation]) -> str | None:
    """Why keys of elements of these types cannot be compared on columns, and what to change; None if they can."""
    kinds: dict[str, None] = {}
    for key, kind in zip(keys, types, strict=True):
        computed = computed_key(key, kind)
        if isinstance(computed, str):
            return computed
        if key is not None:
            kinds[str(key.type_info if computed is None else computed.kind)] = None
    if len(kinds) > 1:
        return f"the keys of both sides have different types, {' and '.join(kinds)}; declare the same for both"
    return None


def obstacle_of_fields(selection: Selection) -> str | None:
    """Why fields cannot be selected on columns, and what to change; None if they can."""
    for column, kind in zip(selection.columns, selection.type_info.field_types, strict=True):
        if kind.has_exponents:
            return f"{column!r} is a BIG_DEC, which keeps its digits in Python alone; declare its precision and scale"
        if column.side is not None and column.column.startswith("__"):
            return f"{column!r} has a name as tables have for themselves; give it one that does not begin with __"
    return None


class SelectsOfPair(ProcessJoinFunction):
    """An interval join's selection, where it runs element by element."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def process_element(self, left: object, right: object, ctx: ProcessJoinFunction.Context) -> Iterator[Row]:
        """One row for a pair."""
        yield self._selection.row((left, right))


class SelectsOfWindow(WindowFunction[Any, Any, Any, Any]):
    """A window join's selection, where it runs element by element; ``obstacle`` says why it does."""

    def __init__(self, selection: Selection, how: str, obstacle: str) -> None:
        self._selection = selection
        self._keeps = KEEPS[how]
        self.obstacle = obstacle

    def apply(self, key: object, window: TimeWindow, inputs: Iterable[Sided]) -> Iterator[Row]:
        """One row for each pair, and for each element of a side that is kept where the other has none."""
        first, second = apart(inputs)
        if self._keeps[0] and not second:
            second = [None]
        if self._keeps[1] and not first:
            first = [None]
        row = self._selection.row
        return (row(pair, window) for pair in ((one, other) for one in first for other in second))
