"""Where versions up to 0.1.0 have stored keys, and tables of rows by key: in buckets, by the hash of a key.

Where few keys of a bucket had changed, they follow it as a bucket of their own, and so do later changes. In a *page*,
keys have their values and timers in columns, and it says itself which types it has; pages lie where buckets lie.
"""

from __future__ import annotations

import json
import struct
from base64 import b85decode
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.pickling.pickles import loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import Bucket, Column, Pickled, column
from eventide.runtime.state.declared import RowTypes, types_of_text
from eventide.runtime.state.extents import HASH
from eventide.runtime.state.runs import decompressed
from eventide.runtime.state.timers import NUMBERS, PLACES, TimerColumns, rows_of_columns

_INDEX = "buckets"
BUCKET = "bucket"
"""The beginning of a bucket's name, before a slash."""

_PREFIX = f"{BUCKET}/"
_CHANGES = "changes"
"""The end of the name of the first changes beside a bucket; the end of the next ones is this and a number."""

_END, _END_OF_FEW, _END_OF_ONE_VALUE = b"rows", b"row.", b"keyed page"
"""The end of a page; of few rows without Arrow's description of a message, and of another form, of earlier versions."""
_SIZES = np.dtype("<u2")
_NO_BUFFER = 0xFFFF
_LENGTHS = struct.Struct("<III")

StoredTimers: TypeAlias = Sequence[TimerColumns | None]
"""The timers of each kind, without namespaces."""

NO_TIMERS: StoredTimers = (None, None)
_HASHES = np.dtype("<u8")
_LENGTH, _END_OF_CHANGES = struct.Struct("<I"), b"keys"
"""Changes end with their length and this, and no bucket ends so."""


class BucketStore:
    """The buckets that an earlier version has stored, to be read once.

    Args:
        backend: where they lie.

    Attributes:
        count: the number of buckets.
        entries: how many entries all of them have together; 0 where there are none.
        numbers: those of the last timers of each kind.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        stored = backend.get(_INDEX)
        self._index: dict[str, Any] = {"count": 1, "entries": 0} if stored is None else json.loads(stored)
        self.count: int = self._index["count"]
        self.entries: int = self._index["entries"]
        self.numbers: list[int] = self._index.get("numbers", [])
        self._with_changes = _with_changes(self._index.get("changes", []), self.count)

    def contents(self) -> Iterator[bytes]:
        """Give the contents of all buckets that have any, each followed by its changes, the oldest first."""
        for bucket in range(self.count if self.entries else 0):
            content = self._content(bucket)
            if content is not None:
                yield content

    def due(self, kind: str) -> int | None:
        """The earliest time of a kind at which anything is due, in milliseconds; None for never."""
        return min((time_ms for _, time_ms in self._index.get(kind, ())), default=None)

    def delete_all(self) -> None:
        """Delete all buckets, and what was stored to find them."""
        for bucket in range(self.count):
            for part in range(1 + len(self._with_changes)):
                self._backend.delete(_name(bucket, part))
        for name, pages in self._index.items():
            if isinstance(pages, list):
                for page in pages:
                    if isinstance(page, list):
                        self._backend.delete(f"{name}/{page[0]}")
        self._backend.delete(_INDEX)
        self.count, self.entries = 1, 0

    def _content(self, bucket: int) -> bytes | None:
        get = self._backend.get
        stored = get(_name(bucket))
        if stored is None:
            return None
        parts = [decompressed(stored)]
        for buckets in self._with_changes:
            if bucket not in buckets:
                break
            if (changes := get(_name(bucket, len(parts)))) is None:  # an earlier version did not tell which have some
                break
            parts.append(decompressed(changes))
        return b"".join(parts)


def _with_changes(stored: list[str] | str | int, count: int) -> list[set[int]]:
    """The buckets with changes, those with two, and so on.

    Of earlier versions, one wrote how many of all have changes, but not which, and the next one those with changes.
    """
    if isinstance(stored, int):
        return [{*range(count)}] if stored else []
    return [_numbers_of(bits) for bits in ([stored] if isinstance(stored, str) else stored)]


def _numbers_of(bits: str) -> set[int]:
    """The numbers that have a bit in a text."""
    return {*np.flatnonzero(np.unpackbits(np.frombuffer(decompressed(b85decode(bits)), np.uint8))).tolist()}


def _name(bucket: int, part: int = 0) -> str:
    """The name of a part of a bucket: of itself, or of its changes, which are counted from 1."""
    name = f"{_PREFIX}{bucket}"
    if part:
        name = f"{name}/{_CHANGES}" if part == 1 else f"{name}/{_CHANGES}/{part - 1}"
    return name


def read_buckets(stored: bytes, load: Callable[[bytes], Any] = loads) -> Iterator[Bucket]:
    """Give a bucket and its changes, each with the keys that are as it says, and of which something is kept."""
    newer: Hashes = np.zeros(0, np.uint64)
    for bucket in reversed(_read_bucket(stored, load)):
        stays = ~np.isin(bucket.hashes, newer) & _has_something(bucket)
        newer = np.concatenate([newer, bucket.hashes])
        yield bucket if stays.all() else _some(bucket, np.flatnonzero(stays).tolist())


def _has_something(bucket: Bucket) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each key of a bucket whether anything is kept of it: among changes are keys that were forgotten."""
    found = np.zeros(len(bucket.keys), bool)
    for owners, _, _ in (*bucket.values.values(), *bucket.spaces.values()):
        found[slice(None) if owners is None else owners] = True
    for timers in (one for parts in bucket.timers for one in parts if one is not None):
        found[rows_of_columns(timers)[0]] = True
    return found


def _some(bucket: Bucket, places: list[int]) -> Bucket:
    """Some of the keys of a bucket."""
    new = {old: place for place, old in enumerate(places)}

    def of_keys(stored: Column) -> Column:
        owners, are_pickled, values = stored
        of_values = zip(range(len(values)) if owners is None else owners, values, strict=True)
        found = [(new[old], value) for old, value in of_values if old in new]
        return [place for place, _ in found], are_pickled, [value for _, value in found]

    def timers_of(stored: TimerColumns | None) -> TimerColumns | None:
        if stored is None:
            return None
        owners, times, numbers = rows_of_columns(stored)
        rows = [row for row, owner in enumerate(owners.tolist()) if owner in new]
        mine = np.array([new[owners[row]] for row in rows], PLACES)
        namespaces = None if stored[3] is None else [stored[3][row] for row in rows]
        columns = mine.tobytes(), times[rows].astype(NUMBERS).tobytes(), numbers[rows].astype(NUMBERS).tobytes()
        return (*columns, namespaces) if rows else None

    return Bucket(
        [bucket.keys[old] for old in places],
        bucket.hashes[places],
        {name: of_keys(values) for name, values in bucket.values.items()},
        {name: of_keys(values) for name, values in bucket.spaces.items()},
        [tuple(map(timers_of, parts)) for parts in bucket.timers],
    )


def _read_bucket(stored: bytes, load: Callable[[bytes], Any]) -> list[Bucket]:
    """A bucket as it is by itself, or a page, and its changes, the oldest first."""
    if is_page(stored):
        return list(map(_bucket_of, read_parts(stored)))
    found, end = [], len(stored)
    while stored.endswith(_END_OF_CHANGES, 0, end):
        end_of_content = end - _LENGTH.size - len(_END_OF_CHANGES)
        begin = end_of_content - _LENGTH.unpack_from(stored, end_of_content)[0]
        found.append(_unpickled(load(stored[begin:end_of_content])))
        end = begin
    return [_unpickled(load(stored[:end])), *reversed(found)]


def _unpickled(content: Any) -> Bucket:
    keys, hashes, values, spaces, timers, *_ = content
    return Bucket(keys, np.frombuffer(hashes, _HASHES), values, spaces, timers)


def _bucket_of(page: Page) -> Bucket:
    """A page as a bucket of objects."""
    types, rows, timers = page
    count = len(rows)
    found: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * count)
    for (name, kind), values in zip(types.values, types.values_of(rows), strict=True):
        owners = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)).tolist()
        held = values.drop_null()
        objects = map(Pickled, held.to_pylist()) if kind.is_pickled else kind.from_arrow(held)
        for owner, value in zip(owners, objects, strict=True):
            found[name][owner] = value
    return Bucket(
        types.key.from_arrow(types.keys_of(rows)),
        rows.column(HASH).to_numpy(),
        {name: column(held, count - held.count(None)) for name, held in found.items()},
        timers=[(of_kind, None) for of_kind in timers],
    )


class Page(NamedTuple):
    """Some keys with what is kept of them."""

    types: RowTypes
    rows: pa.RecordBatch
    timers: StoredTimers = NO_TIMERS


def is_page(content: bytes) -> bool:
    """Whether a bucket is a page."""
    return content.endswith((_END, _END_OF_FEW, _END_OF_ONE_VALUE))


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
    types, schema = types_of_text(content[at : at + of_text]) if to is None or of_text else (to.types, to.rows.schema)
    buffer = pa.py_buffer(content).slice(begin, of_rows)
    is_packed = content.endswith(_END_OF_FEW, 0, end)
    rows = _unpacked(buffer, schema) if is_packed else pa.ipc.read_record_batch(buffer, schema)
    return Page(types, rows, _timers(content, begin + of_rows, at) if of_timers else NO_TIMERS)


def _unpacked(packed: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """A few rows: the buffers of their columns, after how many there are of both, and how many bytes each has."""
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


def _timers(content: bytes, begin: int, end: int) -> StoredTimers:
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
