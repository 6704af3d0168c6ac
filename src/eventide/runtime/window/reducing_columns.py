"""Columns reduced by key and pane: one value for each, with no Python object for any of the elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import CompositeTypeInfo, DictTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.errors import DataError
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.elements import Columns, Numbers, columns_of_fields, from_fields, types_of_fields
from eventide.runtime.elements.keys import first_rows, has_nan, numbers_of_columns
from eventide.runtime.elements.ordering import distinct, order_by
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import accumulated, mapped
from eventide.runtime.tracing.folds import (
    AggregateFold,
    FieldFold,
    FieldOfExtreme,
    Fold,
    How,
    aggregate_fold_of,
    fold_of,
)
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.window.contents import Aggregated, Contents, Reduced, TimeArray

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
"""Floating-point numbers, one for each of some elements."""

_MOST = 2**63
_KEY_KINDS = ("STRING", "BYTE", "SHORT", "INT", "LONG", "BOOLEAN")


@dataclass(frozen=True, slots=True)
class ReducedColumns:
    """Elements reduced by key and pane: keys, values and panes side by side, in the order of their first elements.

    ``counts`` says how many elements each pane had.
    """

    keys: list[Any]
    values: list[Any]
    panes: TimeArray
    counts: dict[int, int]


def reduced_columns(
    fold: Fold,
    panes: Panes,
    select: Callable[[Any], Any] | None,
    columns: Columns,
    values: pa.Array | None = None,
) -> ReducedColumns:
    """Reduce elements by key and pane, or the values that were made of each of them.

    Raises:
        NotTraceable: if keys cannot be found or told apart without Python objects.
        Guard: if Python might give something else for some of these elements.
    """
    if columns.timestamps is None or columns.timestamps.null_count:
        raise Guard("an element without a timestamp")
    if columns.values.null_count:
        raise Guard("an element that is None")
    starts = pa.array(panes.start_of(columns.timestamps.to_numpy()))
    keys, kind = (None, None) if select is None else mapped(select, columns, None)
    parts = [] if keys is None or kind is None else _parts(keys, kind)
    if any(map(has_nan, parts)):
        raise Guard("a key that is NaN")
    groups = _FoldedGroups(fold, columns.values if values is None else values, numbers_of_columns([*parts, starts]))
    made, value_type = groups.values()
    return ReducedColumns(
        [None] * len(groups.firsts) if keys is None or kind is None else kind.from_arrow(keys.take(groups.firsts)),
        value_type.from_arrow(made),
        starts.take(groups.firsts).to_numpy(),
        _counted(starts),
    )


def thinned(fold: Fold, panes: Panes, keys: Sequence[pa.Array], columns: Columns) -> tuple[Columns, dict[int, int]]:
    """The elements of each key and pane without which a fold would have another result; they stay in their order.

    What it adds up of the others is added to one that is left. So the fold of what is left is that of all elements,
    also where these come between others.

    Args:
        fold: the fold, which adds up no floating-point numbers: their order would matter.
        panes: the panes.
        keys: the columns of the keys; none if there are no keys.
        columns: the elements.

    Returns:
        The elements, and how many were left out of each pane.

    Raises:
        Guard: if Python might give something else for some of these elements.
    """
    if columns.timestamps is None or columns.timestamps.null_count:
        raise Guard("an element without a timestamp")
    if columns.values.null_count or any(part.null_count for part in keys):
        raise Guard("an element or a key that is None")
    if any(map(has_nan, keys)):
        raise Guard("a key that is NaN")
    starts = pa.array(panes.start_of(columns.timestamps.to_numpy()))
    rows, fields = _FoldedGroups(fold, columns.values, numbers_of_columns([*keys, starts])).thinned()
    counts = _counted(starts)
    for pane, count in _counted(starts.take(rows)).items():
        counts[pane] -= count
    values = from_fields(fields, columns.type_info)
    left = Columns(columns.type_info, values, columns.timestamps.take(rows), columns.sequence.take(rows))
    return left, {pane: count for pane, count in counts.items() if count}


def _counted(starts: pa.Array) -> dict[int, int]:
    distinct, sizes = pc.value_counts(starts).flatten()
    return dict(zip(distinct.to_pylist(), sizes.to_pylist(), strict=True))


def folded(contents: Contents, columns: Columns) -> tuple[Fold, pa.Array]:
    """The fold that a reduce or aggregate function is, and what it takes of each element.

    Raises:
        NotTraceable: if it is none that is known.
        Guard: if Python might give something else for some of these elements.
    """
    if columns.values.null_count:
        raise Guard("an element that is None")
    fold, values = with_values(fold_from_left(contents, columns.type_info), contents.user_function, columns)
    fold.check(_fields_of(values))
    return fold, values


def with_values(found: Fold | AggregateFold, function: Any, columns: Columns) -> tuple[Fold, pa.Array]:
    """The fold that a reduce or aggregate function is, as it was found, and what it takes of each element."""
    if isinstance(found, AggregateFold):
        return found.fold, accumulated(function.add, columns, found.start, found.type_info)
    return found, columns.values


def fold_from_left(contents: Contents, kind: TypeInformation) -> Fold | AggregateFold:
    """The fold that a reduce or aggregate function is of elements of a type, which come in their order.

    Raises:
        NotTraceable: if it is none that is known.
    """
    match contents:
        case Reduced(function):
            return fold_of(function.reduce, kind)
        case Aggregated(function):
            return aggregate_fold_of(function, kind, in_order=True)
    raise NotTraceable("it keeps all elements")


def added_by_key(fold: Fold, keys: list[Any], values: pa.Array, kept: Mapping[Any, list[Any]]) -> dict[Any, list[Any]]:
    """The new folded value of each key in a list of one, after its elements were added in their order.

    Each element has one of the ``keys``, and one of the ``values``, which is what the fold takes of it.

    Raises:
        Guard: if Python might give something else.
    """
    distinct = dict.fromkeys(keys)
    before = {key: kept[key][0] for key in distinct if key in kept and kept[key][0] is not None}
    numbers = {key: number for number, key in enumerate({**before, **distinct})}
    codes = [*range(len(before)), *map(numbers.__getitem__, keys)]
    elements = pa.concat_arrays([_as_they_are(fold.type_info, [*before.values()]).cast(values.type), values])
    made, kind = _FoldedGroups(fold, elements, np.array(codes, np.int64)).values()
    values_made = zip(numbers, kind.from_arrow(made), strict=True)
    return {key: [value, *kept[key][1:]] if key in kept else [value] for key, value in values_made}


def _as_they_are(kind: TypeInformation, values: list[Any]) -> pa.Array:
    """Values as a column, which gives back the same."""
    if not values:
        return pa.array([], kind.arrow_type())
    try:
        column = kind.to_arrow(values)
    except DataError as error:
        raise Guard("contents that columns cannot hold") from error
    floats = [part.fill_null(0).to_numpy() for part in _fields_of(column) if pa.types.is_floating(part.type)]
    if any((np.signbit(each) & (each == 0)).any() for each in floats):
        raise Guard("a sum that is -0.0")
    if not kind.keeps(values) and repr(kind.from_arrow(column)) != repr(values):
        raise Guard("contents that columns would change")
    return column


def _fields_of(column: pa.Array) -> list[pa.Array]:
    return list(column.flatten()) if pa.types.is_struct(column.type) else [column]


def _parts(keys: pa.Array, kind: TypeInformation) -> list[pa.Array]:
    if isinstance(kind, DictTypeInfo) or not all(str(each) in _KEY_KINDS for each in types_of_fields(kind)):
        raise NotTraceable(f"columns do not tell keys of type {kind} apart as Python does")
    parts = columns_of_fields(keys, kind)
    if keys.null_count or any(part.null_count for part in parts):
        raise Guard("a key that is None")
    return parts


class _FoldedGroups:
    """Groups of elements, or of what was made of them, and what a fold makes of each.

    The ``numbers`` of the groups are in the order in which these came first, as `numbers_of_columns` gives them.
    """

    def __init__(self, fold: Fold, elements: pa.Array, numbers: Numbers) -> None:
        self._fold = fold
        self._fields = _fields_of(elements)
        fold.check(self._fields)
        self._numbers = numbers
        self.firsts = pa.array(first_rows(numbers))
        table = {"group": pa.array(numbers)}
        wanted: list[tuple[str, str]] = []
        for place, (how, column) in enumerate(zip(fold.fields, self._fields, strict=True)):
            aggregate = _aggregate(place, how, column)
            if aggregate is not None:
                table[str(place)] = column
                wanted.append((str(place), aggregate))
        found = pa.TableGroupBy(pa.table(table), "group", use_threads=False).aggregate(wanted)
        self._table = found.take(np.argsort(found.column("group").to_numpy()))  # Arrow has an order of its own

    def values(self) -> tuple[pa.Array, TypeInformation]:
        """The reduced values, and their type, in which sums are whole numbers of 64 bits."""
        kind = self._fold.type_info
        if not isinstance(kind, CompositeTypeInfo):
            return self._value(0, kind)
        made = [self._value(place, each) for place, each in enumerate(kind.types)]
        kinds = [each for _, each in made]
        value_type: CompositeTypeInfo = TupleTypeInfo(kinds)
        if isinstance(kind, RowTypeInfo):
            value_type = RowTypeInfo(kinds, kind.names)
        elif isinstance(kind, DictTypeInfo):
            value_type = DictTypeInfo(kinds, kind.names)
        arrays = [array for array, _ in made]
        return pa.StructArray.from_arrays(arrays, fields=list(value_type.arrow_type())), value_type

    def _value(self, place: int, kind: TypeInformation) -> tuple[pa.Array, TypeInformation]:
        how, column = self._fold.fields[place], self._fields[place]
        match how:
            case How.SUM:
                return self._of(f"{place}_sum").cast(pa.int64()), Types.LONG()
            case How.SUM_IN_ORDER:
                return pa.array(self._left_sums(column.to_numpy())), kind
            case FieldOfExtreme(((by, is_highest),)) if by == place:
                return self._of(f"{place}_{'max' if is_highest else 'min'}"), kind
            case _:
                return column.take(pa.array(self._rows_of(how))), kind

    def thinned(self) -> tuple[pa.Array, list[pa.Array]]:
        """The indices of the elements that are chosen for any field, and their fields.

        A sum, and an extreme by which no other field is chosen, lies in the first that is left of its group.
        """
        folds, kinds = self._fold.fields, types_of_fields(self._fold.type_info)
        chosen = {how for place, how in enumerate(folds) if not self._is_made(place)}
        rows = distinct(np.concatenate([*map(self._rows_of, chosen)])) if chosen else self.firsts.to_numpy()
        is_first = np.zeros(len(rows), bool)
        is_first[np.unique(self._numbers[rows], return_index=True)[1]] = True
        groups = pa.array(self._numbers[rows[is_first]])
        fields = []
        for place, (how, column) in enumerate(zip(folds, self._fields, strict=True)):
            field = column.take(pa.array(rows))
            if self._is_made(place):
                made = self._value(place, kinds[place])[0].cast(column.type)
                others = field if how is not How.SUM else pa.array(np.zeros(len(rows), np.int64)).cast(column.type)
                field = pc.replace_with_mask(others, pa.array(is_first), made.take(groups))
            fields.append(field)
        return pa.array(rows), fields

    def _is_made(self, place: int) -> bool:
        """Whether a field is a sum, or its own highest or lowest value, by which no other one is chosen."""
        how, others = self._fold.fields[place], [*self._fold.fields]
        del others[place]
        if not isinstance(how, FieldOfExtreme):
            return how is How.SUM
        orders = [other.by for other in others if isinstance(other, FieldOfExtreme)]
        return [at for at, _ in how.by] == [place] and not any(at == place for by in orders for at, _ in by)

    def _rows_of(self, how: FieldFold) -> Numbers:
        """The index of the element of each group that a field is of."""
        if how is How.FIRST:
            firsts: Numbers = self.firsts.to_numpy()
            return firsts
        if isinstance(how, FieldOfExtreme):
            return self._extremes(how)
        lasts = np.empty(len(self.firsts), np.int64)
        lasts[self._numbers] = np.arange(len(self._numbers))
        return lasts

    def _left_sums(self, numbers: Floats) -> Floats:
        """Sums of floating-point numbers, each added to those before it."""
        firsts = self.firsts.to_numpy()
        sums: Floats = numbers[firsts]
        with np.errstate(all="ignore"):
            np.add.at(sums, np.delete(self._numbers, firsts), np.delete(numbers, firsts))  # one after the other
        return sums

    def _of(self, name: str) -> pa.Array:
        return self._table.column(name).combine_chunks()

    def _extremes(self, extreme: FieldOfExtreme) -> Numbers:
        """The index of the element of each group that is chosen."""
        order = order_by(self._numbers)
        groups = self._numbers[order]
        chosen: Numbers = extreme.choices(self._fields, order, groups)[np.flatnonzero(np.diff(groups, append=-1))]
        return chosen


def _aggregate(place: int, how: FieldFold, column: pa.Array) -> str | None:
    """The aggregate that a field needs, by Arrow's name; None if it is the field of a chosen element.

    Raises:
        Guard: if it might be something else than what Python gives.
    """
    if isinstance(how, FieldOfExtreme) and len(how.by) == 1 and how.by[0][0] == place:
        return "max" if how.by[0][1] else "min"
    if how is not How.SUM:
        return None
    bounds = pc.min_max(column).as_py()
    if max(abs(bounds["min"]), abs(bounds["max"])) * len(column) >= _MOST:
        raise Guard("a sum with more than 64 bits")
    return "sum"
