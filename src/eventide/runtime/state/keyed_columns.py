"""State and timers of many keys at once, as columns: rows in extents, which are read when their keys are touched.

``TimerArrays`` has the timers while they are loaded; they are stored as those of single keys are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo import TypeInformation
from eventide.common.typeinfo.widening import Conversion, conversion, has_text
from eventide.errors import DataError, StateError
from eventide.pickling.pickles import dumps
from eventide.runtime.elements.elements import columns_of_fields, types_of_fields
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import are_first, distinct, order_by
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import KINDS_OF_TIME
from eventide.runtime.state.declared import VALUE, RowTypes, widened
from eventide.runtime.state.expiring import SUFFIX, expiry_of, unexpired, without_times
from eventide.runtime.state.extents import RowStore
from eventide.runtime.state.loaded_rows import Flags, GrowingColumn, LoadedRows, Name, Values
from eventide.runtime.state.rows_of_keys import ANYTHING, AS_THEY_ARE, SPACES, KeysInRows, NoColumns
from eventide.runtime.state.timers import (
    NO_PLACE,
    LoadedKeys,
    Numbers,
    TimerColumns,
    TimerRows,
    WaitingTimers,
    are_among,
    rows_of_columns,
    together,
)

_NOTHING = np.zeros(0, np.int64)


class KeysInPlaces(LoadedKeys, Protocol):
    """The keys that have timers, where what has changed of them is told."""

    def touch(self, places: Numbers) -> None:
        """Take note that what the keys at some places have may have changed."""


class TimerArrays:
    """The timers of one kind of a function on columns: they have no namespaces, and fire many at once."""

    def __init__(self, keys: KeysInPlaces, kind: int, number: int) -> None:
        self.number = number
        self._keys = keys
        self._kind = kind
        self._waiting = WaitingTimers([])
        self._firing: TimerRows = (_NOTHING, _NOTHING, _NOTHING)
        self._firing_until: int | None = None
        self._has_changed = False

    def register(self, places: Numbers, times: Numbers) -> None:
        """Set a timer for the key at each of some places; setting one again changes nothing."""
        if self._keys.is_quiesced or not len(places):
            return
        numbers = np.arange(self.number + 1, self.number + 1 + len(places))
        self.number += len(places)
        self._keys.touch(places)
        self._waiting.add((places, times, numbers))
        self._has_changed = self._has_changed or (self._firing_until is not None and times.min() <= self._firing_until)

    def delete(self, places: Numbers, times: Numbers) -> None:
        """Delete timers, whether they are set or not."""
        if not len(places):
            return
        self._keys.touch(places)
        self._waiting.delete(places, times)
        if len(self._firing[0]):
            stays = ~are_among(*self._firing[:2], places, times)
            self._has_changed = self._has_changed or not stays.all()
            self._firing = _at(self._firing, stays)

    def due(self, until_ms: int) -> Iterator[TimerRows]:
        """Fire: take out the timers at or before a time, each time at most one of each key, the earliest.

        They come in the order of their time, then of key groups, then of their numbers.
        """
        self._keys.open_due(self._kind, until_ms)
        self._firing_until, self._has_changed = until_ms, True
        round_of = _NOTHING
        try:
            while True:
                if self._has_changed:
                    round_of = self._settle(until_ms)
                    self._has_changed = False
                if not len(round_of):
                    return
                end = int(np.searchsorted(round_of, round_of[0], "right"))
                now, self._firing = _at(self._firing, slice(end)), _at(self._firing, slice(end, None))
                round_of = round_of[end:]
                yield now
        finally:
            self._firing_until = None

    def next_ms(self) -> int | None:
        """The time of the earliest timer that is set, in milliseconds; None if there is none."""
        times = (self._waiting.next_ms({}), self._keys.next_of_others(self._kind))
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    def count(self) -> int:
        """How many timers are set: it reads those of all keys."""
        self._keys.open_everything()
        places, times, _ = together(self._waiting.rows({}))
        return len({*zip(places.tolist(), times.tolist(), strict=True)})

    def take_in(self, *columns: TimerColumns | None) -> None:
        """Take note of timers whose keys have places among the loaded ones."""
        for of_keys in columns:
            if of_keys is not None:
                self._waiting.add(rows_of_columns(of_keys))

    def rows(self) -> list[tuple[TimerRows, Sequence[Hashable] | None]]:
        """The timers of the loaded keys; one that was set again is there twice."""
        return [(together(self._waiting.rows({})), None)]

    def clear(self) -> None:
        """Forget all keys that were loaded."""
        self._waiting.clear()

    def _settle(self, until_ms: int) -> Numbers:
        """Sort all due timers in the order in which they fire: the timers of a key one after the other, in rounds.

        Returns:
            the round of each of them.
        """
        places, times, numbers = together([self._firing, self._waiting.take(until_ms)])
        self._keys.touch(places)
        order = order_by(places, times, numbers)
        places, times, numbers = places[order], times[order], numbers[order]
        is_first, is_other = are_first(places), are_first(places, times)  # not one that was set again
        places, times, numbers, is_first = places[is_other], times[is_other], numbers[is_other], is_first[is_other]
        index = np.arange(len(places))
        rounds = index - np.maximum.accumulate(np.where(is_first, index, 0))
        order = order_by(rounds, times, self._keys.groups(places), numbers)
        self._firing = places[order], times[order], numbers[order]
        return rounds[order]


def _at(rows: TimerRows, where: Any) -> TimerRows:
    places, times, numbers = rows
    return places[where], times[where], numbers[where]


_NO_ROWS = np.zeros(0, np.int64)
_NO_HASHES: Hashes = np.zeros(0, np.uint64)
_HASHES_AT_ONCE = 1 << 18
_SPACED = "there is state or there are timers of windows, which a function on columns does not have"


class KeyedColumns(LoadedRows[GrowingColumn]):
    """The keys that were touched, with their values by name and their timers, all in columns.

    A function on columns knows no namespaces.

    Args:
        backend: where it is stored.
        key: the type of the keys.
        max_parallelism: the number of key groups.
        in_batch: as in `KeyedState`.

    Attributes:
        timers: those of event time, and of processing time.
    """

    def __init__(self, backend: Backend, key: TypeInformation, max_parallelism: int, *, in_batch: bool = False) -> None:
        self._key = key
        self._kinds: dict[str, TypeInformation] = {}
        self._conversions: dict[str, Conversion] = {}
        super().__init__(backend, max_parallelism, in_batch=in_batch)
        self._timers = self.timers = [TimerArrays(self, kind, 0) for kind in range(KINDS_OF_TIME)]
        self._forget()

    def _forget(self) -> None:
        super()._forget()
        self._keys = [GrowingColumn(kind.arrow_type()) for kind in types_of_fields(self._key)]

    def declare(self, name: str, type_info: TypeInformation, kind: str = VALUE) -> None:
        """Say the type and the kind of what is stored under a name, before any key is touched.

        Raises:
            StateError: if what is stored is of another kind, or has a type that does not widen to this one.
        """
        self._kinds[name] = type_info if has_text(type_info) else ANYTHING
        convert = self._declared.declare(name, type_info, kind)
        if convert is not None:
            self._conversions |= {name: convert, name + SUFFIX: partial(widened, convert=convert, expires=True)}

    def places_of(self, hashes: Hashes, keys: Sequence[pa.Array]) -> Numbers:
        """Load keys, each given once by its hash and its parts; return their places.

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
            self._new_places(hashes[new], [key.take(pa.array(new)) for key in keys])
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

    def get_as_they_are(self, name: str, places: Numbers, kind: TypeInformation) -> pa.Array:
        """The values, where columns of the type give all of them back as they were.

        Raises:
            NoColumns: if they would not.
        """
        for of_kind, values in self._of_name(name):
            rows = np.flatnonzero(values.where.array[places] != NO_PLACE) if of_kind != kind else _NO_ROWS
            if len(rows) and not kind.keeps(of_kind.from_arrow(values.at(places[rows]))):
                raise NoColumns("state is stored that columns of its type would change")
        try:
            return self.get(name, places, kind)
        except StateError as error:
            raise NoColumns("state is stored that columns of its type cannot hold") from error

    def put(self, name: str, places: Numbers, values: pa.Array, kind: TypeInformation) -> None:
        """Give the keys at some places values of a type under a name; null deletes. The last one of a key stays.

        They are stored in columns of this type also if the state is declared to have any object.
        """
        stored = kind if has_text(kind) else ANYTHING
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
        """Give the keys at some places back the values that they had before."""
        for name, values in self._values.items():
            values.where.array[places] = before.get(name, NO_PLACE)

    def touch(self, places: Numbers) -> None:
        """Take note that what the keys at some places have may have changed."""
        self._has_changed.array[places] = True

    def expire(self, clock_ms: int) -> None:
        """Forget what has expired of what an earlier program gave a time to live; call it before :meth:`flush`."""
        self._have_expiring(clock_ms)
        for name, values in self._expiring():
            owners = values.owners()
            before = ANYTHING.from_arrow(values.at(owners))
            now = [unexpired(stored, clock_ms) for stored in before]
            rows = [row for row, (one, other) in enumerate(zip(before, now, strict=True)) if one is not other]
            self._set(name, owners[rows], ANYTHING.to_arrow([now[row] for row in rows]), ANYTHING)

    def _begin_with(self, store: RowStore) -> None:
        """Convert what says no type itself, where the type of its state has become wider."""
        hashes = store.others() if self._conversions else _NO_HASHES
        for begin in range(0, len(hashes), _HASHES_AT_ONCE):
            self._read(store, hashes[begin : begin + _HASHES_AT_ONCE])
            self._has_changed.array[:] = True
            self._put_changed(store)
            store.flush()
            self._forget()
        self._conversions = {}

    def _take_in(self, stored: KeysInRows) -> Numbers:
        types, first = stored.types, len(self)
        keys = types.parts_of(stored.rows) if types.key == self._key else self._as_keys(stored.keys())
        if any(len(of_kind[1][0][0]) for of_kind in stored.timers):
            raise NoColumns(_SPACED)
        places = self._new_places(stored.hashes, keys, 0)
        for column, kind, values in stored.values():
            name = column.removesuffix(AS_THEY_ARE)
            if name.endswith(SPACES):
                raise NoColumns(_SPACED)
            says_type = name == column and not kind.is_pickled
            declared = self._kinds.get(name, kind)
            convert = self._conversions.get(name)
            if says_type:
                convert = None if kind == declared or declared.is_pickled else conversion(kind, declared)
            if convert is None and name == column:
                self._values_of((name, kind)).set(places, values)
                continue
            owners = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            objects = kind.from_arrow(values.drop_null())
            self._set_objects(name, places[owners], objects if convert is None else list(map(convert, objects)))
        self._forget_times(first)
        return places

    def _as_keys(self, keys: list[Any]) -> list[pa.Array]:
        """Some keys that are stored as objects, by their parts."""
        kind = self._key
        try:
            return columns_of_fields(kind.to_arrow(keys), kind)
        except (DataError, ValueError, OverflowError) as error:
            raise NoColumns(f"keys are stored that are not of their type {kind}: {error}") from error

    def _set_objects(self, name: str, places: Numbers, objects: list[Any]) -> None:
        """Give the keys at some places objects under a name, in a column of its type if that gives them back."""
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

    def _add_keys(self, columns: Sequence[pa.Array]) -> None:
        for of_all, column in zip(self._keys, columns, strict=True):
            of_all.extend(column)

    def _forget_times(self, first: int) -> None:
        """Take the time to live from values that have one from an earlier program, and none from this one."""
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

    def _columns_at(self, places: Numbers) -> tuple[RowTypes, pa.RecordBatch]:
        held = {name: v for name, v in self._values.items() if (v.where.array[places] != NO_PLACE).any()}
        names = sorted(held, key=lambda of: (of[0], str(of[1])))
        types = RowTypes(self._key, tuple(names))
        values = [held[name].at(places) for name in names]
        return types, types.rows(self.keys_at(places), self._hashes.array[places], values)

    def _expiries(self, values: Values[GrowingColumn], owners: Numbers) -> Iterable[int | None]:
        return (expiry_of(stored) for stored in ANYTHING.from_arrow(values.at(owners)))


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
