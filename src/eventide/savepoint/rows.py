"""Rows of a savepoint: their columns, and state by key to rows and from rows to the state of another subtask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import type_info_from_arrow
from eventide.errors import EventideError
from eventide.pickling.pickles import dumps, is_pickle, loads, plain_or
from eventide.pickling.stand_ins import dumps_anyway, loads_anyway
from eventide.runtime.columnar.layout import slices_by
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import groups_of_hashes, hashes_of, stable_hash
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import KINDS_OF_TIME, PLAIN, TIMES, Bucket, Column
from eventide.runtime.state.bucket_store import BucketStore, read_buckets
from eventide.runtime.state.chunks import StoredChunks
from eventide.runtime.state.extents import RowStore
from eventide.runtime.state.rows_of_keys import buckets_of, put_buckets, rows_of_timers, timer_columns
from eventide.runtime.state.timers import Numbers, TimerColumns
from eventide.runtime.window.window_store import Chunk, decode_windows, encode_windows, size_of

VALUE, EVENT_TIMER, CLOCK_TIMER, WINDOW = "value", "event timer", "clock timer", "window"
"""The kinds of rows. That of a window holds what one of its chunks has of a key."""

TIMERS = (EVENT_TIMER, CLOCK_TIMER)
"""The kinds of timers, in the order in which state has them."""

BROADCAST = "broadcast/"
"""The beginning of the name of state by key that every subtask has."""

KEYED = pa.schema(
    [
        ("operator", pa.string()),
        ("part", pa.string()),
        ("kind", pa.string()),
        ("key_group", pa.int32()),
        ("key_hash", pa.uint64()),
        ("key", pa.string()),
        ("namespace", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("time_ms", pa.int64()),
        ("number", pa.int64()),
        ("row", pa.int64()),
        ("chunk", pa.int32()),
        ("key_pickle", pa.binary()),
        ("namespace_pickle", pa.binary()),
        ("value_pickle", pa.binary()),
    ]
)
"""State by key.

``part`` is empty, or names the broadcast state. ``key_group`` and ``key_hash`` are null where the hash of a key is not
known without its class. ``namespace`` is the window. ``number`` says in which order timers were set; ``row`` and
``chunk`` where the content of a fixed window lies, whose number is its namespace. The pickles are read; ``key``,
``namespace`` and ``value`` are texts for people, and a value that is not a plain one has none.
"""

KEPT = pa.schema(
    [
        field.with_type(pa.large_binary()) if field.type == pa.binary() else field
        for field in KEYED
        if field.name not in {"key", "namespace", "value"}
    ]
)
"""Columns that a job reads from files; pickles of a subtask may be more than 2 GB together."""

SUBTASK = "subtask"
"""The column beside them that says which subtask wrote a row, which the name of its file ends with."""

READ = KEPT.append(pa.field(SUBTASK, pa.int64()))

TASKS = pa.schema([("operator", pa.string()), ("subtask", pa.int32()), ("name", pa.string()), ("content", pa.binary())])
"""Small values in the state of a subtask: JSON, but for the user-defined generators."""

Small: TypeAlias = tuple[str, int, str, bytes]
"""A row of what is small: operator, subtask, name and content."""

GROUP, ROW, CHUNK, DUE = "__group", "__row", "__chunk", "__due"
"""The columns of a table beside its own: the key group; and the row and the chunk that it lies in, or, where it lies in
buckets, when the earliest of these is due.
"""

PART = b"part"
"""Under this, the schema of a table names the part of the operator's state that it is."""

_LONGEST = 1_000
_NOT_PLAIN = object()
_ROWS_AT_ONCE = 65_536
_NUMBER = "number of chunk"


def text_of(value: object) -> str | None:
    """A key or a namespace for people, as Python writes it; None if its class cannot do that."""
    with suppress(Exception):
        return repr(value)[:_LONGEST]
    return None


def text_of_value(pickled: bytes) -> str | None:
    """A plain value for people; None for an object of a class, which was not looked at.

    >>> from eventide.pickling.pickles import dumps
    >>> text_of_value(dumps(("a", 1))), text_of_value(dumps(TypeError()))
    ("('a', 1)", None)
    """
    value = plain_or(pickled, _NOT_PLAIN)
    return None if value is _NOT_PLAIN else text_of(value)


class KeyRows:
    """Makes rows of the keys of an operator, or of a part of its state.

    Args:
        operator: its id.
        part: the part; empty for its own keys.
        max_parallelism: the number of key groups.
    """

    def __init__(self, operator: str, part: str, max_parallelism: int) -> None:
        self._of_all = {"operator": operator, "part": part}
        self._max_parallelism = max_parallelism

    def of(self, keys: Sequence[Any], hashes: pa.Array) -> pa.Table:
        """Columns that rows of some keys have in common; a hash is null where the class of a key is not here."""
        known = hashes.fill_null(0).to_numpy(zero_copy_only=False)
        groups = groups_of_hashes(known, self._max_parallelism).astype(np.int32)
        are_unknown = hashes.is_null().to_numpy(zero_copy_only=False)
        pickle = dumps if _are_plain(keys) else dumps_anyway
        return pa.table(
            {
                "key_group": pa.array(groups, mask=are_unknown),
                "key_hash": hashes,
                "key": pa.array(_texts_of(keys), pa.string()),
                "key_pickle": pa.array(list(map(pickle, keys)), pa.binary()),
            }
        )

    def rows(self, of_keys: pa.Table, kind: str, **of_rows: Any) -> pa.Table:
        """Rows of a kind: what each has of its key, and columns beside that, or a value that all rows have."""
        same, count = {**self._of_all, "kind": kind, **of_rows}, len(of_keys)
        arrays = []
        for field in KEYED:
            found = of_keys.column(field.name) if field.name in of_keys.column_names else same.get(field.name)
            if isinstance(found, pa.Array | pa.ChunkedArray):
                arrays.append(found)
            elif found is None:
                arrays.append(pa.nulls(count, field.type))
            else:
                arrays.append(pa.repeat(pa.scalar(found, field.type), count))
        return pa.table(arrays, schema=KEYED)


def rows_of_buckets(store: BucketStore, keys: KeyRows) -> Iterator[pa.Table]:
    """Give the rows of keyed state, bucket by bucket."""
    for content in store.contents():
        for bucket in read_buckets(content, loads_anyway):
            yield from _rows_of_bucket(bucket, keys)


def rows_of_extents(backend: Backend, keys: KeyRows) -> Iterator[pa.Table]:
    """Give the rows of keyed state that lies in extents."""
    for bucket in buckets_of(backend, loads_anyway):
        yield from _rows_of_bucket(bucket, keys)


def rows_of_windows(store: StoredChunks, keys: KeyRows) -> Iterator[pa.Table]:
    """Give the rows of fixed windows of objects, chunk by chunk; those of tables are left out."""
    for row in store.rows():
        for number, content in enumerate(store.contents(row)):
            for window, by_key in (decode_windows(content, loads_anyway) if is_pickle(content) else {}).items():
                of_keys = keys.of([*by_key], pa.array(map(_hash, by_key), pa.uint64()))
                kept = _values(list(map(dumps_anyway, by_key.values())), are_pickled=True)
                lies = {"row": row, "chunk": number, **_namespaces([window] * len(by_key))}
                yield keys.rows(of_keys, WINDOW, **lies, **kept)


def keep_values(rows: pa.Table, backend: Backend) -> None:
    """Put values and timers into the keyed state of a subtask, which has none yet."""
    if not len(rows):
        return
    hashes = _hashes(rows)
    order = np.argsort(hashes, kind="stable")
    rows, hashes = rows.take(pa.array(order)), hashes[order]
    cuts = [0]
    while cuts[-1] < len(rows):  # the rows of one hash are not cut
        last = hashes[min(cuts[-1] + _ROWS_AT_ONCE, len(rows)) - 1]
        cuts.append(int(np.searchsorted(hashes, last, "right")))
    buckets = (_bucket(rows.slice(begin, end - begin), hashes[begin:end]) for begin, end in pairwise(cuts))
    last_number = pc.max(rows.column("number")).as_py() or 0
    put_buckets(RowStore(backend, len(TIMES)), buckets, [last_number] * KINDS_OF_TIME)


def keep_windows(rows: pa.Table, backend: Backend) -> None:
    """Put what windows hold into the chunks of a subtask, each chunk into that of its number."""
    store = StoredChunks(backend)
    for row, of_row in slices_by(rows.append_column(_NUMBER, rows.column("chunk").cast(pa.int64())), "row"):
        chunks = {number: _chunk(of_chunk) for number, of_chunk in slices_by(of_row, _NUMBER)}
        for i in range(max(chunks) + 1):
            chunk = chunks.get(i, {})
            store.put(row, i, encode_windows(chunk), size_of(chunk))
    store.flush()


def mine(rows: pa.Table, groups: range, max_parallelism: int) -> pa.Table:
    """The rows whose keys belong to some key groups; where a group is not known, the key says it."""
    found = rows.column("key_group")
    if found.null_count:
        found = pa.array(groups_of_hashes(_hashes(rows), max_parallelism))
    return where(rows, pc.and_(pc.greater_equal(found, groups.start), pc.less(found, groups.stop)))


def where(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows for which a truth value is true; the table itself if it is for all, which `filter` would copy."""
    return rows if pc.all(mask, min_count=0).as_py() else rows.filter(mask)


def elements_of(batch: pa.RecordBatch) -> list[Any]:
    """Each row as a `Row` with its fields by name.

    >>> import pyarrow as pa
    >>> elements_of(pa.RecordBatch.from_pylist([{"id": 1, "name": "a"}]))
    [Row(id=1, name='a')]
    """
    return type_info_from_arrow(batch.schema).from_arrow(batch.to_struct_array())


def _rows_of_bucket(bucket: Bucket, keys: KeyRows) -> Iterator[pa.Table]:
    # Places stand for keys, which may be of classes that are missing, and not equal to themselves then.
    of_keys = keys.of(bucket.keys, pa.array(bucket.hashes))
    for name, (owners, are_pickled, held) in bucket.values.items():
        mine = of_keys if owners is None else of_keys.take(pa.array(owners, pa.int64()))
        yield keys.rows(mine, VALUE, name=name, **_values(held, are_pickled=are_pickled))
    for name, (owners, are_pickled, held) in bucket.spaces.items():
        spaces = [loads_anyway(one) if are_pickled else one for one in held]
        places = np.repeat(np.arange(len(of_keys)) if owners is None else owners, list(map(len, spaces)))
        namespaces = _namespaces([space for one in spaces for space in one])
        values = _values([dumps_anyway(inner) for one in spaces for inner in one.values()], are_pickled=True)
        yield keys.rows(of_keys.take(pa.array(places, pa.int64())), VALUE, name=name, **namespaces, **values)
    for kind, parts in zip(TIMERS, bucket.timers, strict=True):
        for part in parts:
            if part is not None:
                places, times, numbers = rows_of_timers(part)
                namespaces = {} if part[3] is None else _namespaces(part[3])
                beside = {"time_ms": pa.array(times), "number": pa.array(numbers), **namespaces}
                yield keys.rows(of_keys.take(pa.array(places)), kind, **beside)


def _values(held: Sequence[Any], *, are_pickled: bool) -> dict[str, pa.Array]:
    pickles = held if are_pickled else list(map(dumps, held))
    texts = list(map(text_of_value, held)) if are_pickled else _texts_of(held)
    return {"value": pa.array(texts, pa.string()), "value_pickle": pa.array(pickles, pa.binary())}


def _namespaces(spaces: Sequence[Hashable]) -> dict[str, pa.Array]:
    of_each = {space: (text_of(space), dumps_anyway(space)) for space in dict.fromkeys(spaces)}
    columns = zip(*(of_each[space] for space in spaces), strict=True) if spaces else ([], [])
    kinds = {"namespace": pa.string(), "namespace_pickle": pa.binary()}
    return {name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)}


def _texts_of(values: Sequence[Any]) -> list[str | None]:
    """:func:`text_of` of each."""
    if _are_plain(values):
        with suppress(ValueError):  # an integer of more digits than Python writes
            return [repr(value)[:_LONGEST] for value in values]
    return list(map(text_of, values))


def _are_plain(values: Sequence[Any]) -> bool:
    return PLAIN.issuperset(map(type, values))


def _chunk(rows: pa.Table) -> Chunk:
    chunk: Chunk = {}
    of_rows = zip(*(rows.column(f"{name}_pickle").to_pylist() for name in ("namespace", "key", "value")), strict=True)
    for namespace, key, value in of_rows:
        chunk.setdefault(loads(namespace), {})[loads(key)] = loads(value)
    return chunk


def _hashes(rows: pa.Table) -> Hashes:
    """The hash of the key of each row; where it is not known, the key says it."""
    found = rows.column("key_hash").combine_chunks()
    hashes: Hashes = found.fill_null(0).to_numpy(zero_copy_only=False)
    if found.null_count:
        unknown = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))
        pickles = rows.column("key_pickle").take(pa.array(unknown)).combine_chunks().dictionary_encode()
        of_each = hashes_of(list(map(loads, pickles.dictionary.to_pylist())))
        hashes = hashes.copy()
        hashes[unknown] = of_each[pickles.indices.to_numpy()]
    return hashes


def _bucket(rows: pa.Table, hashes: Hashes) -> Bucket:
    """The keys of some rows, whose hashes are in order."""
    pickles = rows.column("key_pickle").combine_chunks().dictionary_encode()
    places = pickles.indices.to_numpy().astype(np.int64)
    kinds, are_spaced = rows.column("kind"), pc.is_valid(rows.column("namespace_pickle"))

    def at(kind: str, *, spaced: bool) -> Numbers:
        is_one = pc.and_(pc.equal(kinds, kind), are_spaced if spaced else pc.invert(are_spaced))
        return np.flatnonzero(is_one.to_numpy())

    return Bucket(
        list(map(loads, pickles.dictionary.to_pylist())),
        hashes[np.unique(places, return_index=True)[1]],
        dict(_plain_values(rows, places, at(VALUE, spaced=False))),
        dict(_spaced_values(rows, places, at(VALUE, spaced=True))),
        [
            tuple(_timers(rows, places, at(kind, spaced=spaced), spaced=spaced) for spaced in (False, True))
            for kind in TIMERS
        ],
    )


def _plain_values(rows: pa.Table, places: Numbers, at: Numbers) -> Iterator[tuple[str, Column]]:
    """Give the values without a namespace by name, with the places of their keys."""
    names = rows.column("name").take(pa.array(at)).combine_chunks().dictionary_encode()
    for code, name in enumerate(names.dictionary.to_pylist()):
        of_name = at[names.indices.to_numpy() == code]
        pickles = rows.column("value_pickle").take(pa.array(of_name)).to_pylist()
        owners = places[of_name].tolist()
        if type(loads(pickles[0])) in PLAIN:
            held = list(map(loads, pickles))
            if _are_plain(held):
                yield name, (owners, False, held)
                continue
        yield name, (owners, True, pickles)


def _spaced_values(rows: pa.Table, places: Numbers, at: Numbers) -> Iterator[tuple[str, Column]]:
    """Give the values with a namespace by name, as pickles of dicts by namespace, with the places of their keys."""
    some = rows.select(["name", "namespace_pickle", "value_pickle"]).take(pa.array(at))
    by_name: defaultdict[str, defaultdict[int, dict[Hashable, Any]]] = defaultdict(lambda: defaultdict(dict))
    of_rows = zip(*(column.to_pylist() for column in some.columns), strict=True)
    for place, (name, namespace, value) in zip(places[at].tolist(), of_rows, strict=True):
        by_name[name][place][loads(namespace)] = loads(value)
    for name, by_place in by_name.items():
        yield name, ([*by_place], True, list(map(dumps, by_place.values())))


def _timers(rows: pa.Table, places: Numbers, at: Numbers, *, spaced: bool) -> TimerColumns | None:
    some = rows.select(["time_ms", "number", "namespace_pickle"]).take(pa.array(at))
    times, numbers = (some.column(name).to_numpy() for name in ("time_ms", "number"))
    namespaces = list(map(loads, some.column("namespace_pickle").to_pylist())) if spaced else None
    return timer_columns(places[at], times, numbers, namespaces)


def _hash(key: object) -> int | None:
    """The hash of a key; None if its class is not here."""
    try:
        return stable_hash(key)
    except EventideError:
        return None
