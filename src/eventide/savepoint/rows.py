"""Rows of a savepoint: their columns, and state by key to rows and from rows to the state of another subtask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import type_info_from_arrow
from eventide.errors import EventideError, StateError
from eventide.pickling.pickles import dumps, is_pickle, loads, plain_loads
from eventide.pickling.stand_ins import dumps_anyway, loads_anyway
from eventide.runtime.columnar.layout import slices_by
from eventide.runtime.elements.keys import group_of, stable_hash
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import Bucket, Column, owned
from eventide.runtime.state.bucket_store import BucketStore, read_buckets
from eventide.runtime.state.chunks import StoredChunks
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.rows_of_keys import buckets_of
from eventide.runtime.state.timers import NUMBERS, PLACES, TimerColumns, timers_of
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
StateRow: TypeAlias = dict[str, Any]
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
    try:
        return text_of(plain_loads(pickled))
    except StateError:
        return None


class KeyRows:
    """The keys of an operator as they are written into rows."""

    def __init__(self, operator: str, part: str, max_parallelism: int) -> None:
        self._of_all = {**dict.fromkeys(KEYED.names), "operator": operator, "part": part}
        self._max_parallelism = max_parallelism

    def columns(self, key: object, key_hash: int | None) -> StateRow:
        """A row for a key, but for what is kept of it."""
        group = None if key_hash is None else group_of(key_hash, self._max_parallelism)
        of_key = {"key": text_of(key), "key_pickle": dumps_anyway(key), "key_hash": key_hash, "key_group": group}
        return {**self._of_all, **of_key}


def rows_of_buckets(store: BucketStore, keys: KeyRows) -> Iterator[StateRow]:
    """Give the rows of keyed state, bucket by bucket."""
    for content in store.contents():
        for bucket in read_buckets(content, loads_anyway):
            yield from _rows_of_bucket(bucket, keys)


def rows_of_extents(backend: Backend, keys: KeyRows) -> Iterator[StateRow]:
    """Give the rows of keyed state that lies in extents."""
    for bucket in buckets_of(backend, loads_anyway):
        yield from _rows_of_bucket(bucket, keys)


def rows_of_windows(store: StoredChunks, keys: KeyRows) -> Iterator[StateRow]:
    """Give the rows of fixed windows of objects, chunk by chunk; those of tables are left out."""
    for row in store.rows():
        for number, content in enumerate(store.contents(row)):
            for window, by_key in (decode_windows(content, loads_anyway) if is_pickle(content) else {}).items():
                for key, kept in by_key.items():
                    of_key = keys.columns(key, _hash(key))
                    lies = {"row": row, "chunk": number, **_namespace(window)}
                    yield {**of_key, "kind": WINDOW, **lies, **_value(dumps_anyway(kept))}


def keep_values(rows: Sequence[StateRow], backend: Backend, max_parallelism: int) -> None:
    """Put values and timers into the keyed state of a subtask, beside those that were put before."""
    if rows:
        state = KeyedState(backend, max_parallelism)
        state.adopt(*_bucket(rows))
        state.flush()


def keep_windows(rows: pa.Table, own: Callable[[pa.Table], list[StateRow]], backend: Backend) -> None:
    """Put all that windows hold into the chunks of a subtask, each chunk into that of its number.

    Args:
        rows: those of windows, of all keys.
        own: those of the subtask, of some that belong to one chunk.
        backend: where to.
    """
    store = StoredChunks(backend)
    for row, of_row in slices_by(rows.append_column(_NUMBER, rows.column("chunk")), "row"):
        chunks = {number: _chunk(own(of_chunk)) for number, of_chunk in slices_by(of_row, _NUMBER)}
        for i in range(max((number + 1 for number, chunk in chunks.items() if chunk), default=0)):
            chunk = chunks.get(i, {})
            store.put(row, i, encode_windows(chunk), size_of(chunk))
    store.flush()


def mine(rows: Iterable[StateRow], groups: range, max_parallelism: int) -> list[StateRow]:
    """The rows whose keys belong to some key groups; where a group is not known, the key says it."""
    known: dict[bytes, int] = {}
    found = []
    for row in rows:
        group = row["key_group"]
        if group is None:
            key = row["key_pickle"]
            if key not in known:
                known[key] = group_of(stable_hash(loads(key)), max_parallelism)
            group = known[key]
        if group in groups:
            found.append(row)
    return found


def elements_of(batch: pa.RecordBatch) -> list[Any]:
    """Each row as a `Row` with its fields by name.

    >>> import pyarrow as pa
    >>> elements_of(pa.RecordBatch.from_pylist([{"id": 1, "name": "a"}]))
    [Row(id=1, name='a')]
    """
    return type_info_from_arrow(batch.schema).from_arrow(batch.to_struct_array())


def _rows_of_bucket(bucket: Bucket, keys: KeyRows) -> Iterator[StateRow]:
    # Places stand for keys, which may be of classes that are missing, and not equal to themselves then.
    places = [*range(len(bucket.keys))]
    of_key = [keys.columns(key, key_hash) for key, key_hash in zip(bucket.keys, bucket.hashes.tolist(), strict=True)]
    for name, (owners, are_pickled, values) in bucket.values.items():
        for place, value in owned(places, owners, values):
            yield {**of_key[place], "kind": VALUE, "name": name, **_value(value if are_pickled else dumps(value))}
    for name, (owners, are_pickled, values) in bucket.spaces.items():
        for place, value in owned(places, owners, values):
            spaces = loads_anyway(value) if are_pickled else value
            for space, inner in spaces.items():
                kept = {"kind": VALUE, "name": name, **_namespace(space), **_value(dumps_anyway(inner))}
                yield {**of_key[place], **kept}
    for kind, (plain, spaced) in zip(TIMERS, bucket.timers, strict=True):
        for time_ms, place, number in () if plain is None else timers_of(places, plain):
            yield {**of_key[place], "kind": kind, "time_ms": time_ms, "number": number}
        for time_ms, (place, space), number in () if spaced is None else timers_of(places, spaced):
            yield {**of_key[place], "kind": kind, "time_ms": time_ms, "number": number, **_namespace(space)}


def _chunk(rows: Sequence[StateRow]) -> Chunk:
    chunk: Chunk = {}
    for row in rows:
        by_key = chunk.setdefault(loads(row["namespace_pickle"]), {})
        by_key[loads(row["key_pickle"])] = loads(row["value_pickle"])
    return chunk


def _bucket(rows: Sequence[StateRow]) -> tuple[Bucket, int]:
    """All keys as one bucket, and the highest number of a timer of theirs."""
    places: dict[bytes, int] = {}
    hashes: list[int] = []
    values: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    spaces: defaultdict[str, dict[int, dict[Hashable, Any]]] = defaultdict(dict)
    timers: dict[str, tuple[list[StateRow], list[StateRow]]] = {kind: ([], []) for kind in TIMERS}
    for row in rows:
        place = places.setdefault(row["key_pickle"], len(places))
        if place == len(hashes):
            known = row["key_hash"]
            hashes.append(stable_hash(loads(row["key_pickle"])) if known is None else known)
        if row["kind"] != VALUE:
            timers[row["kind"]][row["namespace_pickle"] is not None].append({**row, "place": place})
        elif row["namespace_pickle"] is None:
            values[row["name"]][place] = row["value_pickle"]
        else:
            space = loads(row["namespace_pickle"])
            spaces[row["name"]].setdefault(place, {})[space] = loads(row["value_pickle"])
    bucket = Bucket(
        [loads(key) for key in places],
        np.array(hashes, np.uint64),
        {name: _column(of_key) for name, of_key in values.items()},
        {name: _column({place: dumps(of) for place, of in of_key.items()}) for name, of_key in spaces.items()},
        [(_timers(plain), _timers(spaced)) for plain, spaced in timers.values()],
    )
    return bucket, max((row["number"] for row in rows if row["number"] is not None), default=0)


def _column(of_key: Mapping[int, bytes]) -> Column:
    return [*of_key], True, [*of_key.values()]


def _timers(rows: Sequence[StateRow]) -> TimerColumns | None:
    """The timers of rows, all of which have a namespace, or none has."""
    if not rows:
        return None
    places, times, numbers = (
        np.array([row[name] for row in rows], kind).tobytes()
        for name, kind in (("place", PLACES), ("time_ms", NUMBERS), ("number", NUMBERS))
    )
    pickles = [row["namespace_pickle"] for row in rows]
    return places, times, numbers, None if pickles[0] is None else [*map(loads, pickles)]


def _namespace(space: object) -> StateRow:
    return {"namespace": text_of(space), "namespace_pickle": dumps_anyway(space)}


def _value(pickled: bytes) -> StateRow:
    return {"value": text_of_value(pickled), "value_pickle": pickled}


def _hash(key: object) -> int | None:
    """The hash of a key; None if its class is not here."""
    try:
        return stable_hash(key)
    except EventideError:
        return None
