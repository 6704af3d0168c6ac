"""Rows of a `RowStore` that have a key, its values by name, and its timers: their form, and the same as buckets.

The columns of a row are those of a page, and the schema says which types they have. Timers follow, where any of the
rows has some. Operators on objects, tools and savepoints get buckets of it: one way from columns to objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import Types
from eventide.common.typeinfo.widening import conversion, type_of_text
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    KINDS_OF_TIME,
    Bucket,
    Page,
    PageTypes,
    Timers,
    bucket_of_page,
    encode_page,
    text_of_types,
    types_of_text,
)
from eventide.runtime.state.declared import DECLARED, types_of
from eventide.runtime.state.extents import EXTENTS, RowStore
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import NUMBERS, PLACES, Numbers, Rows, TimerColumns, rows_of_columns

ANYTHING = Types.PICKLED_BYTE_ARRAY()
"""The type of values that lie in their rows as pickles."""

NUMBERS_OF_TIMERS = "numbers of timers"
"""Under this, the user's values of a store have the highest number of a timer of each kind."""

_TYPES = b"types"
"""Under this, the schema of rows has the types of their keys and values."""

_TIMERS = [f"__timers{kind}" for kind in range(KINDS_OF_TIME)]
_TIMER = pa.struct([pa.field("time", pa.int64()), pa.field("number", pa.int64())])
_HASHES_AT_ONCE = 65_536


def described(types: PageTypes, rows: pa.Table, timers: Sequence[pa.Array] = ()) -> pa.Table:
    """Rows as they are stored: with their types, and their timers of each kind, if there are any."""
    for name, of_kind in zip(_TIMERS, timers, strict=False):
        rows = rows.append_column(name, of_kind)
    return rows.replace_schema_metadata({_TYPES: text_of_types(types)})


def page_of(rows: pa.Table) -> Page:
    """Rows as they were stored as a page, whose buffers are theirs."""
    types, _ = types_of_text(rows.schema.metadata[_TYPES])
    timers: Timers = tuple(
        timer_columns(*_timers_of(rows.column(name).combine_chunks())) if name in rows.column_names else None
        for name in _TIMERS
    )
    columns = [rows.column(i).combine_chunks() for i in range(len(types.schema))]
    return Page(types, pa.RecordBatch.from_arrays(columns, schema=types.schema), timers)


def content_of_rows(rows: pa.Table) -> bytes | None:
    """The content of a bucket that rows of keys would have; None for rows of another kind."""
    return None if _TYPES not in (rows.schema.metadata or {}) else encode_page(page_of(rows))


def buckets_of(backend: Backend) -> Iterator[Bucket]:
    """Give all keys that lie in extents, with values of the types that were declared last, as objects."""
    declared = types_of(backend.get(DECLARED) or b"{}")
    store = RowStore(backend)
    hashes = store.others()
    for begin in range(0, len(hashes), _HASHES_AT_ONCE):
        for _, rows in store.read(hashes[begin : begin + _HASHES_AT_ONCE]):
            page = page_of(rows)
            bucket = bucket_of_page(page)
            for name, kind in page.types.values:
                text = declared.get(name, str(kind))
                if not kind.is_pickled and text not in (str(kind), str(ANYTHING)):
                    convert = conversion(kind, type_of_text(text))
                    owners, are_pickled, held = bucket.values.get(name, (None, False, []))
                    values = map(loads, held) if are_pickled else held
                    if convert is not None and held:
                        bucket.values[name] = (owners, True, [dumps(convert(value)) for value in values])
            yield bucket
        store.forget()


def has_keys(backend: Backend) -> bool:
    """Whether rows of keys lie in extents of a backend."""
    return backend.get(EXTENTS) is not None and _TYPES in (RowStore(backend).schema.metadata or {})


def move_to_buckets(backend: Backend, keyed: KeyedState) -> None:
    """Have keyed state take over all keys that lie in extents of its backend, of which none are left."""
    if has_keys(backend):
        store = RowStore(backend)
        for bucket in buckets_of(backend):
            keyed.adopt(bucket, max(store.user.get(NUMBERS_OF_TIMERS, [0])))
        store.delete_all()


def lists_of_timers(timers: Rows, count: int) -> pa.Array:
    """Timers of a kind as a column of `count` rows; they come in the order of their rows."""
    owners, times, numbers = timers
    offsets = np.searchsorted(owners, np.arange(count + 1)).astype(np.int32)
    values = pa.StructArray.from_arrays([pa.array(times), pa.array(numbers)], fields=list(_TIMER))
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def timer_columns(places: Numbers, times: Numbers, numbers: Numbers) -> TimerColumns | None:
    """Timers without a namespace, given the places of their keys; None if there are none."""
    if not len(places):
        return None
    return places.astype(PLACES).tobytes(), times.astype(NUMBERS).tobytes(), numbers.astype(NUMBERS).tobytes(), None


def rows_of_timers(columns: TimerColumns | None) -> Rows:
    """The inverse of :func:`timer_columns`."""
    empty = np.zeros(0, np.int64)
    return (empty, empty, empty) if columns is None else rows_of_columns(columns)


def _timers_of(lists: pa.Array) -> Rows:
    """The timers of a column of lists."""
    counts = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    times, numbers = (part.to_numpy(zero_copy_only=False) for part in lists.flatten().flatten())
    return np.repeat(np.arange(len(lists)), counts), times, numbers
