"""Result of a join on columns for two elements that meet: some fields of either, and their window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.api.functions import ProcessJoinFunction, WindowFunction
from eventide.common.time_window import TimeWindow
from eventide.common.typeinfo import RowTypeInfo
from eventide.common.types import Row
from eventide.joins import JoinedColumn
from eventide.runtime.joins.windowed import Sided, apart
from eventide.runtime.tasks.operator import Key

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
        """The names of the fields that come out."""
        return tuple(column.output_name for column in self.columns)

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


def obstacle_of_fields(selection: Selection, keys: Sequence[Key | None]) -> str | None:
    """Why fields cannot be selected on columns, and what to change; None if they can."""
    if not all(key is not None and key.columns for key in keys):
        return "a key is a Python function; name fields instead"
    for key in keys:
        if key is not None and not key.is_columnar:
            return f"columns cannot tell keys of type {key.type_info} apart; name plain fields"
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

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Row]:
        """One row for a pair."""
        yield self._selection.row((left, right))


class SelectsOfWindow(WindowFunction[Any, Any, Any, Any]):
    """A window join's selection, where it runs element by element; ``obstacle`` says why it does."""

    def __init__(self, selection: Selection, how: str, obstacle: str) -> None:
        self._selection = selection
        self._keeps = KEEPS[how]
        self.obstacle = obstacle

    def apply(self, key: Any, window: TimeWindow, inputs: Iterable[Sided]) -> Iterator[Row]:
        """One row for each pair, and for each element of a side that is kept where the other has none."""
        first, second = apart(inputs)
        if self._keeps[0] and not second:
            second = [None]
        if self._keeps[1] and not first:
            first = [None]
        row = self._selection.row
        return (row(pair, window) for pair in ((one, other) for one in first for other in second))
