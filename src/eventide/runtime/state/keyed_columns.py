"""State and timers of many keys at once, as columns: read by page, looked up together, and written once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.typeinfo.widening import has_text
from eventide.errors import DataError, StateError
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.elements import columns_of_fields, types_of_fields
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import (
    EXPIRY,
    HASH,
    KINDS_OF_TIME,
    NO_TIMERS,
    TIMES,
    Bucket,
    Page,
    PageTypes,
    encode_page,
    expiry_of_page,
    is_page,
    read_bucket,
    read_parts,
)
from eventide.runtime.state.bucket_store import BucketStore, NoColumns
from eventide.runtime.state.declared import VALUE
from eventide.runtime.state.expiring import SUFFIX, expiry_of, unexpired, without_times
from eventide.runtime.state.growing import GrowingColumn
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.keyed_rows import Flags, KeyedRows, Name, Part, Plan, Values
from eventide.runtime.state.timer_arrays import TimerArrays
from eventide.runtime.state.timers import NO_PLACE, Numbers

ANYTHING = Types.PICKLED_BYTE_ARRAY()


class PageReader:
    """Reads pages and buckets of objects.

    Args:
        key: the type of the keys.

    Attributes:
        kinds: the types of values by name, where they are known.
    """

    def __init__(self, key: TypeInformation) -> None:
        self._key = key
        self.kinds: dict[str, TypeInformation] = {}

    def declare(self, name: str, kind: TypeInformation) -> None:
        """Say the type of the values of a name."""
        self.kinds[name] = kind if has_text(kind) else ANYTHING

    def read(self, content: bytes) -> list[Part]:
        """A page, or a bucket of objects as a page, and its changes, if there are any.

        Raises:
            NoColumns: if columns cannot hold what it is.
        """
        if is_page(content):
            return [self._part(self._with_key(page), page.types) for page in read_parts(content)]
        return [self._part(self._page_of(*of_bucket), None) for of_bucket in read_bucket(content)]

    def _part(self, page: Page, stored: PageTypes | None) -> Part:
        """A page as it was read, which is stored with these types; None for a bucket of objects."""
        timers, expiry = [(of_kind,) for of_kind in page.timers], expiry_of_page(page)
        of_page = (page.rows, len(page.rows), timers, page.size, expiry)
        return Part(page.types.values, *of_page, stored, stored is not None)

    def _with_key(self, page: Page) -> Page:
        """A page whose keys are of the type that they have now."""
        if page.types.key == self._key:
            return page
        keys = self._as_keys(page.types.key.from_arrow(page.types.keys_of(page.rows)))
        hashes, values = page.rows.column(HASH).to_numpy(), page.types.values_of(page.rows)
        types = PageTypes(self._key, page.types.values)
        return page._replace(types=types, rows=types.rows(keys, hashes, values))

    def _page_of(self, bucket: Bucket, size: int) -> Page:
        if bucket.spaces or any(spaced for _, spaced in bucket.timers):
            raise NoColumns("there is state or there are timers of windows, which a function on columns has not")
        count = len(bucket.keys)
        found: dict[tuple[str, TypeInformation], pa.Array] = {}
        for name, (owners, are_pickled, values) in bucket.values.items():
            kind = self.kinds.get(name, ANYTHING)
            if not kind.is_pickled:
                objects = list(map(loads, values)) if are_pickled else values
                if not kind.keeps(objects):
                    kind = ANYTHING
            if kind.is_pickled:
                array = pa.array(values if are_pickled else list(map(dumps, values)), pa.binary())
            else:
                array = kind.to_arrow(objects)
            where = np.full(count, NO_PLACE)
            where[range(count) if owners is None else owners] = np.arange(len(array))
            found[name, kind] = array.take(pa.array(where, mask=where == NO_PLACE))
        types = PageTypes(self._key, tuple(found))
        rows = types.rows(self._as_keys(bucket.keys), bucket.hashes, [*found.values()])
        return Page(types, rows, tuple(plain for plain, _ in bucket.timers) or NO_TIMERS, size)

    def _as_keys(self, keys: list[Any]) -> list[pa.Array]:
        """Some keys that are stored as objects, by their parts."""
        kind = self._key
        try:
            return columns_of_fields(kind.to_arrow(keys), kind)
        except (DataError, ValueError, OverflowError) as error:
            raise NoColumns(f"keys are stored that are not of their type {kind}: {error}") from error


def expiries_of(values: pa.Array) -> list[int | None]:
    """When each of some values expires first, in milliseconds; None for one that stays until it is read."""
    return [expiry_of(stored) for stored in ANYTHING.from_arrow(values)]


PAGE_BYTES = 65_536
"""The size of a page of which many rows are touched, so that a call to the store costs less than what it carries."""

_ROWS_AT_ONCE = 1 << 20
_NO_ROWS = np.zeros(0, np.int64)


class KeyedColumns(KeyedRows[GrowingColumn]):
    """The keys whose pages were read, with their values by name and their timers, all in columns.

    Pages and buckets of objects lie in one store (:class:`~eventide.runtime.state.keyed.KeyedState` has the other view
    of it); a bucket of objects becomes a page when one of its keys changes.

    Args:
        backend: where it is stored.
        key: the type of the keys.
        max_parallelism: the number of key groups.
        in_batch: as in `KeyedState`.

    Attributes:
        timers: those of event time, and of processing time.
    """

    def __init__(
        self,
        backend: Backend,
        key: TypeInformation,
        max_parallelism: int,
        *,
        in_batch: bool = False,
    ) -> None:
        self._key = key
        self._reader = PageReader(key)
        super().__init__(backend, max_parallelism, PAGE_BYTES, PAGE_BYTES // 16, in_batch=in_batch)

    def _forget(self) -> None:
        super()._forget()
        self._keys = [GrowingColumn(kind.arrow_type()) for kind in types_of_fields(self._key)]
        numbers = self._store.numbers or [0] * KINDS_OF_TIME
        self._timers = self.timers = [TimerArrays(self, kind, number) for kind, number in enumerate(numbers)]

    def declare(self, name: str, type_info: TypeInformation, kind: str = VALUE) -> None:
        """Say the type and the kind of what is stored under a name, when nothing is at hand.

        Raises:
            StateError: if what is stored is of another kind, or has a type that does not widen to this one.
        """
        self._reader.declare(name, type_info)
        if self._declared.declare(name, type_info, kind) is not None:  # all that is stored is brought to it, as objects
            objects = KeyedState(self._backend, self._max_parallelism, PAGE_BYTES)
            objects.declare(name, type_info, kind)
            objects.flush()
            self._store = BucketStore(self._backend, PAGE_BYTES, TIMES, PAGE_BYTES // 16)
            self._forget()

    def places_of(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Numbers:
        """Have keys at hand, each of which is given once, as the hash and the parts of each; and give their places.

        Raises:
            NoColumns: if what is stored in their pages is not as columns hold it.
        """
        places = self._find(hashes)
        known = np.flatnonzero(places != NO_PLACE)
        others = ~alike([key.take(pa.array(known)) for key in keys], self.keys_at(places[known]))
        for row in known[others].tolist():
            twins = np.array(self._twins(hashes[row]))
            repeated = [key.take(pa.array(np.full(len(twins), row))) for key in keys]
            found = twins[alike(repeated, self.keys_at(twins))]
            places[row] = found[0] if len(found) else NO_PLACE
        new = np.flatnonzero(places == NO_PLACE)
        first = len(self)
        places[new] = np.arange(first, first + len(new))
        if len(new):
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
        stored = self._reader.kinds.get(name, kind)
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

    def expire(self, clock_ms: int) -> None:
        """Forget what has expired of what an earlier program gave a time to live; call it before :meth:`flush`."""
        due = self._store.schedules[EXPIRY].due(clock_ms)
        self._looked_through.update(due)
        self._have(due)
        for name, values in self._expiring():
            owners = values.owners()
            before = ANYTHING.from_arrow(values.at(owners))
            now = [unexpired(stored, clock_ms) for stored in before]
            rows = [row for row, (one, other) in enumerate(zip(before, now, strict=True)) if one is not other]
            self._set(name, owners[rows], ANYTHING.to_arrow([now[row] for row in rows]), ANYTHING)

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

    def _have(self, buckets: Iterable[int]) -> None:
        first = len(self)
        super()._have(buckets)
        self._forget_times(first)

    def _read(self, content: bytes) -> list[Part]:
        return self._reader.read(content)

    def _column(self, kind: TypeInformation) -> GrowingColumn:
        return GrowingColumn(kind.arrow_type())

    def _joined(self, names: Sequence[Name], parts: Sequence[Part]) -> tuple[Hashes, Sequence[Any], Sequence[Any]]:
        rows, types = pa.concat_batches([part.rows for part in parts]), PageTypes(self._key, tuple(names))
        return (
            rows.column(HASH).to_numpy(),
            types.parts_of(rows),
            [(slice(None), values) for values in types.values_of(rows)],
        )

    def _add_keys(self, columns: Sequence[pa.Array], those: Flags | None) -> None:
        for of_all, column in zip(self._keys, columns, strict=True):
            of_all.extend(column if those is None else column.filter(pa.array(those)))

    def _forget_times(self, first: int) -> None:
        """Have the values that an earlier program gave a time to live, and this one does not, as those without one."""
        for name, values in self._expiring():
            plain = name.removesuffix(SUFFIX)
            owners = values.owners() if plain in self._reader.kinds else _NO_ROWS
            owners = owners[owners >= first]
            if len(owners):
                objects = list(map(without_times, ANYTHING.from_arrow(values.at(owners))))
                self.clear(name, owners)
                has_other = np.zeros(len(owners), bool)
                for _, others in self._of_name(plain):
                    has_other |= others.where.array[owners] != NO_PLACE
                rows = np.flatnonzero(~has_other)
                self._set(plain, owners[rows], ANYTHING.to_arrow([objects[row] for row in rows.tolist()]), ANYTHING)

    def _contents(self, rows: Numbers, bounds: Numbers, plans: Iterable[Plan]) -> Iterable[bytes]:
        values = {name: v for name, v in self._values.items() if (v.where.array[rows] != NO_PLACE).any()}
        types = PageTypes(self._key, tuple(values))
        for known in self._stored.values():
            if known.types is not None and known.types.key == self._key and {*known.types.values} == {*values}:
                types = known.types  # in which the order of names may be another
                break
        first = last = 0
        for i, (number, are_changes, timers, _) in enumerate(plans):
            begin, end = bounds[i : i + 2].tolist()
            if end > last:  # the rows of many pages at once
                first, last = begin, max(end, int(bounds[np.searchsorted(bounds, begin + _ROWS_AT_ONCE, "right") - 1]))
                at = rows[first:last]
                batch = types.rows(self.keys_at(at), self._hashes.array[at], [values[of].at(at) for of in types.values])
            to = self._stored[number].types if are_changes else None
            of_page = batch.slice(begin - first, end - begin) if end > begin else None
            yield encode_page(types, of_page, [kind for (kind,) in timers], to=to) if of_page is not None else b""

    def _expiries(self, values: Values[GrowingColumn], owners: Numbers) -> Iterable[int | None]:
        return expiries_of(values.at(owners))


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
