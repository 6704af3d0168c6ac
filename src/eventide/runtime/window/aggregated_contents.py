"""Aggregates by column in windows that work element by element: the same meaning, at the other speed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.common.types import Row
from eventide.errors import DataError
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation
from eventide.runtime.window.contents import Contents
from eventide.runtime.window.functions import FiringContext, FiringFunction

_MANY_ELEMENTS = 1_024


@dataclass(slots=True)
class _Kept:
    """Elements that wait to be aggregated, after the partial aggregates of those before them."""

    partials: pa.Table | None
    values: list[Any]
    timestamps: list[int | None]

    def __len__(self) -> int:
        """How many elements, or rows of partial aggregates, there are."""
        return len(self.values) + (self.partials is not None)


@dataclass(frozen=True, slots=True)
class AggregatedColumns(Contents):
    """Keeps partial aggregates of the elements of a window, and a few elements until they are worth aggregating."""

    aggregation: Aggregation
    value_type: TypeInformation
    result_types: tuple[TypeInformation, ...]

    def describe(self) -> str:
        """Describe the contents: nothing of the aggregates may change while a checkpoint is in use."""
        return f"AggregatedColumns: {', '.join(map(repr, self.aggregation.aggregates))}"

    def add(self, kept: Any, value: object, timestamp: int | None) -> Any:
        if kept is None:
            return _Kept(None, [value], [timestamp])
        kept.values.append(value)
        kept.timestamps.append(timestamp)
        if len(kept.values) >= _MANY_ELEMENTS:
            return _Kept(self._partials(kept), [], [])
        return kept

    def merge(self, left: Any, right: Any) -> Any:
        """The partial aggregates of both."""
        tables = [self._partials(left), self._partials(right)]
        return _Kept(self.aggregation.merge(pa.concat_tables(tables), []), [], [])

    def view(self, kept: Any) -> Iterable[Any]:
        """The one result: a tuple of what each aggregate gives."""
        arrays = self.aggregation.finish(self._partials(kept))
        return [tuple(kind.from_arrow(array)[0] for kind, array in zip(self.result_types, arrays, strict=True))]

    def _partials(self, kept: _Kept) -> pa.Table:
        tables = [] if kept.partials is None else [kept.partials]
        if kept.values:
            if self.aggregation.uses_timestamps and None in kept.timestamps:
                raise DataError("an aggregate follows event time, but an element has no timestamp")
            values = self.value_type.to_arrow(kept.values)
            fields = dict(zip([field.name for field in values.type], values.flatten(), strict=True))
            columns = {name: fields[name] for name in self.aggregation.input_columns}
            columns[TIMESTAMP] = pa.array(kept.timestamps, pa.int64())
            tables.append(self.aggregation.partial(pa.table(columns), []))
        return tables[0] if len(tables) == 1 else self.aggregation.merge(pa.concat_tables(tables), [])


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnResult(FiringFunction):
    """Makes a row of the key, the window where it has times, and the aggregates."""

    names: tuple[str, ...]
    keys: int
    has_window: bool

    def fire(self, key: Any, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """One row for the one input, which is None if an evictor has left no element: then there is no row."""
        before = () if self.keys == 0 else (key,) if self.keys == 1 else tuple(key)
        if self.has_window:
            before += (context.window(),)
        return [Row.of_fields(self.names, before + results) for results in inputs if results is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRows(FiringFunction):
    """Calls a window function with a row of the aggregates."""

    names: tuple[str, ...]
    function: FiringFunction

    @property
    def has_clear(self) -> bool:
        """Whether the user has written it."""
        return self.function.has_clear

    def fire(self, key: object, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """The function's results for the one input; none where an evictor has left no element."""
        rows = [Row.of_fields(self.names, results) for results in inputs if results is not None]
        return self.function.fire(key, rows, context) if rows else []

    def clear(self, context: FiringContext) -> None:
        self.function.clear(context)
