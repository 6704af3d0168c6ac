"""Tables of operators on columns, with the key group of each row, and from there to the state of another subtask."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MAX_MS
from eventide.pickling.pickles import is_pickle
from eventide.runtime.columnar.layout import OnColumns, constant, key_names, slices_by
from eventide.runtime.columnar.stores import KeyedTable
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.elements.keys import groups_of_hashes, hashes_of_columns
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.chunks import StoredChunks
from eventide.runtime.state.extents import HASH, RowStore
from eventide.runtime.tasks.operator_task import OperatorTaskSpec
from eventide.runtime.tasks.task import TaskSpec
from eventide.runtime.window.element_store import ElementTables
from eventide.runtime.window.functions import WindowSpec
from eventide.savepoint.rows import CHUNK, DUE, GROUP, ROW

_BESIDE = (GROUP, ROW, CHUNK, DUE)
_HASHES_AT_ONCE = 65_536
_DIGITS = 19
"""How many digits a 64-bit integer has at most."""

TIMES = "times"
"""The kind of time at which buckets of tables are due."""


def form_of(task: TaskSpec) -> OnColumns | ElementTables | None:
    """The description of the columns that the tables of an operator have; None if it keeps none."""
    spec = task.operator if isinstance(task, OperatorTaskSpec) else None
    if isinstance(spec, WindowSpec):
        return spec.tables
    return spec if isinstance(spec, OnColumns) else None


def of_buckets(store: BucketStore, max_parallelism: int) -> Iterator[pa.Table]:
    """The rows of each bucket, with when the earliest of all buckets is due."""
    found = store.due(TIMES)
    due = MAX_MS if found is None else found
    for table in map(decode_table, store.contents()):
        yield _with_groups(table, max_parallelism).append_column(DUE, constant(due, len(table)))


def of_extents(store: RowStore, max_parallelism: int) -> Iterator[pa.Table]:
    """The rows by key, with when the earliest of all is due."""
    due = store.next_of_others(0)
    hashes = store.others()
    for begin in range(0, len(hashes), _HASHES_AT_ONCE):
        for _, rows in store.read(hashes[begin : begin + _HASHES_AT_ONCE]):
            table = _with_groups(rows.drop_columns([HASH]), max_parallelism)
            yield table.append_column(DUE, constant(MAX_MS if due is None else due, len(table)))
        store.forget()


def of_chunks(store: StoredChunks, max_parallelism: int) -> Iterator[pa.Table]:
    """The rows of each chunk, with its row and its number in that; chunks of objects are left out."""
    for row in store.rows():
        for number, content in enumerate(store.contents(row)):
            if is_pickle(content):
                continue
            table = _with_groups(decode_table(content), max_parallelism)
            lies = table.append_column(ROW, constant(row, len(table)))
            yield lies.append_column(CHUNK, constant(number, len(table)))


def keep(table: pa.Table, backend: Backend) -> None:
    """Put rows into the state of a subtask, which has none of the kind yet; its chunks of objects come before."""
    if DUE in table.column_names:
        due = pc.min(table.column(DUE)).as_py()
        own = table.drop_columns([GROUP, DUE])
        KeyedTable(backend, own.schema, _keys(own)).adopt(own, due)
        return
    store = StoredChunks(backend)
    for row, rows in slices_by(table.drop_columns([GROUP]), ROW):
        by_number = dict(slices_by(rows, CHUNK))
        none = rows.drop_columns([CHUNK]).slice(0, 0)
        before = store.count(row)
        for i in range(max(by_number) + 1):
            chunk = by_number.get(i, none)
            store.put(row, before + i, encode_table(chunk), len(chunk))
    store.flush()


def obstacle(before: pa.Schema, now: pa.Schema, *, may_change: bool, had: Collection[str] | None = None) -> str | None:
    """Why what lies in columns does not fit those of an operator, in words; None if it does.

    ``may_change`` says that the operator keeps fields of its elements, which may come and go. A field that comes is
    null in the rows that there are, so their elements must not have ``had`` it; None if it is not known what they
    had.
    """
    was = {field.name: field.type for field in before if field.name not in _BESIDE}
    becomes = {field.name: field.type for field in now}
    if was.keys() != becomes.keys() and not may_change:
        return f"it stores {', '.join(was)}, and would now store {', '.join(becomes)}"
    lost = [name for name in becomes if name not in was and (had is None or name in had)]
    if may_change and lost:
        return (
            f"it has not stored {', '.join(map(repr, lost))} of its elements, and would give None for that; add these "
            "fields when the job starts on a new checkpoint, or leave them out"
        )
    for name in was.keys() & becomes.keys():
        if not _holds(becomes[name], was[name]):
            return f"the column {name!r} has {was[name]}, and would have {becomes[name]}"
    return None


def widened(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns that an operator keeps: with wider types, null in those that are new."""
    if schema.equals(pa.schema([field for field in table.schema if field.name not in _BESIDE])):
        return table
    columns = {
        field.name: _cast(table.column(field.name), field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    }
    beside = {name: table.column(name) for name in table.column_names if name in _BESIDE}
    return pa.table({**columns, **beside})


def _holds(wider: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a column of a type holds all values of another."""
    if wider == kind:
        return True
    if pa.types.is_integer(kind) and pa.types.is_integer(wider):
        return bool(kind.bit_width <= wider.bit_width)
    if pa.types.is_integer(kind) and pa.types.is_decimal(wider):
        return bool(wider.scale == 0 and wider.precision >= _DIGITS)
    if pa.types.is_floating(kind) and pa.types.is_floating(wider):
        return bool(kind.bit_width <= wider.bit_width)
    if pa.types.is_decimal(kind) and pa.types.is_decimal(wider):
        return bool(kind.scale == wider.scale and kind.precision <= wider.precision)
    if pa.types.is_list(kind) and pa.types.is_list(wider):
        return _holds(wider.value_type, kind.value_type)
    if pa.types.is_map(kind) and pa.types.is_map(wider):
        return _holds(wider.key_type, kind.key_type) and _holds(wider.item_type, kind.item_type)
    if pa.types.is_struct(kind) and pa.types.is_struct(wider):
        types = {field.name: field.type for field in kind}
        return all(field.name not in types or _holds(field.type, types[field.name]) for field in wider)
    return False


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """A column of a type that holds all of its values."""
    if column.type == kind:
        return column
    if not pa.types.is_struct(kind):
        return column.cast(kind)
    column = column.combine_chunks()
    fields = [
        _cast(pa.chunked_array([pc.struct_field(column, field.name)]), field.type)
        if column.type.get_field_index(field.name) >= 0
        else pa.nulls(len(column), field.type)
        for field in kind
    ]
    arrays = [field.combine_chunks() if isinstance(field, pa.ChunkedArray) else field for field in fields]
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=column.is_null())


def _with_groups(table: pa.Table, max_parallelism: int) -> pa.Table:
    keys = _keys(table)
    hashes = hashes_of_columns([table.column(name) for name in keys]) if keys else np.zeros(len(table), np.uint64)
    return table.append_column(GROUP, pa.array(groups_of_hashes(hashes, max_parallelism).astype(np.int32)))


def _keys(table: pa.Table) -> list[str]:
    names = key_names(len(table.column_names))
    return [name for name in names if name in table.column_names]
