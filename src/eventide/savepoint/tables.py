"""What operators on columns keep, with the key group of each row, and from there to the state of another subtask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common._ms import MAX_MS
from eventide.runtime.columnar.keyed_table import KeyedTable
from eventide.runtime.columnar.layout import constant, key_names, slices_by
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.elements.key_columns import hashes_of_columns
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.chunks import StoredChunks
from eventide.savepoint.rows import CHUNK, DUE, GROUP, ROW

TIMES = "times"
"""The kind of time at which buckets of tables are due."""


def of_buckets(store: BucketStore, max_parallelism: int) -> Iterator[pa.Table]:
    """The rows of each bucket, with when the earliest of all buckets is due."""
    due = min((ms for _, ms in store.schedules[0].earliest), default=MAX_MS)
    for content in store.get_many(range(store.count)).values():
        if content is not None:
            table = decode_table(content)
            yield _with_groups(table, max_parallelism).append_column(DUE, constant(due, len(table)))


def of_chunks(store: StoredChunks, max_parallelism: int) -> Iterator[pa.Table]:
    """The rows of each chunk, with its row and its number in that."""
    for row in store.rows():
        for number, content in enumerate(store.contents(row)):
            table = _with_groups(decode_table(content), max_parallelism)
            lies = table.append_column(ROW, constant(row, len(table)))
            yield lies.append_column(CHUNK, constant(number, len(table)))


def keep(table: pa.Table, backend: StateBackend) -> None:
    """Put rows into the state of a subtask, which has none of the kind yet."""
    if DUE in table.column_names:
        due = pc.min(table.column(DUE)).as_py()
        own = table.drop_columns([GROUP, DUE])
        KeyedTable(backend, own.schema, _keys(own)).adopt(own, due)
        return
    store = StoredChunks(backend)
    for row, rows in slices_by(table.drop_columns([GROUP]), ROW):
        by_number = dict(slices_by(rows, CHUNK))
        none = rows.drop_columns([CHUNK]).slice(0, 0)
        for i in range(max(by_number) + 1):
            chunk = by_number.get(i, none)
            store.put(row, i, encode_table(chunk), len(chunk))
    store.flush()


def _with_groups(table: pa.Table, max_parallelism: int) -> pa.Table:
    keys = _keys(table)
    hashes = hashes_of_columns([table.column(name) for name in keys]) if keys else np.zeros(len(table), np.uint64)
    groups = ((hashes >> np.uint64(32)) % np.uint64(max_parallelism)).astype(np.int32)
    return table.append_column(GROUP, pa.array(groups))


def _keys(table: pa.Table) -> list[str]:
    names = key_names(len(table.column_names))
    return [name for name in names if name in table.column_names]
