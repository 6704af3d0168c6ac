"""Columns reduced by key and pane: one value for each, with no Python object for any of the elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.elements import Columns, Numbers
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import mapped
from eventide.runtime.tracing.folds import Extreme, FieldFold, Fold, How
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.window.contents import Times

_MOST = 2**63
_KEY_KINDS = ("STRING", "BYTE", "SHORT", "INT", "LONG", "BOOLEAN")


@dataclass(frozen=True, slots=True)
class ReducedColumns:
    """What elements became: keys, values and panes side by side, in the order in which each came first.

    ``counts`` says how many elements each pane had.
    """

    keys: list[Any]
    values: list[Any]
    panes: Times
    counts: dict[int, int]


def reduced_columns(
    fold: Fold, panes: Panes, select: Callable[[Any], Any] | None, key_type: TypeInformation, columns: Columns
) -> ReducedColumns:
    """Reduce elements by key and pane.

    Raises:
        NotTraceable: if keys cannot be found or told apart without Python objects.
        Guard: if Python might give something else for some of these elements.
    """
    if columns.timestamps is None or columns.timestamps.null_count:
        raise Guard("an element without a timestamp")
    if columns.values.null_count:
        raise Guard("an element that is None")
    starts = panes.start_of(columns.timestamps.to_numpy())
    keys, kind = (None, None) if select is None else mapped(select, columns, key_type)
    groups = _groups(starts, [] if keys is None else _parts(keys, kind))
    firsts = groups.firsts()
    values, value_type = _values(fold, columns, groups)
    distinct, sizes = np.unique(starts, return_counts=True)
    return ReducedColumns(
        [None] * len(firsts) if keys is None or kind is None else kind.from_arrow(keys.take(pa.array(firsts))),
        value_type.from_arrow(values),
        starts[firsts],
        dict(zip(distinct.tolist(), sizes.tolist(), strict=True)),
    )


def _parts(keys: pa.Array, kind: TypeInformation | None) -> list[pa.Array]:
    kinds = kind.types if isinstance(kind, CompositeTypeInfo) else (kind,)
    if not all(str(each) in _KEY_KINDS for each in kinds):
        raise NotTraceable(f"columns do not tell keys of type {kind} apart as Python does")
    parts = keys.flatten() if isinstance(kind, CompositeTypeInfo) else [keys]
    if keys.null_count or any(part.null_count for part in parts):
        raise Guard("a key that is None")
    return list(parts)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The group of each element, by a number, and the numbers of the groups in the order in which they came first."""

    of_each: Numbers
    table: pa.Table

    def firsts(self) -> Numbers:
        """The index of the first element of each group."""
        return self._column("index_min")

    def lasts(self) -> Numbers:
        """The index of the last element of each group."""
        return self._column("index_max")

    def _column(self, name: str) -> Numbers:
        found: Numbers = self.table.column(name).to_numpy()
        return found

    def aggregated(self, column: pa.Array, how: str) -> pa.Array:
        """An aggregate of a column for each group."""
        table = pa.table({"group": pa.array(self.of_each), "value": column})
        found = pa.TableGroupBy(table, "group", use_threads=False).aggregate([("value", how)])
        return found.column(f"value_{how}").combine_chunks()

    def extremes(self, column: pa.Array, extreme: Extreme) -> Numbers:
        """The index of the element of each group that has the extreme value."""
        numbers = column.to_numpy()
        order = np.lexsort((numbers, self.of_each))  # stable: equal ones stay in the order of arrival
        groups, ordered = self.of_each[order], numbers[order]
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        ends = np.append(begins[1:], len(order)) - 1
        if extreme.is_highest != extreme.last_of_equal:
            # The far end of those that are equal: where their run begins, or where it ends.
            changes = (np.diff(groups, prepend=-1) != 0) | (np.diff(ordered, prepend=ordered[:1]) != 0)
            runs = np.cumsum(changes) - 1
            starts = np.flatnonzero(changes)
            at = starts[runs[ends]] if extreme.is_highest else np.append(starts[1:], len(order))[runs[begins]] - 1
        else:
            at = ends if extreme.is_highest else begins
        of_group = np.empty(len(begins), np.int64)
        of_group[groups[at]] = order[at]
        return of_group


def _groups(starts: Times, keys: list[pa.Array]) -> _Groups:
    codes = np.zeros(len(starts), np.int64)
    for part in [*keys, pa.array(starts)]:
        encoded = pc.dictionary_encode(part)
        if (int(codes.max(initial=0)) + 1) * max(1, len(encoded.dictionary)) >= _MOST:
            raise Guard("more keys than can be numbered")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    numbered = pc.dictionary_encode(pa.array(codes)).indices.to_numpy().astype(np.int64)
    table = pa.table({"group": pa.array(numbered), "index": pa.array(np.arange(len(starts)))})
    found = pa.TableGroupBy(table, "group", use_threads=False).aggregate([("index", "min"), ("index", "max")])
    return _Groups(numbered, found)


def _values(fold: Fold, columns: Columns, groups: _Groups) -> tuple[pa.Array, TypeInformation]:
    """The reduced values, and their type, in which sums are whole numbers of 64 bits."""
    kind = fold.type_info
    if not isinstance(kind, CompositeTypeInfo):
        return _field(fold.fields[0], columns.values, kind, groups, [columns.values])
    fields = columns.values.flatten()
    made = [
        _field(how, column, each, groups, fields)
        for how, column, each in zip(fold.fields, fields, kind.types, strict=True)
    ]
    kinds = [each for _, each in made]
    value_type = RowTypeInfo(kinds, kind.names) if isinstance(kind, RowTypeInfo) else TupleTypeInfo(kinds)
    arrays = [array for array, _ in made]
    return pa.StructArray.from_arrays(arrays, fields=list(value_type.arrow_type())), value_type


def _field(
    how: FieldFold, column: pa.Array, kind: TypeInformation, groups: _Groups, fields: list[pa.Array]
) -> tuple[pa.Array, TypeInformation]:
    match how:
        case How.FIRST:
            return column.take(pa.array(groups.firsts())), kind
        case How.LAST:
            return column.take(pa.array(groups.lasts())), kind
        case How.SUM:
            return _sums(column, groups), Types.LONG()
        case Extreme():
            return _chosen(how, column, groups, fields), kind


def _sums(column: pa.Array, groups: _Groups) -> pa.Array:
    if column.null_count:
        raise Guard("a field that is None, and is added up")
    numbers = column.to_numpy()
    if max(abs(int(numbers.min())), abs(int(numbers.max()))) * len(numbers) >= _MOST:
        raise Guard("a sum with more than 64 bits")
    return groups.aggregated(column, "sum").cast(pa.int64())


def _chosen(how: Extreme, column: pa.Array, groups: _Groups, fields: list[pa.Array]) -> pa.Array:
    by = fields[how.by]
    if by.null_count:
        raise Guard("a field that is None, and is compared")
    if column is by:
        return groups.aggregated(column, "max" if how.is_highest else "min")
    if not pa.types.is_integer(by.type):
        raise NotTraceable("it chooses by text, which columns do not")
    return column.take(pa.array(groups.extremes(by, how)))
