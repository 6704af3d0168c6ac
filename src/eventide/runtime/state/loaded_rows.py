"""Keys of a subtask that were read, by their places: what state of objects and state of columns have in common.

Places are those in arrays and columns that grow at their end at little cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import groups_of_hashes
from eventide.runtime.elements.ordering import distinct, firsts, order_by
from eventide.runtime.metrics import KEYS as NUM_KEYS
from eventide.runtime.metrics import TIMERS as NUM_TIMERS
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import EXPIRY, KINDS_OF_TIME, TIMES
from eventide.runtime.state.declared import DeclaredTypes, RowTypes
from eventide.runtime.state.expiring import SUFFIX
from eventide.runtime.state.extents import HashIndex, RowStore, are_in
from eventide.runtime.state.rows_of_keys import (
    KEYS,
    LAST,
    NUMBERS_OF_TIMERS,
    TIMERS,
    KeysInRows,
    Parts,
    as_stored,
    due_times,
    move_buckets,
    read_rows,
    timer_columns,
    with_values_of,
)
from eventide.runtime.state.timers import NO_PLACE, Numbers, TimerColumns, TimerRows

Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Name: TypeAlias = tuple[str, Any]
"""The name of a state, and the kind of its values: a name may have values of several kinds, each key of one of them."""

_ROWS_AT_ONCE = 1 << 16
"""A column of Arrow holds 2 GB of texts or pickles: 32 kB for each of 65,536 keys."""


class GrowingArray:
    """An array of numbers.

    >>> numbers = GrowingArray(np.int64)
    >>> numbers.extend(np.arange(3), 3)
    >>> numbers.extend(-1, 2)
    >>> numbers.array.tolist()
    [0, 1, 2, -1, -1]
    """

    def __init__(self, kind: Any) -> None:
        self._room = np.empty(0, kind)
        self._length = 0

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The numbers, which may be changed in place."""
        return self._room[: self._length]

    def extend(self, values: object, count: int) -> None:
        """Put `count` values at the end, or one value `count` times."""
        end = self._length + count
        if end > len(self._room):
            before, self._room = self.array, np.empty(max(end, 2 * self._length), self._room.dtype)
            self._room[: len(before)] = before
        self._room[self._length : end] = values
        self._length = end


class GrowingColumn:
    """A column of an Arrow type, in parts.

    They become one when values are taken that do not all lie in the last part: Arrow would do that each time.

    >>> column = GrowingColumn(pa.int64())
    >>> [column.extend(pa.array(values)).tolist() for values in ([5, None], [7])]
    [[0, -1], [2]]
    >>> column.take(np.array([2])).to_pylist(), column.take(np.array([2, -1, 0])).to_pylist()
    ([7], [7, None, 5])
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._parts: list[pa.Array] = []
        self._length = 0

    def extend(self, values: pa.Array) -> Numbers:
        """Put values at the end, and say where each is; `NO_PLACE` for null."""
        places = np.arange(self._length, self._length + len(values))
        self._parts.append(values)
        self._length += len(values)
        if values.null_count:
            places[values.is_null().to_numpy(zero_copy_only=False)] = NO_PLACE
        return places

    def take(self, places: Numbers) -> pa.Array:
        """The values at some places; null where a place is none."""
        begin_of_last = self._length - sum(map(len, self._parts[-1:]))
        if self._parts and places.min(initial=self._length) >= begin_of_last:
            return self._parts[-1].take(pa.array(places - begin_of_last))
        wanted = pa.array(places, mask=places < 0)
        if len(self._parts) > 1:
            with suppress(pa.ArrowInvalid):  # more text than one array can hold
                self._parts = [pa.concat_arrays(self._parts)]
        if len(self._parts) == 1:
            return self._parts[0].take(wanted)
        found = pa.chunked_array(self._parts, self._kind).take(wanted)
        return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], self._kind)


class GrowingObjects:
    """A column of objects."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def extend(self, values: list[Any]) -> Numbers:
        """Put values at the end, and say where each is."""
        first = len(self._objects)
        self._objects += values
        return np.arange(first, len(self._objects))

    def take(self, places: Numbers) -> list[Any]:
        """The values at some places."""
        return list(map(self._objects.__getitem__, places.tolist()))


_Column = TypeVar("_Column", bound=GrowingColumn | GrowingObjects)


class LoadedTimers(Protocol):
    """The timers of a kind of the loaded keys."""

    number: int
    """The number of the last timer that was set."""

    def take_in(self, *columns: TimerColumns | None) -> None:
        """Take note of timers without a namespace, and with one, whose keys have places among the loaded ones."""

    def rows(self) -> Parts:
        """The timers of the loaded keys; one that was set again is there twice."""

    def clear(self) -> None:
        """Forget what is loaded."""


class Values(Generic[_Column]):
    """The loaded values of one name and kind, and where among them the one of each key is."""

    def __init__(self, stored: _Column, keys: int) -> None:
        self._stored = stored
        self.where = GrowingArray(np.int64)
        self.where.extend(NO_PLACE, keys)

    def set(self, places: Numbers, values: Any) -> None:
        """Give the keys at some places values, the last one that is given; null stands for none."""
        self.where.array[places] = self._stored.extend(values)

    def at(self, places: Numbers) -> Any:
        """The values of the keys at some places."""
        return self._stored.take(self.where.array[places])

    def owners(self) -> Numbers:
        """The places of the keys that have a value."""
        return np.flatnonzero(self.where.array != NO_PLACE)


class LoadedRows(ABC, Generic[_Column]):
    """The keys that were touched, with their values by name and their timers, and what has become of them.

    A key is named by its place among the loaded ones. What version 0.1.0 has stored in buckets becomes rows as a whole
    when the first of it is needed.

    Args:
        backend: where it is stored.
        max_parallelism: the number of key groups.
        in_batch: whether timers fire at the end alone, and none is set from then on.

    Attributes:
        is_quiesced: whether timers have begun to fire in batch execution: from then on, none is set.
    """

    def __init__(self, backend: Backend, max_parallelism: int, *, in_batch: bool) -> None:
        self.is_quiesced = False
        self._backend = backend
        self._in_batch = in_batch
        self._max_parallelism = max_parallelism
        self._declared = DeclaredTypes(backend)
        self._timers: Sequence[LoadedTimers] = ()

    def _forget(self) -> None:
        """Forget all keys that were loaded."""
        self._hashes, self._has_changed = map(GrowingArray, (np.uint64, np.bool_))
        self._stored_timers = GrowingArray(np.int64)  # of each key how many are stored; -1 for a key that is not
        self._index = HashIndex()
        self._are_all_at_hand = False
        self._values: dict[Name, Values[_Column]] = {}
        for timers in self._timers:
            timers.clear()

    def __len__(self) -> int:
        """How many keys are loaded."""
        return len(self._hashes.array)

    @cached_property
    def _store(self) -> RowStore:
        """Where all is, opened when the names and types of the program are known."""
        store = RowStore(self._backend, len(TIMES))
        move_buckets(self._backend, store)
        numbers = store.user.get(NUMBERS_OF_TIMERS) or [0] * KINDS_OF_TIME
        for timers, number in zip(self._timers, numbers, strict=True):
            timers.number = max(timers.number, number)
        self._begin_with(store)
        return store

    def _begin_with(self, store: RowStore) -> None:
        """Do what has to be done with all that is stored, before any of it is loaded."""

    def _end_with(self, store: RowStore, places: Numbers, types: RowTypes) -> None:
        """Remember what the next micro-batch has to know of keys that are stored."""

    @abstractmethod
    def _column(self, kind: Any) -> _Column:
        """A column for values of a kind."""

    @abstractmethod
    def _add_keys(self, columns: Sequence[Any]) -> None:
        """Load keys, given their columns."""

    @abstractmethod
    def _take_in(self, stored: KeysInRows) -> Numbers:
        """Load keys and values as they were stored; return the places of the keys."""

    @abstractmethod
    def _columns_at(self, places: Numbers) -> tuple[RowTypes, pa.RecordBatch]:
        """The keys at some places and their values, as they are to be stored."""

    @abstractmethod
    def _expiries(self, values: Values[_Column], owners: Numbers) -> Iterable[int | None]:
        """When each of some values expires, in milliseconds; None for never."""

    def groups(self, places: Numbers) -> Numbers:
        """The key groups of the keys at some places."""
        return groups_of_hashes(self._hashes.array[places], self._max_parallelism)

    def open_everything(self) -> None:
        """Load every key."""
        if not self._are_all_at_hand:
            self._have(self._store.others())
            self._are_all_at_hand = True

    def open_due(self, kind: int, until_ms: int) -> None:
        """Load every key with a timer of a kind at or before a time, because these timers fire now."""
        self.is_quiesced = self._in_batch
        self._have(self._store.due(kind, min(until_ms, LAST)))

    def next_of_others(self, kind: int) -> int | None:
        """A lower bound, in milliseconds, of the timers of a kind of the keys that are not loaded; else None."""
        return self._store.next_of_others(kind)

    def held(self) -> dict[str, int]:
        """How many keys and timers there are; asked after a flush."""
        return {NUM_KEYS: self._store.user.get(KEYS, 0), NUM_TIMERS: self._store.user.get(TIMERS, 0)}

    @without_collection()
    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        self._put_changed(self._store)
        self._store.flush()
        self._declared.flush()
        self._forget()

    def _have(self, hashes: Hashes) -> None:
        """Load the keys of some hashes, which are sorted."""
        if not self._are_all_at_hand:
            self._read(self._store, hashes)

    @without_collection()
    def _read(self, store: RowStore, hashes: Hashes) -> None:
        for begin in range(0, len(hashes), _ROWS_AT_ONCE):
            for _, rows in store.read(hashes[begin : begin + _ROWS_AT_ONCE]):
                stored = read_rows(rows)
                places = self._take_in(stored)
                for timers, parts in zip(self._timers, stored.timers, strict=True):
                    for (owners, _, _), _ in parts:
                        self._stored_timers.array[places] += np.bincount(owners, minlength=len(places))
                    timers.take_in(*(_columns_of(*part, places) for part in parts))

    def _have_expiring(self, clock_ms: int) -> None:
        """Load every key with a value that may have expired by now."""
        self._have(self._store.due(EXPIRY, clock_ms))

    def _twins(self, key_hash: np.uint64) -> list[int]:
        """The places of all keys of a hash, of which another key was found."""
        places: list[int] = np.flatnonzero(self._hashes.array == key_hash).tolist()
        return places

    def _new_places(self, hashes: Hashes, keys: Sequence[Any], timers: int = -1) -> Numbers:
        """Load more keys, given their columns; the number of stored timers is -1 for a key that is not stored."""
        first, count = len(self), len(hashes)
        self._index.add(hashes, first)
        self._hashes.extend(hashes, count)
        self._has_changed.extend(False, count)
        self._stored_timers.extend(timers, count)
        self._add_keys(keys)
        for values in self._values.values():
            values.where.extend(NO_PLACE, count)
        return np.arange(first, first + count)

    def _values_of(self, name: Name) -> Values[_Column]:
        if name not in self._values:
            self._values[name] = Values(self._column(name[1]), len(self))
        return self._values[name]

    def _expiring(self) -> list[tuple[str, Values[_Column]]]:
        return [(name, values) for (name, _), values in self._values.items() if name.endswith(SUFFIX)]

    def _put_changed(self, store: RowStore) -> None:
        """Write the keys that have changed."""
        changed = distinct(self._hashes.array[self._has_changed.array])
        if len(changed):
            timers = [[_settled(*part) for part in of_kind.rows()] for of_kind in self._timers]
            is_living = np.zeros(len(self), bool)
            for values in self._values.values():
                is_living |= values.where.array != NO_PLACE
            for parts in timers:
                for (owners, _, _), _ in parts:
                    is_living[owners] = True
            mine = np.flatnonzero(are_in(self._hashes.array, changed))  # keys of one hash are written together
            places = mine[is_living[mine]]
            places = places[np.argsort(self._hashes.array[places], kind="stable")]
            of_timers = self._put(store, places, timers)
            store.delete(changed[~are_in(changed, distinct(self._hashes.array[places]))])
            stored = self._stored_timers.array[mine]
            store.user[KEYS] = store.user.get(KEYS, 0) + len(places) - int(np.count_nonzero(stored >= 0))
            store.user[TIMERS] = store.user.get(TIMERS, 0) + of_timers - int(stored[stored > 0].sum())
        store.user[NUMBERS_OF_TIMERS] = [of_kind.number for of_kind in self._timers]

    def _put(self, store: RowStore, places: Numbers, timers: Sequence[Parts]) -> int:
        """Write the keys at some places, which are sorted by hash; return the number of timers."""
        at = np.full(len(self), NO_PLACE)
        at[places] = np.arange(len(places))
        mine = [[_at(*part, at) for part in parts] for parts in timers]
        like = store.last_schema
        for begin, end in _slices(self._hashes.array[places]):
            some, of_some = places[begin:end], [[_within(*part, begin, end) for part in parts] for parts in mine]
            types, rows = self._columns_at(some)
            self._end_with(store, some, types)
            if like is not None:
                types, rows = with_values_of(types, rows, like)
            written = as_stored(types, pa.Table.from_batches([rows]), of_some, like)
            store.write(written, self._due(some, of_some))
            like = written.schema
        return sum(len(owners) for parts in mine for (owners, _, _), _ in parts)

    def _due(self, places: Numbers, timers: Sequence[Parts]) -> list[Numbers]:
        """When the keys at some places are due, of each kind of time."""
        rows = [(np.flatnonzero(values.where.array[places] != NO_PLACE), values) for _, values in self._expiring()]
        return due_times(len(places), timers, ((at, self._expiries(values, places[at])) for at, values in rows))


def _slices(hashes: Hashes) -> Iterator[tuple[int, int]]:
    """Where some rows begin and end that fit into columns of Arrow, given hashes in order: equal ones stay together."""
    return pairwise([*firsts(hashes)[::_ROWS_AT_ONCE].tolist(), len(hashes)])


def _within(
    timers: TimerRows, namespaces: Sequence[Any] | None, begin: int, end: int
) -> tuple[TimerRows, Sequence[Any] | None]:
    """The timers of some of their rows, counted from the first of these."""
    owners, times, numbers = timers
    some = slice(*np.searchsorted(owners, (begin, end)).tolist())
    return (owners[some] - begin, times[some], numbers[some]), None if namespaces is None else namespaces[some]


def _columns_of(timers: TimerRows, namespaces: Sequence[Any] | None, places: Numbers) -> TimerColumns | None:
    """Timers of rows, given the places of their keys."""
    owners, times, numbers = timers
    return timer_columns(places[owners], times, numbers, namespaces)


def _settled(timers: TimerRows, namespaces: Sequence[Any] | None) -> tuple[TimerRows, Sequence[Any] | None]:
    """Timers by key and time; of one that was set again, the first number counts. One with a namespace is set once."""
    places, times, numbers = timers
    if namespaces is not None:
        return timers, namespaces
    order = order_by(places, times, numbers)
    places, times, numbers = places[order], times[order], numbers[order]
    first = firsts(places, times)
    return (places[first], times[first], numbers[first]), None


def _at(timers: TimerRows, namespaces: Sequence[Any] | None, rows: Numbers) -> tuple[TimerRows, Sequence[Any] | None]:
    """The timers whose keys have a row, in the order of the rows."""
    owners, times, numbers = timers
    mine = np.flatnonzero(rows[owners] != NO_PLACE)
    mine = mine[order_by(rows[owners[mine]])]
    spaces = None if namespaces is None else [namespaces[i] for i in mine.tolist()]
    return (rows[owners[mine]], times[mine], numbers[mine]), spaces
