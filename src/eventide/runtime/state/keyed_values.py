"""One value of each key, for operators that work on columns: rows in extents, which are read when a key is touched.

A key or a value that a column would not give back as it is lies in its row as a pickle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.common.typeinfo.widening import Conversion, conversion
from eventide.errors import DataError
from eventide.pickling.pickles import loads
from eventide.runtime.elements.elements import columns_of_fields, without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import distinct
from eventide.runtime.state.at_hand import Flags
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    HASH,
    TIMES,
    Bucket,
    PageTypes,
)
from eventide.runtime.state.bucket_store import BucketStore, NoColumns
from eventide.runtime.state.declared import VALUE, DeclaredTypes
from eventide.runtime.state.extents import NEVER, RowStore, are_in
from eventide.runtime.state.rows_of_keys import (
    ANYTHING,
    KEYS,
    as_stored,
    bucket_of,
    buckets_of,
    living_of,
    read_rows,
)
from eventide.runtime.state.timers import Numbers

_NO_HASHES: Hashes = np.zeros(0, np.uint64)


class KeyedValues:
    """The state of one name, and nothing else, of the keys that a micro-batch touches.

    Args:
        backend: where it lies.
        key: the type of the keys.
        name: the name of the state.
        kind: the type of the values.
        stored_as: the kind of state.

    Raises:
        StateError: if what is stored is of another kind of state, or has a type that does not widen to this one.

    >>> from eventide.common.typeinfo import Types
    >>> from eventide.runtime.state.backend import MemoryBackend
    >>> values = KeyedValues(MemoryBackend(), Types.STRING(), "n", Types.LONG())
    >>> hashes = np.array([7], np.uint64)
    >>> _, (keys,), found = values.of(hashes)
    >>> found.to_pylist()
    []
    >>> values.put([pa.array(["a"])], hashes, pa.array([1]))
    >>> values.flush()
    >>> _, (keys,), found = values.of(hashes)
    >>> keys.to_pylist(), found.to_pylist(), values.count
    (['a'], [1], 1)
    """

    def __init__(
        self, backend: Backend, key: TypeInformation, name: str, kind: TypeInformation, stored_as: str = VALUE
    ) -> None:
        self._types = PageTypes(key, ((name, kind),))
        self._store = RowStore(backend, len(TIMES))
        self._declared = DeclaredTypes(backend)
        self._forget()
        self._convert = self._declared.declare(name, kind, stored_as)
        former = BucketStore(backend)
        if former.entries:
            for buckets in living_of(former):
                for bucket, living in buckets:
                    self._put_objects(bucket, living.tolist(), self._convert)
            former.delete_all()
        if self._convert is not None:
            self._read(self._store.others())

    def _forget(self) -> None:
        """Have nothing at hand."""
        self._rows: dict[PageTypes, pa.Table] = {self._types: pa.Table.from_batches([], self._types.schema)}
        self._found = _NO_HASHES

    @property
    def count(self) -> int:
        """The number of keys; asked after :meth:`flush`."""
        return int(self._store.user.get(KEYS, 0))

    def of(self, hashes: Hashes) -> tuple[Hashes, list[pa.Array], pa.Array]:
        """The keys that have some hashes: their own hashes, their parts, and their values.

        Raises:
            NoColumns: if columns would not give them back as they are.
        """
        asked = distinct(hashes)
        self._read(asked)
        if any(types != self._types and _are_of(rows, asked).any() for types, rows in self._rows.items()):
            raise NoColumns("state is stored that is not as columns of its declared type hold it")
        rows = self._rows[self._types]
        found = _batch(_some(rows, _are_of(rows, asked)))
        return found.column(HASH).to_numpy(), self._types.parts_of(found), self._types.values_of(found)[0]

    def put(self, keys: Sequence[pa.Array], hashes: Hashes, values: pa.Array) -> None:
        """Have these keys, and their values, in place of all that have these hashes; null stands for no value."""
        rows = pa.Table.from_batches([self._types.rows(keys, hashes, [values])])
        own = self._rows[self._types]
        self._rows[self._types] = _some(own, ~_are_of(own, distinct(hashes)))
        self._add(self._types, rows.filter(values.is_valid()) if values.null_count else rows)

    def take(self, hashes: Hashes) -> list[Bucket]:
        """Take out, as objects, the keys that have some hashes."""
        asked = distinct(hashes)
        self._read(asked)
        taken = []
        for types, rows in self._rows.items():
            is_taken = _are_of(rows, asked)
            if is_taken.any():
                taken.append(bucket_of(as_stored(types, _some(rows, is_taken))))
                self._rows[types] = _some(rows, ~is_taken)
        return taken

    @without_collection()
    def adopt(self, backend: Backend) -> None:
        """Take over all that a backend of keyed state has, of which none is left."""
        for bucket in buckets_of(backend):
            self._put_objects(bucket, range(len(bucket.keys)))
        RowStore(backend).delete_all()

    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        self._have_twins_alike()
        hashes = [rows.column(HASH).to_numpy() for rows in self._rows.values()]
        written = distinct(np.concatenate(hashes))
        self._read(written)
        for types, rows in self._rows.items():
            self._store.write(as_stored(types, rows), [np.full(len(rows), NEVER)] * len(TIMES))
        self._store.delete(distinct(self._found[~are_in(self._found, written)]))
        self._store.user[KEYS] = self.count + sum(map(len, hashes)) - len(self._found)
        self._store.flush()
        self._declared.flush()
        self._forget()

    def _read(self, hashes: Hashes) -> None:
        """Have at hand the keys of some hashes, which are in order."""
        for _, rows in self._store.read(hashes):
            stored = read_rows(rows)
            types, own = stored.types, self._types.values[0]
            self._found = np.concatenate([self._found, rows.column(HASH).to_numpy()])
            if types.key in (self._types.key, ANYTHING) and types.values in ((own,), (own, (own[0], ANYTHING))):
                self._add(types, pa.Table.from_batches([stored.rows]))
            else:
                typed = [kind for name, kind, _ in stored.values() if name == own[0] and not kind.is_pickled]
                convert = conversion(typed[0], own[1]) if typed else self._convert
                self._put_objects(bucket_of(rows), range(len(rows)), convert)

    def _add(self, types: PageTypes, rows: pa.Table) -> None:
        known = self._rows.get(types)
        self._rows[types] = rows if known is None or not len(known) else pa.concat_tables([known, rows])

    def _put_objects(self, bucket: Bucket, places: Sequence[int], convert: Conversion | None = None) -> None:
        """Have the keys at some places of a bucket, each in the form that gives it back as it is."""
        name, kind = self._types.values[0]
        keys, hashes, values = _values_in(bucket, name, places)
        if convert is not None:
            values = list(map(convert, values))
        are_keys, are_values = _held(self._types.key, keys), _held(kind, values)
        for with_keys, with_values in product((True, False), repeat=2):
            at = np.flatnonzero((are_keys == with_keys) & (are_values == with_values))
            if len(at):
                self._put_as(with_keys, with_values, _at(keys, at), hashes[at], _at(values, at))

    def _put_as(self, with_keys: bool, with_values: bool, keys: list[Any], hashes: Hashes, values: list[Any]) -> None:
        """Have keys and values, each of them in columns or as pickles."""
        ((name, kind),) = self._types.values
        types = PageTypes(
            self._types.key if with_keys else ANYTHING, ((name, kind), *(() if with_values else ((name, ANYTHING),)))
        )
        parts = columns_of_fields(types.key.to_arrow(keys), types.key)
        if with_values:
            columns = [kind.to_arrow(values)]
        else:
            columns = [pa.nulls(len(values), kind.arrow_type()), ANYTHING.to_arrow(values)]
        self._add(types, pa.Table.from_batches([types.rows(parts, hashes, columns)]))

    def _have_twins_alike(self) -> None:
        """Have keys of one hash in one form: the store has the rows of a hash side by side."""
        if len(self._rows) == 1:
            return
        hashes = np.sort(np.concatenate([distinct(rows.column(HASH).to_numpy()) for rows in self._rows.values()]))
        twins = hashes[1:][hashes[1:] == hashes[:-1]]
        for bucket in self.take(twins) if len(twins) else ():
            self._put_as(False, False, *_values_in(bucket, self._types.values[0][0], range(len(bucket.keys))))


def _batch(rows: pa.Table) -> pa.RecordBatch:
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema.remove_metadata())


def _some(rows: pa.Table, those: Flags) -> pa.Table:
    return rows if those.all() else rows.filter(pa.array(those))


def _are_of(rows: pa.Table, hashes: Hashes) -> Flags:
    """Which rows have one of some hashes, which are in order."""
    return are_in(rows.column(HASH).to_numpy(), hashes)


def _values_in(bucket: Bucket, name: str, places: Sequence[int]) -> tuple[list[Any], Hashes, list[Any]]:
    """The keys at some places of a bucket that have a value under a name, their hashes, and the values."""
    owners, are_pickled, held = bucket.values.get(name, ([], False, []))
    wanted = {*places}
    found = zip(range(len(held)) if owners is None else owners, held, strict=True)
    some = [(place, value) for place, value in found if place in wanted]
    at = [place for place, _ in some]
    values = [loads(value) if are_pickled else value for _, value in some]
    return _at(bucket.keys, at), bucket.hashes[at] if at else _NO_HASHES, values


def _at(objects: list[Any], places: Numbers | Sequence[int]) -> list[Any]:
    return [objects[place] for place in places]


def _held(kind: TypeInformation, objects: list[Any]) -> Flags:
    """Which objects a column of a type gives back as they are."""
    if _gives_back(kind, objects):
        return np.ones(len(objects), bool)
    return np.array([_gives_back(kind, [one]) for one in objects], bool)


def _gives_back(kind: TypeInformation, objects: list[Any]) -> bool:
    if not kind.keeps(objects) or (isinstance(kind, CompositeTypeInfo) and None in objects):
        return False
    try:
        kind.to_arrow(objects)
    except (DataError, ValueError, OverflowError):
        return False
    return True
