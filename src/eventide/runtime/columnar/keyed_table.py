"""Rows by key in a state backend: tables in buckets by the hash of the key, read when one of its keys is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.layout import slices_by
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.elements.key_columns import hashes_of_columns
from eventide.runtime.state.backend import Backend, without_collection
from eventide.runtime.state.bucket_store import BucketStore, addresses

_BUCKET = "__bucket"
_BUCKET_BYTES = 32_768
_OFFSET_BYTES = 4


class KeyedTable:
    """One table of all rows whose bucket was read in this micro-batch; what has changed is written back once.

    Rows of a bucket keep their order. Each bucket has a time, so that those with something due can be found without
    reading any.
    """

    def __init__(self, backend: Backend, schema: pa.Schema, keys: list[str], bucket_bytes: int = _BUCKET_BYTES) -> None:
        self._store = BucketStore(backend, bucket_bytes, ("times",))
        self._keys = keys
        self._buckets: dict[int, bytes | None] = {}
        self._rows = self._bytes = 0
        self.table = schema.empty_table()

    @property
    def count(self) -> int:
        """Number of rows, those that were not read among them; asked after :meth:`flush`."""
        return self._store.entries

    def read_keys_of(self, rows: pa.Table) -> None:
        """Read the buckets of the keys of some rows."""
        self._read(np.unique(self._buckets_of(rows)).tolist())

    def read_due(self, time_ms: int) -> None:
        """Read the buckets whose time has come."""
        self._read(self._store.schedules[0].due(time_ms))

    def adopt(self, rows: pa.Table, due_ms: int) -> None:
        """Store rows of another table, where there are none; what is due of them is not before a time."""
        self._read([0])
        self.table = rows
        self.flush(lambda _: due_ms)

    def flush(self, time_of: Callable[[pa.Table], int]) -> None:
        """Write back what was read; ``time_of`` says when a bucket with rows should be read for its time."""
        with without_collection():
            self._read(self._store.grow(len(self.table) - self._rows, _size(self.table) - self._bytes))
            left = dict(self._buckets)
            table = self.table.combine_chunks()
            numbered = table.append_column(_BUCKET, pa.array(self._buckets_of(table)))
            for bucket, rows in slices_by(numbered, _BUCKET):
                self._put(bucket, encode_table(rows), time_of(rows))
                left.pop(bucket, None)
            for bucket in sorted(left):
                self._put(bucket, None, None)
        self._store.flush()
        self.table = self.table.slice(0, 0)
        self._buckets = {}
        self._rows = self._bytes = 0

    def _put(self, bucket: int, content: bytes | None, time_ms: int | None) -> None:
        if content != self._buckets.get(bucket):
            self._store.put(bucket, content)
        self._store.schedules[0].set(bucket, time_ms)

    def _read(self, buckets: Iterable[int]) -> None:
        new = [bucket for bucket in buckets if bucket not in self._buckets]
        self._buckets |= self._store.get_many(new)
        found = [decode_table(content) for content in map(self._buckets.get, new) if content is not None]
        if found:
            more = pa.concat_tables(found)
            self._rows += len(more)
            self._bytes += _size(more)
            self.table = pa.concat_tables([self.table, more]).combine_chunks()

    def _buckets_of(self, rows: pa.Table) -> np.ndarray[Any, Any]:
        if not self._keys:
            return np.zeros(len(rows), np.int64)
        return addresses(hashes_of_columns([rows.column(name) for name in self._keys]), self._store.count)


def _size(table: pa.Table) -> int:
    """How many bytes the values of a table take: those of its rows together, however they lie in memory.

    So what was added when rows were written is what is taken away when they are read again. Arrow's own ``nbytes``
    depends on how a table was made: on its chunks, and on whether it says that no value is null.
    """
    return sum(map(_size_of_column, table.columns))


def _size_of_column(column: pa.ChunkedArray) -> int:
    kind = column.type
    if pa.types.is_struct(kind):
        return sum(map(_size_of_column, column.flatten()))
    if pa.types.is_map(kind):
        entry = pa.struct([kind.key_field, kind.item_field])
        return _size_of_column(column.cast(pa.list_(entry)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return len(column) * _OFFSET_BYTES + _size_of_column(pc.list_flatten(column))
    try:
        size: int = len(column) * max(1, kind.bit_width // 8)
    except ValueError:  # text or bytes
        size = len(column) * _OFFSET_BYTES + (pc.sum(pc.binary_length(column)).as_py() or 0)
    return size
