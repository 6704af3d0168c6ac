"""Elements of fixed windows as rows of Arrow, from when they come until their window fires.

``ElementTables`` says how they lie in tables, and ``AggregateTables`` how their aggregates do. ``ElementStore`` keeps
them, and ``ElementsByKey`` makes Python objects of those of a window, some keys at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation, Types
from eventide.pickling.pickles import is_pickle
from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP, Aggregation
from eventide.runtime.columnar.layout import VALUE, key_names, key_numbers
from eventide.runtime.columnar.partitioner import value_columns
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.elements.elements import (
    Elements,
    columns_of_fields,
    from_fields,
    is_small,
    types_of_fields,
    without_collection,
)
from eventide.runtime.elements.keys import first_rows, groups_of_hashes, hashes_of_parts
from eventide.runtime.elements.ordering import order_by
from eventide.runtime.state.backend import Backend
from eventide.runtime.window.reducing import Indices, by_pane_start, together
from eventide.runtime.window.window_store import RowsOfWindows, decode_windows

FIRST, LAST = "__first", "__last"
"""int64: the first and the last window that an element is in, of those in its row of chunks."""

_PATIENCE = 8
_OBJECTS_AT_ONCE = 8_192

RowsOfPanes: TypeAlias = Sequence[tuple[range, Indices | None]]
"""Elements by the windows that they are in: these, by their numbers, and the indices (None: of all elements)."""


@dataclass(frozen=True, slots=True)
class ElementTables:
    """Form of the tables that elements of windows lie in: the columns of their key, and the elements themselves.

    The key consists of the fields ``key_columns``, or it comes beside the elements; without a ``key_type`` there is
    none. Windows that lie together, ``in_row`` of them, share an element, which says in which of them it is.

    It is the form of chunks, too. Those of earlier versions are pickles, which are read all the same.
    """

    value_type: TypeInformation
    key_type: TypeInformation | None = None
    key_columns: tuple[str, ...] = ()
    in_row: int = 1
    patience: int = _PATIENCE

    @property
    def key_names(self) -> list[str]:
        """The columns of the key."""
        return [] if self.key_type is None else key_names(len(types_of_fields(self.key_type)))

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables that are stored."""
        empty = self.of_lists([], [])
        return (empty if self.in_row == 1 else in_windows(empty, 0, 0)).schema

    def of(self, elements: Elements) -> pa.Table:
        """Elements as a table, in their order."""
        values = elements.as_columns(self.value_type).values
        if self.key_columns and not values.null_count:
            return pa.table({**value_columns(values, self.key_columns, ()), VALUE: values})
        return pa.table({**self._columns_of_keys(elements.keys), VALUE: values})

    def of_lists(self, keys: Sequence[Any], values: Sequence[Any]) -> pa.Table:
        """Elements, side by side with their keys, as a table."""
        return pa.table({**self._columns_of_keys(keys), VALUE: self.value_type.to_arrow(values)})

    def keys_in(self, rows: pa.Table) -> list[Any]:
        """The key of each row, as functions see it."""
        if self.key_type is None:
            return [None] * len(rows)
        columns = [rows.column(name).combine_chunks() for name in self.key_names]
        keys: list[Any] = self.key_type.from_arrow(from_fields(columns, self.key_type))
        return keys

    def _columns_of_keys(self, keys: Sequence[Any]) -> dict[str, pa.Array]:
        if self.key_type is None:
            return {}
        columns = columns_of_fields(self.key_type.to_arrow(keys), self.key_type)
        return dict(zip(self.key_names, columns, strict=True))

    @property
    def shown_type(self) -> TypeInformation:
        """The type of what functions see."""
        return self.value_type

    def reduced(self, rows: pa.Table) -> pa.Table:
        """All rows: each of them is kept."""
        return rows

    def shown(self, rows: pa.Table) -> pa.Table:
        """The rows of a window as functions see them: in the column VALUE, beside the columns of the key."""
        return rows

    def size(self, chunk: pa.Table) -> int:
        """How many elements there are."""
        return len(chunk)

    def merged(self, chunks: list[pa.Table], *, from_base: bool) -> pa.Table:
        """All elements of the chunks, in the order of arrival."""
        together = self.reduced(pa.concat_tables(chunks))
        return together.combine_chunks() if is_small(together.nbytes) else together

    def encode(self, chunk: pa.Table) -> bytes:
        """An Arrow IPC stream."""
        return encode_table(chunk)

    def decode(self, data: bytes) -> pa.Table:
        """The inverse of :meth:`encode`."""
        return self._of_pickle(data) if is_pickle(data) else decode_table(data)

    def _of_pickle(self, data: bytes) -> pa.Table:
        tables = [self.stored_schema("").empty_table()]
        for window, by_key in decode_windows(data).items():
            keys = [key for key, elements in by_key.items() for _ in elements]
            rows = self.of_lists(keys, list(chain.from_iterable(by_key.values())))
            tables.append(rows if self.in_row == 1 else in_windows(rows, window, window))
        return pa.concat_tables(tables)


@dataclass(frozen=True, slots=True)
class AggregateTables(ElementTables):
    """Form of tables of partial aggregates, for functions that see a tuple of results in place of elements."""

    aggregation: Aggregation = field(kw_only=True)
    result_types: tuple[TypeInformation, ...] = field(kw_only=True)

    @property
    def shown_type(self) -> TypeInformation:
        """A tuple of the results."""
        return Types.TUPLE(list(self.result_types))

    def stored_schema(self, part: str) -> pa.Schema:
        by = ElementTables.stored_schema(self, part).remove(len(self.key_names))  # all but the elements
        return pa.schema([*by, *self.aggregation.partial_fields])

    def of(self, elements: Elements) -> pa.Table:
        """The columns of elements that are aggregated, in their order."""
        rows = ElementTables.of(self, elements)
        values = rows.column(VALUE).combine_chunks()
        fields = value_columns(values, (), self.aggregation.input_columns)
        times = pa.array(elements.timestamps, pa.int64()) if elements.columns is None else elements.columns.timestamps
        return pa.table({**{name: rows.column(name) for name in self.key_names}, **fields, TIMESTAMP: times})

    def reduced(self, rows: pa.Table) -> pa.Table:
        """Partial aggregates of rows, or of partial aggregates of them."""
        if ROWS not in rows.column_names:
            return self.aggregation.partial(rows, [*self.key_names, *_windows_in(rows)])
        return self.aggregation.merge(rows, [*self.key_names, *_windows_in(rows)])

    def shown(self, rows: pa.Table) -> pa.Table:
        """The results, one row for each key."""
        whole = self.aggregation.merge(rows, self.key_names)
        fields = list(self.shown_type.arrow_type())
        results = [array.cast(each.type) for array, each in zip(self.aggregation.finish(whole), fields, strict=True)]
        values = pa.StructArray.from_arrays(results, fields=fields)
        return pa.table({**{name: whole.column(name) for name in self.key_names}, VALUE: values})


def _windows_in(rows: pa.Table) -> list[str]:
    return [name for name in (FIRST, LAST) if name in rows.column_names]


def in_windows(rows: pa.Table, first: object, last: object) -> pa.Table:
    """Rows that say which windows they are in: from one number to another."""
    for name, number in ((FIRST, first), (LAST, last)):
        rows = rows.append_column(name, pa.array(np.broadcast_to(np.asarray(number, np.int64), len(rows))))
    return rows


class ElementsByKey(Mapping[Any, list[Any]]):
    """The elements of a window by key, with Python objects for those of some keys at a time.

    Keys come in the order of their key groups, and in a group in that of their first elements. It is quickest to ask
    for elements in this order.
    """

    def __init__(self, form: ElementTables, rows: pa.Table, max_parallelism: int) -> None:
        self._form = form
        values = rows.column(VALUE)
        # An array of Arrow's holds at most 2 GB of text: beyond that, all objects are made at once.
        self._values = values.combine_chunks() if is_small(values.nbytes) else self._objects(values.chunks)
        numbers = key_numbers(rows, form.key_names)
        firsts = first_rows(numbers)
        order, keys = np.arange(len(firsts)), [None] * len(firsts)
        if form.key_names:
            of_keys = rows.select(form.key_names).take(firsts)
            groups = groups_of_hashes(hashes_of_parts(of_keys.columns, form.key_type), max_parallelism)
            order = np.argsort(groups, kind="stable")
            keys = form.keys_in(of_keys.take(order))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        self._order = order_by(rank[numbers])
        self._bounds = np.concatenate(([0], np.cumsum(np.bincount(numbers)[order]))).tolist()
        self._places = dict(zip(keys, range(len(keys)), strict=True))
        self._made: list[Any] = []
        self._begin = 0

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __getitem__(self, key: Any) -> list[Any]:
        """Make the elements of a key, and of some keys after it, if they are not there yet."""
        place = self._places[key]
        begin, end = self._bounds[place : place + 2]
        if not self._begin <= begin <= end <= self._begin + len(self._made):
            until = max(end, min(begin + _OBJECTS_AT_ONCE, len(self._order)))
            self._made, self._begin = self._at(self._order[begin:until]), begin
        return self._made[begin - self._begin : end - self._begin]

    def _at(self, indices: Indices) -> list[Any]:
        if isinstance(self._values, list):
            return [self._values[i] for i in indices.tolist()]
        return self._objects([self._values.take(indices)])

    def _objects(self, arrays: Sequence[pa.Array]) -> list[Any]:
        with without_collection():
            return list(chain.from_iterable(map(self._form.shown_type.from_arrow, arrays)))


class ElementStore(RowsOfWindows[pa.Table, list[pa.Table]]):
    """The elements of fixed windows, which are known by their number: later windows have higher ones.

    What a micro-batch brings and fires is never stored.
    """

    def __init__(self, backend: Backend, form: ElementTables, max_parallelism: int) -> None:
        super().__init__(backend, form, form.in_row)
        self.tables = form
        self._max_parallelism = max_parallelism
        self._late: dict[int, tuple[ElementsByKey, dict[Any, list[Any]]]] = {}
        self._late_elements: list[tuple[int, Any, Any]] = []

    def add(self, panes: RowsOfPanes, rows: pa.Table) -> None:
        """Add elements to their windows, in their order."""
        by_row: defaultdict[int, list[tuple[range, Indices | None]]] = defaultdict(list)
        for windows, indices in panes:
            for row in range(windows.start // self._in_row, (windows.stop - 1) // self._in_row + 1):
                first = row * self._in_row
                here = range(max(windows.start, first), min(windows.stop, first + self._in_row))
                by_row[row].append((here, indices))
        for row, groups in by_row.items():
            self._added.setdefault(row, []).append(self.tables.reduced(self._part(rows, groups)))

    def _part(self, rows: pa.Table, groups: RowsOfPanes) -> pa.Table:
        """The rows of some groups, in their order."""
        if self._in_row == 1:
            indices = together([indices for _, indices in groups])
            return rows if indices is None else rows.take(indices)
        at = [np.arange(len(rows)) if indices is None else indices for _, indices in groups]
        indices = np.concatenate(at)
        order = np.argsort(indices)
        bounds = np.repeat([(of.start, of.stop - 1) for of, _ in groups], [len(one) for one in at], axis=0)[order]
        return in_windows(rows.take(indices[order]), bounds[:, 0], bounds[:, 1])

    def add_late(self, window: int, key: object, value: object, timestamp: int) -> list[Any]:
        """Add one element to a window that has fired already, and return what the window now has of its key."""
        if window not in self._late:
            self._late[window] = self.open(window), {}
        before, lists = self._late[window]
        if key not in lists:
            lists[key] = before.get(key, [])
        lists[key].append(value)
        self._late_elements.append((window, key, value))
        return lists[key]

    def open(self, window: int) -> ElementsByKey:
        """Return the elements of a window by key: objects of their own, which are not what is stored."""
        self._add_late_elements()
        row = window // self._in_row
        rows = self._chunks_of(row)
        rows = pa.concat_tables([*rows, *self._added.get(row, ())] or [self.tables.stored_schema("").empty_table()])
        if self._in_row > 1:
            first, last = (rows.column(name).to_numpy() for name in (FIRST, LAST))
            rows = rows.filter(pa.array((first <= window) & (window <= last)))
        return ElementsByKey(self.tables, self.tables.shown(rows), self._max_parallelism)

    def windows(self, first: int, last: int) -> list[int]:
        self._add_late_elements()
        return super().windows(first, last)

    def drop_until(self, window: int) -> None:
        self._add_late_elements()
        super().drop_until(window)

    def take(self, window: int) -> ElementsByKey:
        """Return the elements of a window for the last time."""
        return self.open(window)

    def flush(self) -> None:
        self._add_late_elements()
        for row, tables in self._added.items():
            self._chunks.append(row, pa.concat_tables(tables))
        self._added.clear()
        self._late.clear()
        super().flush()

    def _add_late_elements(self) -> None:
        """Put late elements, of which functions have seen copies, among the rows that were added."""
        if not self._late_elements:
            return
        windows, keys, values = zip(*self._late_elements, strict=True)
        self._late_elements.clear()
        rows = in_windows(self.tables.of_lists(keys, values), windows, windows)
        for row, indices in by_pane_start(np.asarray(windows) // self._in_row):
            part = rows if indices is None else rows.take(indices)
            self._added.setdefault(row, []).append(part if self._in_row > 1 else part.drop_columns([FIRST, LAST]))
