"""Form of buckets whose keys have their values and timers in columns: for operators that work on columns.

Such a bucket is a *page*. It lies where a bucket of objects would lie, and says itself which types it has, so that
``read_bucket`` reads it too. What has become of some of its keys since may follow it, in the same form: the
*changes* of the page, rows that stand for those of their keys, and later changes after earlier ones.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import type_of_text
from eventide.runtime.elements.fields import from_fields, types_of_fields
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.timers import NUMBERS, PLACES, TimerColumns

HASH = "__hash"
_END, _END_OF_FEW, _END_OF_ONE_VALUE = b"rows", b"row.", b"keyed page"
"""The end of a page, of few rows, and of one that an earlier version wrote."""
_FEW_ROWS, _FEW_BYTES = 64, 8_192
"""The rows, and their bytes, up to which Arrow's description of a message is left out: it has 500 bytes."""
_SIZES = np.dtype("<u2")
_NO_BUFFER = 0xFFFF
_LENGTHS, _LENGTH = struct.Struct("<III"), struct.Struct("<I")

Timers: TypeAlias = Sequence[TimerColumns | None]
"""The timers of each kind, without namespaces."""

NO_TIMERS: Timers = (None, None)


@dataclass(frozen=True, slots=True)
class PageTypes:
    """The type of the keys of a page, and the names and types of their values.

    A name may be there twice, with different types: each key has a value of one of them.

    >>> from eventide.common.typeinfo import Types
    >>> types = PageTypes(Types.STRING(), (("count", Types.LONG()),))
    >>> rows = types.rows([pa.array(["a"])], np.array([7], np.uint64), [pa.array([1])])
    >>> read_parts(encode_page(types, rows, NO_TIMERS))[0][:3] == (types, rows, NO_TIMERS)
    True
    """

    key: TypeInformation
    values: tuple[tuple[str, TypeInformation], ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of a page: hashes, keys, and values."""
        keys = [(f"__key{i}", part.arrow_type()) for i, part in enumerate(types_of_fields(self.key))]
        values = [(f"__value{i}", kind.arrow_type()) for i, (_, kind) in enumerate(self.values)]
        return pa.schema([(HASH, pa.uint64()), *keys, *values])

    def rows(self, keys: Sequence[pa.Array], hashes: Hashes, values: Sequence[pa.Array]) -> pa.RecordBatch:
        """Rows of a page, from the parts of their keys, the hashes of the keys, and the values."""
        return pa.RecordBatch.from_arrays([pa.array(hashes), *keys, *values], schema=self.schema)

    def parts_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The parts of the keys of some rows."""
        return list(rows.columns[1 : len(rows.columns) - len(self.values)])

    def keys_of(self, rows: pa.RecordBatch) -> pa.Array:
        """The keys of some rows as a column of their type."""
        return from_fields(self.parts_of(rows), self.key)

    def values_of(self, rows: pa.RecordBatch) -> Sequence[pa.Array]:
        """The values of some rows, a column for each name and type."""
        return list(rows.columns[len(rows.columns) - len(self.values) :])


class Page(NamedTuple):
    """Some keys with what is kept of them, and how many bytes that has."""

    types: PageTypes
    rows: pa.RecordBatch
    timers: Timers
    size: int = 0


def is_page(content: bytes) -> bool:
    """Whether a bucket is a page."""
    return content.endswith((_END, _END_OF_FEW, _END_OF_ONE_VALUE))


def encode_page(types: PageTypes, rows: pa.RecordBatch, timers: Timers, *, to: PageTypes | None = None) -> bytes:
    """The bytes of a page, or of changes `to` one whose types are known."""
    of_timers = b""
    if any(timers):
        parts = [kind[:3] if kind else (b"", b"", b"") for kind in timers]
        of_timers = b"".join([_LENGTH.pack(len(places)) + places + times + numbers for places, times, numbers in parts])
    text = b"" if types == to else _text(types)
    packed = _packed(rows) if len(rows) <= _FEW_ROWS and rows.nbytes <= _FEW_BYTES else None
    content, end = (memoryview(rows.serialize()), _END) if packed is None else (packed, _END_OF_FEW)
    return b"".join([content, of_timers, text, _LENGTHS.pack(len(content), len(of_timers), len(text)), end])


def read_parts(content: bytes) -> list[Page]:
    """A page as it is by itself, and its changes, the oldest first; rows stay where the bytes are.

    A key of which nothing is kept any more may be among its changes.
    """
    parts, end = [], len(content)
    while end:
        begin, lengths = _part_before(content, end)
        parts.append((begin, lengths, end))
        end = begin
    found: list[Page] = []
    for begin, lengths, end in reversed(parts):
        found.append(_read(content, begin, lengths, found[0] if found else None, end))
    return found


def _part_before(content: bytes, end: int) -> tuple[int, tuple[int, int, int]]:
    """Where the part that ends at a place begins, and how many bytes its rows, its timers and its types have."""
    if content.endswith(_END_OF_ONE_VALUE, 0, end):
        (of_text,) = _LENGTH.unpack_from(content, end - len(_END_OF_ONE_VALUE) - _LENGTH.size)
        return 0, (end - len(_END_OF_ONE_VALUE) - _LENGTH.size - of_text, 0, of_text)
    lengths: tuple[int, int, int] = _LENGTHS.unpack_from(content, end - len(_END) - _LENGTHS.size)
    return end - len(_END) - _LENGTHS.size - sum(lengths), lengths


def _read(content: bytes, begin: int, lengths: tuple[int, int, int], to: Page | None, end: int) -> Page:
    of_rows, of_timers, of_text = lengths
    at = begin + of_rows + of_timers
    types, schema = _types(content[at : at + of_text]) if to is None or of_text else (to.types, to.rows.schema)
    buffer = pa.py_buffer(content).slice(begin, of_rows)
    is_packed = content.endswith(_END_OF_FEW, 0, end)
    rows = _unpacked(buffer, schema) if is_packed else pa.ipc.read_record_batch(buffer, schema)
    return Page(types, rows, _timers(content, begin + of_rows, at) if of_timers else NO_TIMERS, end - begin)


def _packed(rows: pa.RecordBatch) -> bytes | None:
    """A few rows: the buffers of their columns, after how many bytes each has; None if one is too large for that."""
    copied = pa.concat_batches([rows, rows.slice(0, 0)])  # so that no buffer has more than these rows
    buffers = [buffer for column in copied.columns for buffer in column.buffers()]
    if any(buffer is not None and buffer.size >= _NO_BUFFER for buffer in buffers):
        return None
    sizes = [len(rows), len(buffers), *(_NO_BUFFER if buffer is None else buffer.size for buffer in buffers)]
    return b"".join([np.array(sizes, _SIZES).tobytes(), *(buffer for buffer in buffers if buffer is not None)])


def _unpacked(packed: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The inverse of :func:`_packed`."""
    count, buffers = np.frombuffer(packed, _SIZES, 2).tolist()
    sizes = np.frombuffer(packed, _SIZES, buffers, 2 * _SIZES.itemsize).tolist()
    found, at = [], (2 + buffers) * _SIZES.itemsize
    for size in sizes:
        found.append(None if size == _NO_BUFFER else packed.slice(at, size))
        at += 0 if size == _NO_BUFFER else size
    left = iter(found)
    return pa.RecordBatch.from_arrays([_array(kind, count, left) for kind in schema.types], schema=schema)


def _array(kind: pa.DataType, count: int, buffers: Iterator[pa.Buffer | None]) -> pa.Array:
    """A column of a type, of the next ones of some buffers: its own, then those of its parts."""
    own = [next(buffers) for _ in range(kind.num_buffers)]
    if not kind.num_fields:
        return pa.Array.from_buffers(kind, count, own)
    of_parts = count
    if pa.types.is_fixed_size_list(kind):
        of_parts = count * kind.list_size
    elif not pa.types.is_struct(kind):
        of_parts = pa.Array.from_buffers(pa.int32(), count + 1, [None, own[1]])[count].as_py()
    parts = [_array(kind.field(i).type, of_parts, buffers) for i in range(kind.num_fields)]
    return pa.Array.from_buffers(kind, count, own, children=parts)


def _timers(content: bytes, begin: int, end: int) -> Timers:
    found: list[TimerColumns | None] = []
    while begin < end:
        (of_places,) = _LENGTH.unpack_from(content, begin)
        begin += _LENGTH.size
        of_times = of_places // PLACES.itemsize * NUMBERS.itemsize
        cuts = [begin, begin + of_places, begin + of_places + of_times, begin + of_places + 2 * of_times]
        places, times, numbers = (content[cuts[i] : cuts[i + 1]] for i in range(3))
        found.append((places, times, numbers, None) if of_places else None)
        begin = cuts[-1]
    return tuple(found)


@lru_cache
def _text(types: PageTypes) -> bytes:
    return json.dumps([str(types.key), [[name, str(kind)] for name, kind in types.values]]).encode()


@lru_cache
def _types(text: bytes) -> tuple[PageTypes, pa.Schema]:
    """The types of a page, and its schema; pages of one value, of earlier versions, say its name first."""
    key, values, *of_one_value = json.loads(text)
    if of_one_value:
        key, values = values, [[key, *of_one_value]]
    types = PageTypes(type_of_text(key), tuple((name, type_of_text(kind)) for name, kind in values))
    return types, types.schema
