"""Buckets: the state of some keys, side by side, as objects; and the bytes in which earlier versions stored it.

Where few keys of a stored bucket had changed, they follow it as a bucket of their own, and so do later changes.

In a *page*, keys have their values and timers in columns, and it says itself which types it has. Versions up to 0.1.0
stored pages where buckets of objects lie, for operators that work on columns, and ``read_bucket`` reads them. What has
become of some of its keys since may follow a page in the same form: rows that stand for those of their keys.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import type_of_text
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.elements import from_fields, types_of_fields
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.timers import NUMBERS, PLACES, TimerColumns

HASH = "__hash"
_END, _END_OF_FEW, _END_OF_ONE_VALUE = b"rows", b"row.", b"keyed page"
"""The end of a page; of few rows without Arrow's description of a message, and of another form, of earlier versions."""
_SIZES = np.dtype("<u2")
_NO_BUFFER = 0xFFFF
_LENGTHS = struct.Struct("<III")

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
    >>> types.keys_of(rows).to_pylist(), [values.to_pylist() for values in types.values_of(rows)]
    (['a'], [[1]])
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
    """Some keys with what is kept of them."""

    types: PageTypes
    rows: pa.RecordBatch
    timers: Timers = NO_TIMERS


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
def text_of_types(types: PageTypes) -> bytes:
    """The types of a page as they are stored."""
    return json.dumps([str(types.key), [[name, str(kind)] for name, kind in types.values]]).encode()


@lru_cache
def types_of_text(text: bytes) -> tuple[PageTypes, pa.Schema]:
    """The types of a page, and its schema; pages of one value, of earlier versions, say its name first."""
    key, values, *of_one_value = json.loads(text)
    if of_one_value:
        key, values = values, [[key, *of_one_value]]
    types = PageTypes(type_of_text(key), tuple((name, type_of_text(kind)) for name, kind in values))
    return types, types.schema


KINDS_OF_TIME = 2
"""The number of kinds of timers: of event time, and of processing time."""

EXPIRY = KINDS_OF_TIME
"""The kind of time at which the first part of what a key has expires; most have none."""

Owners: TypeAlias = list[int] | None
"""Which keys of a bucket have something, by their places; None stands for all."""

Column: TypeAlias = tuple[Owners, bool, list[Any]]
"""A state of some keys under one name: which keys, whether each value is a pickle, and the values or pickles."""

PLAIN = frozenset({str, int, float, bool, bytes})
"""Values of these types cannot be changed, so they are no pickles while they are at hand."""

TIMES = ("event times", "clock times", "expiries")
"""The names of the kinds of time at which something of a key is due."""

_HASHES = np.dtype("<u8")
_LENGTH, _END_OF_CHANGES = struct.Struct("<I"), b"keys"
"""Changes end with their length and this, and no bucket ends so."""


class Pickled(bytes):
    """A value that was not looked at since it was read: it is written as it is."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Bucket:
    """Some keys by their places, and what is kept of them.

    Attributes:
        keys: the keys.
        hashes: their hashes.
        values: the state without a namespace, by name.
        spaces: by name too, what each key has by namespace.
        timers: of each kind, those without a namespace and those with one.

    >>> Bucket(["a"], np.array([7], np.uint64), {"n": column(["x"], 1)}).values
    {'n': (None, False, ['x'])}
    """

    keys: list[Any]
    hashes: Hashes
    values: dict[str, Column] = field(default_factory=dict)
    spaces: dict[str, Column] = field(default_factory=dict)
    timers: Sequence[tuple[TimerColumns | None, ...]] = ((None, None),) * KINDS_OF_TIME


def _read_bucket(stored: bytes, load: Callable[[bytes], Any]) -> list[Bucket]:
    """A bucket as it is by itself, or a page, and its changes, the oldest first."""
    if is_page(stored):
        return list(map(bucket_of_page, read_parts(stored)))
    found, end = [], len(stored)
    while stored.endswith(_END_OF_CHANGES, 0, end):
        end_of_content = end - _LENGTH.size - len(_END_OF_CHANGES)
        begin = end_of_content - _LENGTH.unpack_from(stored, end_of_content)[0]
        found.append(_unpickled(load(stored[begin:end_of_content])))
        end = begin
    return [_unpickled(load(stored[:end])), *reversed(found)]


def read_living(stored: bytes, load: Callable[[bytes], Any] = loads) -> list[tuple[Bucket, list[int]]]:
    """A bucket and its changes, and the places of the keys in each that are as it says.

    A key of which nothing is kept any more may be among the changes.
    """
    found: list[tuple[Bucket, list[int]]] = []
    newer = np.zeros(0, np.uint64)
    for bucket in reversed(_read_bucket(stored, load)):
        stays = ~np.isin(bucket.hashes, newer)
        found.append((bucket, np.flatnonzero(stays).tolist()))
        newer = np.concatenate([newer, bucket.hashes])
    return found[::-1]


def _unpickled(content: Any) -> Bucket:
    keys, hashes, values, spaces, timers, *_ = content
    return Bucket(keys, np.frombuffer(hashes, _HASHES), values, spaces, timers)


def bucket_of_page(page: Page) -> Bucket:
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


def column(values: list[Any], count: int) -> Column:
    """Make a column of the values of keys under a name, None where they have none; `count` have one.

    What can be changed is pickled by itself: keys share no object, and an untouched value stays as it is.

    >>> column(["x", None, "y"], 2)
    ([0, 2], False, ['x', 'y'])
    """
    owners = None
    if count < len(values):
        owners = [place for place, value in enumerate(values) if value is not None]
        values = [values[place] for place in owners]
    if PLAIN.issuperset(map(type, values)):
        return owners, False, values
    return owners, True, [bytes(value) if type(value) is Pickled else dumps(value) for value in values]


def owned(keys: list[Any], owners: Owners, values: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Give the values of a column, with their keys."""
    return zip(keys if owners is None else map(keys.__getitem__, owners), values, strict=True)


def live(value: Any) -> Any:
    """A value as its user knows it."""
    return loads(value) if type(value) is Pickled else value


def unpickled(values: dict[Any, Any], key: Any) -> Any:
    """The value of a key, None if there is none; it is unpickled when it is looked at for the first time."""
    value = values.get(key)
    if type(value) is Pickled:
        value = values[key] = live(value)
    return value
