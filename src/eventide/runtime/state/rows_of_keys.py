"""Rows of a `RowStore` that have a key, its values by name, and its timers; and the same as a bucket of objects.

The columns of a row are its key, and a column for each name and type of its values; the schema says which these are.
Timers follow, where any of the rows has some. Operators on objects, operators on columns, tools and savepoints all read
the same rows.
"""

from __future__ import annotations

from base64 import b85encode
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.widening import conversion, type_of_text
from eventide.common.windows import TimeWindow
from eventide.errors import StateError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import order_by
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    EXPIRY,
    KINDS_OF_TIME,
    PLAIN,
    TIMES,
    Bucket,
    Owners,
    Pickled,
    column,
)
from eventide.runtime.state.bucket_store import BucketStore, read_buckets
from eventide.runtime.state.declared import DECLARED, RowTypes, text_of_types, types_of, types_of_text
from eventide.runtime.state.expiring import SUFFIX, expiry_of
from eventide.runtime.state.extents import HASH, NEVER, RowStore
from eventide.runtime.state.timers import NO_PLACE, NUMBERS, PLACES, Numbers, TimerColumns, TimerRows, rows_of_columns

ANYTHING = Types.PICKLED_BYTE_ARRAY()
"""The type of values that lie in their rows as pickles."""

SPACES = "\N{INFORMATION SEPARATOR TWO}"
"""The end of the name of a column of pickles, each a dict of what a key has by namespace."""

AS_THEY_ARE = "\N{INFORMATION SEPARATOR THREE}"
"""The end of the name of a column of plain objects, whatever type their state is declared to have."""

SAMPLE = "key"
"""The name of a store's user for one key, whose class may change, and its hash."""

KEYS, TIMERS, NUMBERS_OF_TIMERS = "keys", "timers", "numbers of timers"
"""The names of a store's user for how many there are, and for the number of the last timer of each kind."""

_TYPES = b"types"
"""Under this, the schema of rows has the types of their keys and values."""

_PLAIN_TIMERS = [f"__timers{kind}" for kind in range(KINDS_OF_TIME)]
_SPACED_TIMERS = [f"__spaced{kind}" for kind in range(KINDS_OF_TIME)]
_HASHES_AT_ONCE = 65_536
_NO_NUMBERS: Numbers = np.zeros(0, np.int64)
_NO_TIMERS: TimerRows = (_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)

LAST = NEVER - 1
"""The due time of the last timers there are, and of those one millisecond before: a row of `NEVER` is never due."""

RowForm: TypeAlias = Literal["plain", "pickled", "spaces"]
"""Values that are plain objects, those that are pickles, and the pickles of dicts by namespace."""

Parts: TypeAlias = Sequence[tuple[TimerRows, Sequence[Hashable] | None]]
"""Timers without a namespace; and those with one, and their namespaces. The latter may be missing."""


class NoColumns(StateError):
    """Columns cannot hold what is stored: it has to be used as objects."""


class KeysInRows(NamedTuple):
    """The types of the columns of some rows, the columns, and the timers of each kind."""

    types: RowTypes
    rows: pa.RecordBatch
    timers: list[Parts]

    @property
    def hashes(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The hashes of the keys."""
        found: np.ndarray[Any, np.dtype[np.uint64]] = self.rows.column(HASH).to_numpy()
        return found

    def keys(self, load: Callable[[bytes], Any] = loads) -> list[Any]:
        """The keys as objects."""
        stored, kind = self.types.keys_of(self.rows), self.types.key
        return list(map(load, stored.to_pylist())) if kind.is_pickled else kind.from_arrow(stored)

    def values(self) -> Iterator[tuple[str, TypeInformation, pa.Array]]:
        """Give the name and the type of each column of values, and the column; unless none of the rows has any."""
        for (name, kind), array in zip(self.types.values, self.types.values_of(self.rows), strict=True):
            if array.null_count < len(array):
                yield name, kind, array


def as_stored(types: RowTypes, rows: pa.Table, timers: Sequence[Parts] = (), like: pa.Schema | None = None) -> pa.Table:
    """Rows as they are stored; the timers come in the order of their rows.

    ``like`` is the schema of rows that are stored: their columns of timers are there in any case.
    """
    columns: dict[str, pa.Array] = {}
    for kind, parts in enumerate(timers):
        for names, (of_rows, namespaces) in zip((_PLAIN_TIMERS, _SPACED_TIMERS), parts, strict=False):
            if len(of_rows[0]):
                columns[names[kind]] = _lists(of_rows, namespaces, len(rows))
    for name in (*_PLAIN_TIMERS, *_SPACED_TIMERS):
        if name in columns:
            rows = rows.append_column(name, columns[name])
        elif like is not None and name in like.names:
            rows = rows.append_column(name, pa.nulls(len(rows), like.field(name).type))
    return rows.replace_schema_metadata({_TYPES: text_of_types(types)})


def with_values_of(types: RowTypes, rows: pa.RecordBatch, like: pa.Schema) -> tuple[RowTypes, pa.RecordBatch]:
    """Rows with all columns of values that rows of a schema have, which are stored.

    With a schema for each combination of columns, there would be many that have few rows each.
    """
    others, _ = types_of_text(like.metadata[_TYPES])
    keys, mine = types.parts_of(rows), dict(zip(types.values, types.values_of(rows), strict=True))
    if mine.keys() >= {*others.values}:
        return types, rows
    names = sorted({*types.values, *others.values}, key=lambda of: (of[0], str(of[1])))
    values = [mine[of] if of in mine else pa.nulls(len(rows), of[1].arrow_type()) for of in names]
    types = RowTypes(types.key, tuple(names))
    return types, types.rows(keys, rows.column(HASH).to_numpy(), values)


def read_rows(rows: pa.Table, load: Callable[[bytes], Any] = loads) -> KeysInRows:
    """The types, the columns and the timers of rows, as they were stored."""
    types, schema = types_of_text(rows.schema.metadata[_TYPES])
    columns = [rows.column(i).combine_chunks() for i in range(len(schema))]
    timers: list[Parts] = [
        [_timers_of(rows, plain, load), _timers_of(rows, spaced, load)]
        for plain, spaced in zip(_PLAIN_TIMERS, _SPACED_TIMERS, strict=True)
    ]
    return KeysInRows(types, pa.RecordBatch.from_arrays(columns, schema=schema), timers)


def are_of_keys(rows: pa.Table) -> bool:
    """Whether rows have this form, and not that of a table of an operator on columns."""
    return _TYPES in (rows.schema.metadata or {})


def bucket_of(rows: pa.Table, load: Callable[[bytes], Any] = loads) -> Bucket:
    """Rows as a bucket of objects."""
    stored = read_rows(rows, load)
    count = len(rows)
    found: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * count)
    for name, kind, array in stored.values():
        owners = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)).tolist()
        held = array.drop_null()
        objects: Iterable[Any] = map(Pickled, held.to_pylist()) if kind.is_pickled else kind.from_arrow(held)
        of_name = found[name.removesuffix(AS_THEY_ARE)]
        for owner, value in zip(owners, objects, strict=True):
            of_name[owner] = value
    columns = {name: column(held, count - held.count(None)) for name, held in found.items()}
    return Bucket(
        stored.keys(load),
        stored.hashes,
        {name: values for name, values in columns.items() if not name.endswith(SPACES)},
        {name.removesuffix(SPACES): values for name, values in columns.items() if name.endswith(SPACES)},
        [tuple(timer_columns(*of_rows, namespaces) for of_rows, namespaces in parts) for parts in stored.timers],
    )


def buckets_of(backend: Backend, load: Callable[[bytes], Any] = loads) -> Iterator[Bucket]:
    """Give all keys that lie in extents of a backend, with values of the types that were declared last, as objects."""
    declared = types_of(backend.get(DECLARED) or b"{}")
    store = RowStore(backend)
    hashes = store.others()
    for begin in range(0, len(hashes), _HASHES_AT_ONCE):
        for _, rows in store.read(hashes[begin : begin + _HASHES_AT_ONCE]):
            bucket = bucket_of(rows, load)
            for name, kind, _ in read_rows(rows, load).values():
                text = declared.get(name, str(kind))
                if not kind.is_pickled and text not in (str(kind), str(ANYTHING)):
                    convert = conversion(kind, type_of_text(text))
                    owners, are_pickled, held = bucket.values.get(name, (None, False, []))
                    values = map(loads, held) if are_pickled else held
                    if convert is not None and held:
                        bucket.values[name] = (owners, True, [dumps(convert(value)) for value in values])
            yield bucket
        store.forget()


def move_buckets(backend: Backend, store: RowStore) -> None:
    """Move all keys that version 0.1.0 has stored in buckets into rows."""
    former = BucketStore(backend)
    if former.entries:
        buckets = (bucket for content in former.contents() for bucket in read_buckets(content))
        put_buckets(store, buckets, former.numbers)
        former.delete_all()


def put_buckets(store: RowStore, buckets: Iterable[Bucket], numbers: Sequence[int]) -> None:
    """Write keys into rows of a store that has none yet; ``numbers`` are those of the last timers of each kind."""
    keys, count, like, waiting = 0, 0, store.last_schema, 0
    for bucket in buckets:
        types, rows = rows_of_objects(bucket.keys, bucket.hashes, _held_in(bucket))
        if types.key.is_pickled:
            remember_key(store, bucket.keys, bucket.hashes)
        if like is not None:
            types, rows = with_values_of(types, rows, like)
        timers = [[_in_order(part) for part in parts] for parts in bucket.timers]
        written = as_stored(types, pa.Table.from_batches([rows]), timers, like)
        store.write(written, due_times(len(rows), timers, _expiring_in(bucket)))
        keys, count, like = keys + len(rows), count + sum(map(_count_of, timers)), written.schema
        waiting += len(rows)
        if waiting > _HASHES_AT_ONCE:
            store.flush()
            waiting = 0
    store.user |= {KEYS: keys, TIMERS: count, NUMBERS_OF_TIMERS: [*numbers]}
    store.flush()


def remember_key(store: RowStore, keys: Iterable[Any], hashes: Hashes) -> None:
    """Keep a key whose class defines its hash, if any of some does: :data:`SAMPLE`."""
    for key, key_hash in zip(keys, hashes.tolist(), strict=True):
        if type(key) not in PLAIN and key is not None:
            store.user[SAMPLE] = b85encode(dumps(key)).decode(), key_hash
            break


def rows_of_objects(
    keys: Sequence[Any], hashes: Hashes, values: Iterable[tuple[str, RowForm, Numbers, list[Any]]]
) -> tuple[RowTypes, pa.RecordBatch]:
    """Keys and values that are objects, as the rows in which they are stored.

    Args:
        keys: the keys.
        hashes: their hashes.
        values: by name, in some forms, the places of the keys that have such a value, and these.
    """
    found: dict[tuple[str, TypeInformation], list[tuple[Numbers, pa.Array]]] = defaultdict(list)
    for name, form, owners, held in values:
        if not len(owners):
            continue
        if form == "plain":
            for type_info, at, array in columns_of(held):
                as_it_is = name if type_info.is_pickled else name + AS_THEY_ARE
                found[as_it_is, type_info].append((owners[at], array))
        else:
            of_name = name + SPACES if form == "spaces" else name
            found[of_name, ANYTHING].append((owners, pa.array(held, pa.binary())))
    key, parts = key_columns(keys)
    names = sorted(found, key=lambda of: (of[0], str(of[1])))
    types = RowTypes(key, tuple(names))
    return types, types.rows(parts, hashes, [_spread(found[of], len(keys)) for of in names])


def due_times(
    count: int, timers: Sequence[Parts], expiries: Iterable[tuple[Numbers, Iterable[int | None]]]
) -> list[Numbers]:
    """When some rows are due, of each kind of time.

    Args:
        count: the number of the rows.
        timers: those of each kind.
        expiries: the rows that have something that expires, and when each does, in milliseconds; None for never.
    """
    due = [np.full(count, NEVER) for _ in TIMES]
    for earliest, parts in zip(due, timers, strict=False):
        for (owners, times, _), _ in parts:
            np.minimum.at(earliest, owners, np.minimum(times, LAST))
    for rows, of_rows in expiries:
        times = np.fromiter((NEVER if time_ms is None else time_ms for time_ms in of_rows), np.int64, len(rows))
        due[EXPIRY][rows] = np.minimum(due[EXPIRY][rows], times)
    return due


def has_keys(backend: Backend) -> bool:
    """Whether rows of keys lie in extents of a backend."""
    schema = RowStore(backend).last_schema
    return schema is not None and _TYPES in (schema.metadata or {})


def columns_of(objects: Sequence[Any]) -> Iterator[tuple[TypeInformation, Numbers, pa.Array]]:
    """Give plain objects by their types: a type, which of the objects have it, and these as a column.

    What no column would give back as it is comes as pickles.
    """
    kinds = {*map(type, objects)}
    for kind in kinds:
        type_info, at = _COLUMNS.get(kind), np.arange(len(objects))
        if len(kinds) > 1:
            at = np.flatnonzero(np.fromiter((type(one) is kind for one in objects), bool, len(objects)))
        mine = [objects[i] for i in at.tolist()] if len(at) < len(objects) else objects
        array = None if type_info is None else _column(type_info, mine)
        if array is None or type_info is None:
            yield ANYTHING, at, pa.array(list(map(dumps, mine)), pa.binary())
        else:
            yield type_info, at, array


def key_columns(keys: Sequence[Any]) -> tuple[TypeInformation, list[pa.Array]]:
    """The type of the column that gives some keys back as they are, and its parts."""
    kinds = {*map(type, keys)}
    if len(kinds) == 1:
        (kind,) = kinds
        if kind is tuple and len({*map(len, keys)}) == 1 and len(keys[0]):
            parts = [_alike(list(part)) for part in zip(*keys, strict=True)]
            if all(part is not None for part in parts):
                return Types.TUPLE([part[0] for part in parts if part]), [part[1] for part in parts if part]
        found = _alike(keys)
        if found is not None:
            return found[0], [found[1]]
    return ANYTHING, [pa.array(list(map(dumps, keys)), pa.binary())]


def timer_columns(
    places: Numbers, times: Numbers, numbers: Numbers, namespaces: Sequence[Hashable] | None = None
) -> TimerColumns | None:
    """Timers, given the places of their keys; None if there are none."""
    if not len(places):
        return None
    packed = places.astype(PLACES).tobytes(), times.astype(NUMBERS).tobytes(), numbers.astype(NUMBERS).tobytes()
    return *packed, None if namespaces is None else list(namespaces)


def rows_of_timers(columns: TimerColumns | None) -> TimerRows:
    """The inverse of :func:`timer_columns`, without the namespaces."""
    return _NO_TIMERS if columns is None else rows_of_columns(columns)


_COLUMNS: dict[type, TypeInformation] = {
    int: Types.LONG(),
    str: Types.STRING(),
    float: Types.DOUBLE(),
    bool: Types.BOOLEAN(),
}


def _alike(objects: Sequence[Any]) -> tuple[TypeInformation, pa.Array] | None:
    """The column of plain objects of one type; None if they have several, or no column gives them back."""
    kinds = {*map(type, objects)}
    type_info = _COLUMNS.get(kinds.pop()) if len(kinds) == 1 else None
    array = None if type_info is None else _column(type_info, objects)
    return None if type_info is None or array is None else (type_info, array)


def _column(type_info: TypeInformation, objects: Sequence[Any]) -> pa.Array | None:
    try:
        return pa.array(objects, type_info.arrow_type())
    except (OverflowError, UnicodeError, pa.ArrowInvalid):  # beyond 64 bits, or half of a surrogate pair
        return None


def _spread(parts: Sequence[tuple[Numbers, pa.Array]], count: int) -> pa.Array:
    """A column of `count` rows, of some of which there are values; null in all others."""
    where = np.full(count, NO_PLACE)
    where[np.concatenate([rows for rows, _ in parts])] = np.arange(sum(len(rows) for rows, _ in parts))
    return pa.concat_arrays([array for _, array in parts]).take(pa.array(where, mask=where == NO_PLACE))


def _held_in(bucket: Bucket) -> Iterator[tuple[str, RowForm, Numbers, list[Any]]]:
    """Give the values in a bucket, by name and form, with the places of the keys that have each."""
    for name, (owners, are_pickled, held) in bucket.values.items():
        yield name, "pickled" if are_pickled else "plain", _places_of(bucket, owners), held
    for name, (owners, _, held) in bucket.spaces.items():
        yield name, "spaces", _places_of(bucket, owners), held


def _expiring_in(bucket: Bucket) -> Iterator[tuple[Numbers, list[int | None]]]:
    """Give the places of the keys in a bucket that have something that expires, and when each does."""
    for name, (owners, are_pickled, held) in bucket.values.items():
        if name.endswith(SUFFIX):
            yield _places_of(bucket, owners), [expiry_of(loads(one) if are_pickled else one) for one in held]


def _places_of(bucket: Bucket, owners: Owners) -> Numbers:
    return np.arange(len(bucket.keys)) if owners is None else np.array(owners, np.int64)


def _in_order(timers: TimerColumns | None) -> tuple[TimerRows, Sequence[Hashable] | None]:
    """Timers of a bucket in the order of their keys."""
    owners, times, numbers = rows_of_timers(timers)
    order = order_by(owners)
    namespaces = None if timers is None or timers[3] is None else [timers[3][i] for i in order.tolist()]
    return (owners[order], times[order], numbers[order]), namespaces


def _count_of(timers: Parts) -> int:
    return sum(len(owners) for (owners, _, _), _ in timers)


def _lists(timers: TimerRows, namespaces: Sequence[Hashable] | None, count: int) -> pa.Array:
    """Timers of a kind as a column of `count` rows."""
    owners, times, numbers = timers
    parts: dict[str, pa.Array] = {"time": pa.array(times), "number": pa.array(numbers)}
    if namespaces is not None and all(map(_has_whole_bounds, namespaces)):
        parts |= {name: pa.array([getattr(one, name) for one in namespaces], pa.int64()) for name in ("start", "end")}
    elif namespaces is not None:
        pickles = {one: dumps(one) for one in dict.fromkeys(namespaces)}
        parts["namespace"] = pa.array([pickles[one] for one in namespaces], pa.binary())
    offsets = np.searchsorted(owners, np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.StructArray.from_arrays([*parts.values()], names=[*parts]))


def _has_whole_bounds(namespace: Hashable) -> bool:
    """Whether a namespace is a window between two times of 64 bits."""
    return type(namespace) is TimeWindow and all(
        type(bound) is int and MIN_MS <= bound <= MAX_MS for bound in (namespace.start, namespace.end)
    )


def _timers_of(rows: pa.Table, name: str, load: Callable[[bytes], Any]) -> tuple[TimerRows, Sequence[Hashable] | None]:
    """The timers of a column of lists; none if there is no such column."""
    is_spaced = name in _SPACED_TIMERS
    if name not in rows.column_names:
        return _NO_TIMERS, [] if is_spaced else None
    lists = rows.column(name).combine_chunks()
    counts = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    values = lists.flatten()
    parts = dict(zip([field.name for field in values.type], values.flatten(), strict=True))
    times, numbers = (parts[part].to_numpy(zero_copy_only=False) for part in ("time", "number"))
    namespaces: Sequence[Hashable] | None = None
    if "start" in parts:
        namespaces = list(map(TimeWindow, parts["start"].to_pylist(), parts["end"].to_pylist()))
    elif "namespace" in parts:
        pickles = parts["namespace"].to_pylist()
        known = {pickle: load(pickle) for pickle in dict.fromkeys(pickles)}
        namespaces = [known[pickle] for pickle in pickles]
    return (np.repeat(np.arange(len(lists)), counts), times, numbers), namespaces
