"""State and timers of many keys at once, as columns: rows in extents, which are read when their keys are touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MAX_MS
from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import Conversion, conversion, has_text
from eventide.errors import DataError, StateError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.elements import columns_of_fields, types_of_fields, without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import distinct, firsts, order_by
from eventide.runtime.metrics import KEYS, TIMERS
from eventide.runtime.state.at_hand import Flags, Name, RowsAtHand, Values
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import EXPIRY, HASH, KINDS_OF_TIME, TIMES, Bucket, PageTypes, read_living
from eventide.runtime.state.bucket_store import BucketStore, NoColumns
from eventide.runtime.state.declared import VALUE, DeclaredTypes, widened
from eventide.runtime.state.expiring import SUFFIX, expiry_of, unexpired, without_times
from eventide.runtime.state.extents import NEVER, RowStore, are_in
from eventide.runtime.state.growing import GrowingArray, GrowingColumn
from eventide.runtime.state.rows_of_keys import (
    ANYTHING,
    NUMBERS_OF_TIMERS,
    described,
    lists_of_timers,
    page_of,
    rows_of_timers,
    timer_columns,
)
from eventide.runtime.state.timer_arrays import TimerArrays
from eventide.runtime.state.timers import NO_PLACE, Numbers, Rows

_KEYS, _TIMERS = "keys", "timers"
_BUCKETS_AT_ONCE = 1_024
_NO_ROWS = np.zeros(0, np.int64)
_NO_HASHES: Hashes = np.zeros(0, np.uint64)
_LAST = NEVER - 1
"""The due time of the last timers there are, as a row that is due later is never due."""


class KeyedColumns(RowsAtHand[GrowingColumn]):
    """The keys that were touched, with their values by name and their timers, all in columns.

    What an operator on objects has left in buckets becomes rows as a whole when the first of it is needed. A function
    on columns knows no namespaces.

    Args:
        backend: where it is stored.
        key: the type of the keys.
        max_parallelism: the number of key groups.
        in_batch: as in `KeyedState`.

    Attributes:
        timers: those of event time, and of processing time.
    """

    def __init__(self, backend: Backend, key: TypeInformation, max_parallelism: int, *, in_batch: bool = False) -> None:
        super().__init__(max_parallelism, in_batch=in_batch)
        self._backend = backend
        self._key = key
        self._kinds: dict[str, TypeInformation] = {}
        self._conversions: dict[str, Conversion] = {}
        self._declared = DeclaredTypes(backend)
        self.timers = [TimerArrays(self, kind, 0) for kind in range(KINDS_OF_TIME)]
        self._forget()

    def _forget(self) -> None:
        super()._forget()
        self._keys = [GrowingColumn(kind.arrow_type()) for kind in types_of_fields(self._key)]
        self._asked = _NO_HASHES
        self._stored_timers = GrowingArray(np.int64)  # of each key how many are stored; -1 for a key that is not
        for timers in self.timers:
            timers.clear()

    @cached_property
    def _store(self) -> RowStore:
        """Where all is, opened when the names and types of the program are known."""
        store = RowStore(self._backend, len(TIMES))
        buckets = BucketStore(self._backend, 1, TIMES)
        numbers = store.user.get(NUMBERS_OF_TIMERS) or buckets.numbers or [0] * KINDS_OF_TIME
        for timers, number in zip(self.timers, numbers, strict=True):
            timers.number = number
        if buckets.entries:
            self._adopt(buckets, store)
        return store

    def declare(self, name: str, type_info: TypeInformation, kind: str = VALUE) -> None:
        """Say the type and the kind of what is stored under a name, before any key is touched.

        Raises:
            StateError: if what is stored is of another kind, or has a type that does not widen to this one.
        """
        self._kinds[name] = type_info if has_text(type_info) else ANYTHING
        convert = self._declared.declare(name, type_info, kind)
        if convert is not None:
            self._conversions |= {
                name: convert,
                name + SUFFIX: partial(widened, convert=convert, expires=True),
            }

    def places_of(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Numbers:
        """Have keys at hand, each of which is given once, as the hash and the parts of each; and give their places.

        Raises:
            NoColumns: if what is stored is not as columns hold it.
        """
        self._have(distinct(hashes))
        places = self._index.find(hashes)
        known = np.flatnonzero(places != NO_PLACE)
        others = ~alike([key.take(pa.array(known)) for key in keys], self.keys_at(places[known]))
        for row in known[others].tolist():
            twins = np.array(self._twins(hashes[row]))
            repeated = [key.take(pa.array(np.full(len(twins), row))) for key in keys]
            found = twins[alike(repeated, self.keys_at(twins))]
            places[row] = found[0] if len(found) else NO_PLACE
        new = np.flatnonzero(places == NO_PLACE)
        places[new] = np.arange(len(self), len(self) + len(new))
        if len(new):
            self._stored_timers.extend(-1, len(new))
            self._add(hashes[new], [key.take(pa.array(new)) for key in keys])
        return places

    def keys_at(self, places: Numbers) -> list[pa.Array]:
        """The keys at some places, by their parts."""
        return [part.take(places) for part in self._keys]

    def get(self, name: str, places: Numbers, kind: TypeInformation) -> pa.Array:
        """The values of the keys at some places under a name, as a column of its type; null for none.

        Raises:
            StateError: if a value that is stored is of another type.
        """
        typed = self._values.get((name, kind))
        found = pa.nulls(len(places), kind.arrow_type()) if typed is None else typed.at(places)
        for of_kind, values in self._of_name(name):
            rows = np.flatnonzero(values.where.array[places] != NO_PLACE) if of_kind != kind else _NO_ROWS
            if len(rows):
                objects = self._brought(name, of_kind.from_arrow(values.at(places[rows])), kind)
                order = np.arange(len(places))
                order[rows] = len(places) + np.arange(len(rows))
                found = pa.concat_arrays([found, objects]).take(pa.array(order))
        return found

    def put(self, name: str, places: Numbers, values: pa.Array, kind: TypeInformation) -> None:
        """Give the keys at some places values of a type under a name; null deletes. The last one of a key stays."""
        stored = self._kinds.get(name, kind)
        self._set(name, places, values if stored == kind else stored.to_arrow(kind.from_arrow(values)), stored)

    def clear(self, name: str, places: Numbers) -> None:
        """Delete what the keys at some places have under a name."""
        self.touch(places)
        for _, values in self._of_name(name):
            values.where.array[places] = NO_PLACE

    def remembered(self, places: Numbers) -> dict[Name, Numbers]:
        """Where the values of the keys at some places are, for :meth:`restore`: no value is changed in place."""
        return {name: values.where.array[places] for name, values in self._values.items()}

    def restore(self, places: Numbers, before: Mapping[Name, Numbers]) -> None:
        """Have the keys at some places have the values that they had before."""
        for name, values in self._values.items():
            values.where.array[places] = before.get(name, NO_PLACE)

    def touch(self, places: Numbers) -> None:
        """Take note that what the keys at some places have may have changed."""
        self._has_changed.array[places] = True

    def open_everything(self) -> None:
        """Have every key at hand."""
        self._have(self._store.others())

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time, because these fire now."""
        self.is_quiesced = self._in_batch
        self._have(self._store.due(kind, min(until_ms, _LAST)))

    def next_of_others(self, kind: int) -> int | None:
        """A time, in milliseconds, before which no timer of a kind fires of the keys that are not at hand; or None."""
        next_ms = self._store.next_of_others(kind)
        return MAX_MS if next_ms == _LAST else next_ms

    def held(self) -> dict[str, int]:
        """How many keys and timers there are; asked after a flush."""
        return {KEYS: self._store.user.get(_KEYS, 0), TIMERS: self._store.user.get(_TIMERS, 0)}

    def expire(self, clock_ms: int) -> None:
        """Forget what has expired of what an earlier program gave a time to live; call it before :meth:`flush`."""
        due = self._store.due(EXPIRY, clock_ms)
        self._have(due)
        self.touch(np.flatnonzero(are_in(self._hashes.array, due)))  # so that they say when something expires
        for name, values in self._expiring():
            owners = values.owners()
            before = ANYTHING.from_arrow(values.at(owners))
            now = [unexpired(stored, clock_ms) for stored in before]
            rows = [row for row, (one, other) in enumerate(zip(before, now, strict=True)) if one is not other]
            self._set(name, owners[rows], ANYTHING.to_arrow([now[row] for row in rows]), ANYTHING)

    @without_collection()
    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        self._put_changed(self._store)
        self._store.flush()
        self._declared.flush()
        self._forget()

    def _put_changed(self, store: RowStore) -> None:
        """Have the keys written that have changed."""
        changed = distinct(self._hashes.array[self._has_changed.array])
        if len(changed):
            timers = [_settled(of_kind.rows()) for of_kind in self.timers]
            mine = np.flatnonzero(are_in(self._hashes.array, changed))  # keys of one hash are written together
            rows = mine[self._have_anything([timers])[mine]]
            of_timers = self._write(store, rows, timers)
            store.delete(changed[~are_in(changed, distinct(self._hashes.array[rows]))])
            stored = self._stored_timers.array[mine]
            store.user[_KEYS] = store.user.get(_KEYS, 0) + len(rows) - int(np.count_nonzero(stored >= 0))
            store.user[_TIMERS] = store.user.get(_TIMERS, 0) + of_timers - int(stored[stored > 0].sum())
        store.user[NUMBERS_OF_TIMERS] = [of_kind.number for of_kind in self.timers]

    def _have(self, hashes: Hashes) -> None:
        """Have the keys of some hashes at hand, which are in order."""
        store = self._store
        new = hashes[~are_in(hashes, self._asked)]
        if not len(new):
            return
        self._asked = np.sort(np.concatenate([self._asked, new]))
        first = len(self)
        with without_collection():
            for _, rows in store.read(new):
                self._take_in(rows)
        self._forget_times(first)

    def _take_in(self, rows: pa.Table) -> None:
        """Have keys at hand as they were stored."""
        types, batch, timers, _ = page_of(rows)
        known = {name: kind for name, kind in types.values if not kind.is_pickled}
        keys = (
            types.parts_of(batch)
            if types.key == self._key
            else self._as_keys(types.key.from_arrow(types.keys_of(batch)))
        )
        places = self._new_places(batch.column(HASH).to_numpy(), keys)
        for (name, kind), values in zip(types.values, types.values_of(batch), strict=True):
            declared, before = self._kinds.get(name, kind), known.get(name, kind)
            convert = None if before == declared or declared.is_pickled else conversion(before, declared)
            if convert is None:
                self._values_of((name, kind)).set(places, values)
            else:
                owners = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
                self._set_objects(name, places[owners], list(map(convert, kind.from_arrow(values.drop_null()))))
        for of_kind, columns in zip(self.timers, timers, strict=True):
            owners, times, numbers = rows_of_timers(columns)
            self._stored_timers.array[places] += np.bincount(owners, minlength=len(places))
            of_kind.take_in(timer_columns(places[owners], times, numbers))

    @without_collection()
    def _adopt(self, buckets: BucketStore, store: RowStore) -> None:
        """Have all keys in rows that lie in buckets, of which none are left."""
        found: dict[int, bytes | None] = {}
        for begin in range(0, buckets.count, _BUCKETS_AT_ONCE):
            contents = buckets.get_many(range(begin, min(begin + _BUCKETS_AT_ONCE, buckets.count)))
            for content in contents.values():
                for bucket, living in [] if content is None else read_living(content):
                    self._take_in_bucket(bucket, np.array(living, np.int64))
            self._forget_times(0)
            self._has_changed.array[:] = True
            store.read(distinct(self._hashes.array))
            self._put_changed(store)
            store.flush()
            self._forget()
            found |= {number: b"" for number, content in contents.items() if content is not None}
        buckets.forget(found)

    def _take_in_bucket(self, bucket: Bucket, living: Numbers) -> None:
        """Have some keys of a bucket at hand."""
        if bucket.spaces or any(spaced for _, spaced in bucket.timers):
            raise NoColumns("there is state or there are timers of windows, which a function on columns has not")
        places = np.full(len(bucket.keys), NO_PLACE)
        keys = self._as_keys([bucket.keys[place] for place in living.tolist()])
        places[living] = self._new_places(bucket.hashes[living], keys, timers=-1)
        for name, (owners, are_pickled, held) in bucket.values.items():
            at = places if owners is None else places[owners]
            objects = list(map(loads, held)) if are_pickled else held
            rows = np.flatnonzero(at != NO_PLACE)
            convert = self._conversions.get(name)
            mine = [objects[row] if convert is None else convert(objects[row]) for row in rows.tolist()]
            self._set_objects(name, at[rows], mine)
        for of_kind, (columns, _) in zip(self.timers, bucket.timers, strict=True):
            of_keys, times, numbers = rows_of_timers(columns)
            stays = places[of_keys] != NO_PLACE
            of_kind.take_in(timer_columns(places[of_keys[stays]], times[stays], numbers[stays]))

    def _new_places(self, hashes: Hashes, keys: Sequence[pa.Array], timers: int = 0) -> Numbers:
        """Have keys at hand that were not, of which some timers are stored; -1 for keys that are not stored."""
        first = len(self)
        self._stored_timers.extend(timers, len(hashes))
        self._add(hashes, keys)
        return np.arange(first, len(self))

    def _as_keys(self, keys: list[Any]) -> list[pa.Array]:
        """Some keys that are stored as objects, by their parts."""
        kind = self._key
        try:
            return columns_of_fields(kind.to_arrow(keys), kind)
        except (DataError, ValueError, OverflowError) as error:
            raise NoColumns(f"keys are stored that are not of their type {kind}: {error}") from error

    def _set_objects(self, name: str, places: Numbers, objects: list[Any]) -> None:
        """Have the keys at some places have objects under a name, in a column of its type if that gives them back."""
        kind = self._kinds.get(name, ANYTHING)
        if not kind.is_pickled and not kind.keeps(objects):
            kind = ANYTHING
        array = pa.array(list(map(dumps, objects)), pa.binary()) if kind.is_pickled else kind.to_arrow(objects)
        self._values_of((name, ANYTHING if kind.is_pickled else kind)).set(places, array)

    def _of_name(self, name: str) -> list[tuple[TypeInformation, Values[GrowingColumn]]]:
        return [(kind, values) for (other, kind), values in self._values.items() if other == name]

    def _set(self, name: str, places: Numbers, values: pa.Array, kind: TypeInformation) -> None:
        self.clear(name, places)
        self._values_of((name, kind)).set(places, values)

    def _brought(self, name: str, objects: list[Any], kind: TypeInformation) -> pa.Array:
        """Some objects, as a column of a type."""
        label = name.partition(":")[2]
        try:
            return kind.to_arrow(objects)
        except Exception as error:
            raise StateError(
                f"the state {label!r} has a value that is not of its declared type {kind}: {error}. "
                "Declare the type of what was stored"
            ) from error

    def _column(self, kind: TypeInformation) -> GrowingColumn:
        return GrowingColumn(kind.arrow_type())

    def _add_keys(self, columns: Sequence[pa.Array], those: Flags | None) -> None:
        for of_all, column in zip(self._keys, columns, strict=True):
            of_all.extend(column if those is None else column.filter(pa.array(those)))

    def _forget_times(self, first: int) -> None:
        """Have the values that an earlier program gave a time to live, and this one does not, as those without one."""
        for name, values in self._expiring():
            plain = name.removesuffix(SUFFIX)
            owners = values.owners() if plain in self._kinds else _NO_ROWS
            owners = owners[owners >= first]
            if len(owners):
                objects = list(map(without_times, ANYTHING.from_arrow(values.at(owners))))
                self.clear(name, owners)
                has_other = np.zeros(len(owners), bool)
                for _, others in self._of_name(plain):
                    has_other |= others.where.array[owners] != NO_PLACE
                rows = np.flatnonzero(~has_other)
                self._set(plain, owners[rows], ANYTHING.to_arrow([objects[row] for row in rows.tolist()]), ANYTHING)

    def _write(self, store: RowStore, places: Numbers, timers: Sequence[Rows]) -> int:
        """Have the keys at some places written; return how many timers they have."""
        if not len(places):
            return 0
        held = {name: v for name, v in self._values.items() if (v.where.array[places] != NO_PLACE).any()}
        for name, kind in [*held]:  # a pickle says no type, so the one of its time lies beside it
            declared = self._kinds.get(name, ANYTHING)
            if kind.is_pickled and not declared.is_pickled:
                held[name, declared] = self._values_of((name, declared))
        names = sorted(held, key=lambda of: (of[0], str(of[1])))
        types = PageTypes(self._key, tuple(names))
        values = [held[name].at(places) for name in names]
        rows = types.rows(self.keys_at(places), self._hashes.array[places], values)
        at = np.full(len(self), NO_PLACE)
        at[places] = np.arange(len(places))
        due, lists, count = [], [], 0
        for owners, times, numbers in timers:
            mine = np.flatnonzero(at[owners] != NO_PLACE)
            mine = mine[order_by(at[owners[mine]])]
            of_rows, of_times = at[owners[mine]], times[mine]
            lists.append(lists_of_timers((of_rows, of_times, numbers[mine]), len(places)))
            earliest = np.full(len(places), NEVER)
            np.minimum.at(earliest, of_rows, np.minimum(of_times, _LAST))
            due.append(earliest)
            count += len(mine)
        due.append(self._expiries(at, len(places)))
        table = pa.Table.from_batches([rows])
        store.write(described(types, table, lists if count else ()), due)
        return count

    def _expiries(self, at: Numbers, count: int) -> Numbers:
        """When something of each of some rows expires first, given the row of each key."""
        found = np.full(count, NEVER)
        for _, values in self._expiring():
            owners = values.owners()
            owners = owners[at[owners] != NO_PLACE]
            times = [expiry_of(stored) for stored in ANYTHING.from_arrow(values.at(owners))]
            known = np.array([NEVER if time_ms is None else time_ms for time_ms in times], np.int64)
            np.minimum.at(found, at[owners], known)
        return found


def alike(ones: Sequence[pa.Array], others: Sequence[pa.Array]) -> Flags:
    """For each row, whether two keys are equal, which are given by their parts; None equals None.

    >>> alike([pa.array([1, None, 2])], [pa.array([1, None, None], pa.int64())]).tolist()
    [True, True, False]
    """
    found = np.ones(len(ones[0]), bool)
    for one, other in zip(ones, others, strict=True):
        equal = pc.fill_null(pc.equal(one, other), False)
        if one.null_count or other.null_count:
            equal = pc.or_(equal, pc.and_(one.is_null(), other.is_null()))
        found &= equal.to_numpy(zero_copy_only=False)
    return found


def _settled(rows: Rows) -> Rows:
    """Timers by key and time; of one that was set again, the first number counts."""
    places, times, numbers = rows
    order = order_by(places, times, numbers)
    places, times, numbers = places[order], times[order], numbers[order]
    first = firsts(places, times)
    return places[first], times[first], numbers[first]
