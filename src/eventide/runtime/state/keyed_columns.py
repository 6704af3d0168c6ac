"""State and timers of many keys at once, as columns: read by page, looked up together, and written once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.errors import StateError
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import order_by
from eventide.runtime.metrics import KEYS, TIMERS
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import EXPIRY, KINDS_OF_TIME, NOTHING, TIMES, Stored
from eventide.runtime.state.bucket_store import BucketStore, Made, addresses, beside
from eventide.runtime.state.declared import DeclaredTypes
from eventide.runtime.state.expiring import SUFFIX, unexpired, without_times
from eventide.runtime.state.growing import GrowingArray, GrowingColumn, HashIndex
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.page_reader import ANYTHING, NoColumns, PageReader, expiries_of
from eventide.runtime.state.pages import (
    HASH,
    Page,
    PageTypes,
    Timers,
    encode_page,
)
from eventide.runtime.state.stored_timers import NO_PLACE, Numbers, TimersInOrder, count_of, joined
from eventide.runtime.state.timer_arrays import TimerArrays

PAGE_BYTES = 65_536
"""The size of a page of which many rows are touched, so that a call to the store costs less than what it carries."""

_ROWS_AT_ONCE = 1 << 20
_NEVER = np.iinfo(np.int64).max


_NO_ROWS = np.zeros(0, np.int64)
_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class _Values:
    """The values at hand of one name and type, and where among them the one of each key stands."""

    def __init__(self, kind: TypeInformation, keys: int) -> None:
        self._stored = GrowingColumn(kind.arrow_type())
        self.where = GrowingArray(np.int64)
        self.where.extend(NO_PLACE, keys)

    def set(self, places: Numbers | slice, values: pa.Array) -> None:
        """Give the keys at some places values, the last one that is given; null stands for none."""
        at = np.arange(len(self._stored), len(self._stored) + len(values))
        self._stored.extend(values)
        self.where.array[places] = np.where(_is_valid(values), at, NO_PLACE) if values.null_count else at

    def at(self, places: Numbers) -> pa.Array:
        """The values of the keys at some places."""
        return self._stored.take(self.where.array[places])

    def owners(self, first: int = 0) -> Numbers:
        """The places of the keys that have a value, from one place on."""
        return np.flatnonzero(self.where.array[first:] != NO_PLACE) + first


class KeyedColumns:
    """The keys whose pages were read, with their values by name and their timers, and what has become of them.

    A key is named by its place among those at hand. Pages and buckets of objects lie in one store
    (:class:`~eventide.runtime.state.keyed.KeyedState` has the other view of it); a bucket of objects becomes a page
    when one of its keys changes. Where a few rows of a page have changed, they are stored beside it, until all that was
    written so would have been enough to write the page.

    Args:
        backend: where it is stored.
        key: the type of the keys.
        max_parallelism: the number of key groups.
        is_exact: whether what is stored as objects has to come back as it is, type for type. Else it is brought to its
            declared type.
        in_batch: as in `KeyedState`.

    Attributes:
        timers: those of event time, and of processing time.
        stored: the pages that were read, as they are stored.
    """

    def __init__(
        self,
        backend: Backend,
        key: TypeInformation,
        max_parallelism: int,
        *,
        is_exact: bool = False,
        in_batch: bool = False,
    ) -> None:
        self._backend = backend
        self._key = key
        self._max_parallelism = max_parallelism
        self._is_exact = is_exact
        self._in_batch = in_batch
        self._reader = PageReader(key, is_exact=is_exact)
        self._declared = DeclaredTypes(backend)
        self._store = BucketStore(backend, PAGE_BYTES, TIMES)
        self._begin()

    def _begin(self) -> None:
        """Have nothing at hand."""
        self.stored: dict[int, Stored] = {}
        self._looked_through: set[int] = set()
        self._touched = 0
        self._hashes, self._has_changed, self._is_beside = map(GrowingArray, (np.uint64, np.bool_, np.bool_))
        self._keys = [GrowingColumn(kind.arrow_type()) for kind in _parts(self._key)]
        self._index = HashIndex()
        self._values: dict[tuple[str, TypeInformation], _Values] = {}
        numbers = self._store.numbers or [0] * KINDS_OF_TIME
        self.timers = [TimerArrays(self, kind, number) for kind, number in enumerate(numbers)]
        if self._in_batch:
            for of_kind in self.timers:
                of_kind.all_kinds = self.timers

    def __len__(self) -> int:
        """How many keys are at hand."""
        return len(self._hashes.array)

    def declare(self, name: str, kind: TypeInformation) -> None:
        """Say the type of what is stored under a name, when nothing is at hand.

        Raises:
            StateError: if what is stored has a type that does not widen to this one.
        """
        self._reader.declare(name, kind)
        if self._declared.declare(name, kind) is not None:  # all that is stored is brought to it, as objects
            objects = KeyedState(self._backend, self._max_parallelism, PAGE_BYTES)
            objects.declare(name, kind)
            objects.flush()
            self._declared = DeclaredTypes(self._backend)
            self._store = BucketStore(self._backend, PAGE_BYTES, TIMES)
            self._begin()

    def places_of(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Numbers:
        """Have keys at hand, each of which is given once, as the hash and the parts of each; and give their places.

        Raises:
            NoColumns: if what is stored in their pages is not as columns hold it.
        """
        self._touched += len(hashes)
        self._have(self._store.wanted(hashes, self._touched, self.stored))
        places = self._index.find(hashes)
        known = np.flatnonzero(places != NO_PLACE)
        others = ~alike([key.take(pa.array(known)) for key in keys], self.keys_at(places[known]))
        for row in known[others].tolist():
            places[row] = self._place_of_twin(hashes[row], [key.slice(row, 1) for key in keys])
        new = np.flatnonzero(places == NO_PLACE)
        first = len(self)
        places[new] = np.arange(first, first + len(new))
        if len(new):
            self._add(hashes[new], [key.take(pa.array(new)) for key in keys])
        return places

    def keys_at(self, places: Numbers) -> list[pa.Array]:
        """The keys at some places, by their parts."""
        return [part.take(places) for part in self._keys]

    def groups(self, places: Numbers) -> Numbers:
        """The key groups of the keys at some places."""
        groups: Numbers = ((self._hashes.array[places] >> np.uint64(32)) % np.uint64(self._max_parallelism)).astype(
            np.int64
        )
        return groups

    def get(self, name: str, places: Numbers, kind: TypeInformation) -> pa.Array:
        """The values of the keys at some places under a name, as a column of its type; null for none.

        Raises:
            StateError: if a value that is stored is of another type; NoColumns, where it is not exactly of it.
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

    def touch(self, places: Numbers) -> None:
        """Take note that what the keys at some places have may have changed."""
        self._has_changed.array[places] = True

    def open_everything(self) -> None:
        """Have every key at hand."""
        self._have(range(self._store.count))

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time."""
        self._have(self._store.schedules[kind].due(until_ms))

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not at hand, in milliseconds; None if there is none."""
        return self._store.schedules[kind].next_but(self.stored)

    def expire(self, clock_ms: int) -> None:
        """Forget what has expired of what an earlier program gave a time to live; call it before :meth:`flush`."""
        due = self._store.schedules[EXPIRY].due(clock_ms)
        self._looked_through.update(due)
        self._have(due)
        for name, values in self._expiring():
            owners = values.owners()
            living = [unexpired(stored, clock_ms) for stored in ANYTHING.from_arrow(values.at(owners))]
            self._set(name, owners, ANYTHING.to_arrow(living), ANYTHING)

    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        with without_collection():
            changed = self._hashes.array[self._has_changed.array]
            if len(changed):
                self._store.write(self, np.unique(addresses(changed, self._store.count)).tolist())
            for number in self._looked_through:
                self._store.schedules[EXPIRY].set(number, self.stored[number].earliest[EXPIRY])
        self._store.numbers = [timers.number for timers in self.timers]
        self._store.flush()
        self._declared.flush()
        self._begin()

    def held(self) -> dict[str, int]:
        """How many keys and timers there are, as far as that is known without reading; asked after :meth:`flush`."""
        timers = self._store.timers
        return {KEYS: self._store.entries} | ({} if timers is None else {TIMERS: timers})

    def _place_of_twin(self, key_hash: np.uint64, key: list[pa.Array]) -> int:
        """The place of a key of whose hash another key was found; of a new one, `NO_PLACE`."""
        places = np.flatnonzero(self._hashes.array == key_hash)
        repeated = [part.take(pa.array(np.zeros(len(places), np.int64))) for part in key]
        found = places[alike(repeated, self.keys_at(places))]
        self._index.has_twins = True
        return int(found[0]) if len(found) else NO_PLACE

    def _of_name(self, name: str) -> list[tuple[TypeInformation, _Values]]:
        return [(kind, values) for (other, kind), values in self._values.items() if other == name]

    def _values_of(self, of: tuple[str, TypeInformation]) -> _Values:
        if of not in self._values:
            self._values[of] = _Values(of[1], len(self))
        return self._values[of]

    def _expiring(self) -> list[tuple[str, _Values]]:
        return [(name, values) for (name, _), values in self._values.items() if name.endswith(SUFFIX)]

    def _set(self, name: str, places: Numbers, values: pa.Array, kind: TypeInformation) -> None:
        self.clear(name, places)
        self._values_of((name, kind)).set(places, values)

    def _brought(self, name: str, objects: list[Any], kind: TypeInformation) -> pa.Array:
        """Some objects, as a column of a type."""
        label = name.partition(":")[2]
        if self._is_exact and not kind.keeps(objects):
            raise NoColumns(f"the state {label!r} has a value that is not as columns of {kind} have it")
        try:
            return kind.to_arrow(objects)
        except Exception as error:
            raise StateError(
                f"the state {label!r} has a value that is not of its declared type {kind}: {error}. "
                "Declare the type of what was stored"
            ) from error

    def _add(self, hashes: Hashes, keys: Sequence[pa.Array]) -> None:
        """Have keys at hand that have nothing yet."""
        count = len(hashes)
        self._index.add(hashes, len(self))
        self._hashes.extend(hashes, count)
        for column, part in zip(self._keys, keys, strict=True):
            column.extend(part)
        for flags in (self._has_changed, self._is_beside):
            flags.extend(False, count)
        for values in self._values.values():
            values.where.extend(NO_PLACE, count)

    def have(self, buckets: Iterable[int]) -> bool:
        """Have the rows of some pages at hand; False if columns cannot hold what is there."""
        try:
            self._have(buckets)
        except NoColumns:
            return False
        return True

    def _have(self, numbers: Iterable[int]) -> None:
        new = [number for number in numbers if number not in self.stored]
        if not new:
            return
        with without_collection():
            first = len(self)
            known: dict[int, Stored] = {}
            pages, changes = defaultdict[PageTypes, list[Page]](list), defaultdict[PageTypes, list[Page]](list)
            for number, content in self._store.get_many(new).items():
                if content is None:
                    known[number] = NOTHING
                    continue
                page, of_page, known[number] = self._reader.read(content)
                pages[page.types].append(page)
                if of_page is not None:
                    changes[of_page.types].append(of_page)
            self.stored |= known
            for types, parts in pages.items():
                self._take_in(types, parts)
            for types, parts in changes.items():
                self._take_in(types, parts, are_changes=True)
            self._forget_times(first)

    def _take_in(self, types: PageTypes, pages: list[Page], *, are_changes: bool = False) -> None:
        """Have the rows of pages of the same types at hand; or of their changes, in place of what they replace."""
        rows, first = pa.concat_batches([page.rows for page in pages]), len(self)
        hashes: Hashes = rows.column(HASH).to_numpy()
        places = self._index.find(hashes) if are_changes else np.full(len(rows), NO_PLACE)
        new = np.flatnonzero(places == NO_PLACE)
        places[new] = first + np.arange(len(new))
        is_all = len(new) == len(rows)
        self._add(hashes[new], [part if is_all else part.take(pa.array(new)) for part in types.parts_of(rows)])
        if are_changes:
            self._is_beside.array[places] = True
            for values in self._values.values():
                values.where.array[places] = NO_PLACE
        for of, column in zip(types.values, types.values_of(rows), strict=True):
            self._values_of(of).set(places, column)
        begin = 0
        for page in pages:
            end = begin + len(page.rows)
            for timers, columns in zip(self.timers, page.timers, strict=True):
                moved = joined([columns], [places[begin:end]])
                if moved is not None:
                    timers.take_in(moved)
            begin = end

    def _forget_times(self, first: int) -> None:
        """Have the values that an earlier program gave a time to live, and this one does not, as those without one."""
        for name, values in self._expiring():
            plain = name.removesuffix(SUFFIX)
            owners = values.owners(first) if plain in self._reader.kinds else _NO_ROWS
            if len(owners):
                objects = list(map(without_times, ANYTHING.from_arrow(values.at(owners))))
                self.clear(name, owners)
                has_other = np.zeros(len(owners), bool)
                for _, others in self._of_name(plain):
                    has_other |= others.where.array[owners] != NO_PLACE
                rows = np.flatnonzero(~has_other)
                self._set(plain, owners[rows], ANYTHING.to_arrow([objects[row] for row in rows.tolist()]), ANYTHING)

    def _living(self) -> _Flags:
        """Which of the keys at hand have anything."""
        living = np.zeros(len(self), bool)
        for values in self._values.values():
            living |= values.where.array != NO_PLACE
        for timers in self.timers:
            living[timers.all()[0]] = True
        return living

    def made(self, buckets: Sequence[int], *, is_whole: bool) -> dict[int, Made]:
        """Some pages as they are to be stored; all of them whole, where their rows may come from others."""
        count, pages, living = self._store.count, buckets, self._living()
        numbers = addresses(self._hashes.array, count)
        is_wanted = np.zeros(max(count, *pages) + 1, bool)
        is_wanted[pages] = True
        is_beside = np.zeros(count, bool) if is_whole else self._are_beside(pages, numbers)
        is_change = self._has_changed.array | self._is_beside.array
        rows = np.flatnonzero(is_wanted[numbers] & np.where(is_beside[numbers], is_change, living))
        rows = rows[order_by(numbers[rows])]
        places = np.full(len(self), NO_PLACE)
        places[rows] = np.arange(len(rows))
        starts = np.flatnonzero(np.diff(numbers[rows], prepend=NO_PLACE))
        bounds = np.append(starts, len(rows))
        in_order: list[TimersInOrder] = []
        earliest: list[Numbers] = []
        staying = np.zeros(count, np.int64)
        for of_kind in self.timers:
            owners, times, order = of_kind.all()
            in_order.append(TimersInOrder((), [(places[owners], times, order)]))
            in_order[-1].cut(bounds)
            earliest.append(np.full(count, _NEVER))
            np.minimum.at(earliest[-1], numbers[owners], times)
            staying += np.bincount(numbers[owners[places[owners] == NO_PLACE]], minlength=count)
        expiries = self._expiries(numbers)
        entries = np.bincount(numbers[living], minlength=count).tolist()
        found = dict.fromkeys(pages, Made())
        for number, content, timers in self._encoded(numbers, rows, bounds, in_order, is_beside):
            times_of_page = (int(of_kind[number]) for of_kind in earliest)
            due = (*(None if time_ms == _NEVER else time_ms for time_ms in times_of_page), expiries.get(number))
            are_changes = bool(is_beside[number])
            of_page = count_of(timers) + (int(staying[number]) if are_changes else 0)
            found[number] = Made(content, entries[number], of_page, due, are_changes)
        return found

    def _are_beside(self, pages: Sequence[int], numbers: Numbers) -> _Flags:
        """For which pages the rows that have changed are stored beside them."""
        count = self._store.count
        if self._index.has_twins:  # which could not be told apart by their hashes
            return np.zeros(count, bool)
        own = np.zeros(count, np.int64)
        own[pages] = [self.stored[number].own_entries for number in pages]
        now = np.bincount(numbers[self._has_changed.array], minlength=count)
        return beside(own, now, np.bincount(numbers[self._has_changed.array | self._is_beside.array], minlength=count))

    def _encoded(
        self, numbers: Numbers, rows: Numbers, bounds: Numbers, of_timers: Sequence[TimersInOrder], is_beside: _Flags
    ) -> Iterator[tuple[int, bytes, Timers]]:
        """Give the content of each page, whose rows lie between bounds, and its timers."""
        values = {of: v for of, v in self._values.items() if (v.where.array[rows] != NO_PLACE).any()}
        types = PageTypes(self._key, tuple(values))
        for known in self.stored.values():
            if known.types is not None and {*known.types.values} == {*values}:
                types = known.types  # in which the order of names may be another
                break
        spans = bounds.tolist()
        for some in np.split(np.arange(len(spans) - 1), np.flatnonzero(np.diff(bounds[:-1] // _ROWS_AT_ONCE)) + 1):
            first, last = (spans[some[0]], spans[some[-1] + 1]) if len(some) else (0, 0)
            at = rows[first:last]
            batch = types.rows(self.keys_at(at), self._hashes.array[at], [values[of].at(at) for of in types.values])
            for i in some.tolist():
                begin, end = spans[i], spans[i + 1]
                number = int(numbers[rows[begin]])
                timers = tuple(in_order.between(i) for in_order in of_timers)
                to = self.stored[number].types if is_beside[number] else None
                yield number, encode_page(types, batch.slice(begin - first, end - begin), timers, to=to), timers

    def _expiries(self, numbers: Numbers) -> dict[int, int]:
        """When something expires first in each page in which it does, in milliseconds."""
        found: dict[int, int] = {}
        for _, values in self._expiring():
            owners = values.owners()
            for number, time_ms in zip(numbers[owners].tolist(), expiries_of(values.at(owners)), strict=True):
                if time_ms is not None:
                    found[number] = min(time_ms, found.get(number, time_ms))
        return found


def _parts(kind: TypeInformation) -> Sequence[TypeInformation]:
    return kind.types if isinstance(kind, CompositeTypeInfo) else [kind]


def _is_valid(values: pa.Array) -> _Flags:
    flags: _Flags = values.is_valid().to_numpy(zero_copy_only=False)
    return flags


def alike(ones: Sequence[pa.Array], others: Sequence[pa.Array]) -> _Flags:
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
