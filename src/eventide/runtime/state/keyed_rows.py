"""The keys of a subtask that lie in buckets, as rows: which buckets are read, and what is written of them."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS
from eventide.runtime.elements.elements import without_collection
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.ordering import distinct, order_by
from eventide.runtime.metrics import KEYS, TIMERS
from eventide.runtime.state.at_hand import Flags, Name, RowsAtHand, Values
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import EXPIRY, TIMES, Times
from eventide.runtime.state.bucket_store import NOTHING, BucketStore, Made, Stored, addresses
from eventide.runtime.state.declared import DeclaredTypes
from eventide.runtime.state.growing import GrowingArray, GrowingObjects
from eventide.runtime.state.timers import (
    NO_PLACE,
    Numbers,
    Rows,
    TimerColumns,
    Timers,
    by_bucket,
    joined,
    rows_of_columns,
)

TimersOfBucket: TypeAlias = Sequence[tuple[TimerColumns | None, ...]]
"""The timers of each kind: those without a namespace; and those with one, where there may be any."""

Plan: TypeAlias = tuple[int, bool, TimersOfBucket, Times]
"""A bucket that is written: its number, whether these are changes, its timers, and the earliest time of each kind."""

_LARGEST_PART = 8
"""Changes are stored beside a bucket if they are at most one key in this many of the bucket."""
_GROWTH = 4
"""Changes stay as they are while they have at least this many times the keys of all that came after them."""
_LEAST = 2_048
"""A bucket of fewer bytes is stored as a whole: a call to the store costs more than what it carries."""


class Part(NamedTuple):
    """A bucket as it was read, or its changes.

    Attributes:
        names: those of its values.
        rows: its keys, with their hashes and values.
        length: how many keys it has.
        timers: those of its keys.
        size: how many bytes it has.
        expiry: when the first of its values expires, in milliseconds, or a time before that; None for never.
        is_own: whether it has the form in which it is written, so that changes can lie beside it.
    """

    names: tuple[Name, ...]
    rows: Any
    length: int
    timers: TimersOfBucket
    size: int
    expiry: int | None
    is_own: bool = True


class KeyedRows(RowsAtHand[GrowingObjects]):
    """The keys whose buckets were read, with their values by name and their timers, and what has become of them.

    Where a few keys of a bucket have changed, they are stored beside
    it. Later changes lie beside earlier ones, or become one with those that are not much larger: so a key is written
    again a few times only, and there are few changes to read.
    """

    def __init__(
        self, backend: Backend, max_parallelism: int, bucket_bytes: int, small_bytes: int, *, in_batch: bool
    ) -> None:
        super().__init__(max_parallelism, in_batch=in_batch)
        self._declared = DeclaredTypes(backend)
        self._store = BucketStore(backend, bucket_bytes, TIMES, small_bytes)
        self._timers: Sequence[Timers] = ()
        self._forget()

    def _forget(self) -> None:
        super()._forget()
        self._count = self._store.count  # of the buckets as they are stored, while more of them are made
        self._stored: dict[int, Stored] = {}
        self._looked_through: set[int] = set()
        self._new = 0
        self._part = GrowingArray(np.int8)

    @abstractmethod
    def _read(self, content: bytes) -> list[Part]:
        """A bucket, and its changes, if there are any."""

    @abstractmethod
    def _joined(self, names: Sequence[Name], parts: Sequence[Part]) -> tuple[Hashes, Sequence[Any], Sequence[Any]]:
        """The hashes, the columns of the keys, and the values by name, with their rows, of parts of the same names."""

    @abstractmethod
    def _contents(self, rows: Numbers, bounds: Numbers, plans: Iterable[Plan]) -> Iterable[bytes]:
        """The content of each bucket that is planned; the keys at `rows` that lie between its bounds are in it."""

    @abstractmethod
    def _expiries(self, values: Values[GrowingObjects], owners: Numbers) -> Iterable[int | None]:
        """When each of some values expires, in milliseconds; None for never."""

    def open_everything(self) -> None:
        """Have every key at hand."""
        self._have(range(self._store.count))

    def open_due(self, kind: int, until_ms: int) -> None:
        """Have every key at hand that has a timer of a kind at or before a time, because these fire now."""
        self.is_quiesced = self._in_batch
        self._have(self._store.schedules[kind].due(until_ms))

    def next_of_others(self, kind: int) -> int | None:
        """The earliest timer of a kind of the keys that are not at hand, in milliseconds; None if there is none."""
        return self._store.schedules[kind].next_but(self._stored)

    def held(self) -> dict[str, int]:
        """How many keys and timers there are; asked after a flush."""
        return {KEYS: self._store.entries, TIMERS: self._store.timers}

    def _find(self, hashes: Hashes) -> Numbers:
        """Have the buckets of some hashes at hand, and find a key of each; `NO_PLACE` where there is none."""
        store = self._store
        wanted = distinct(addresses(hashes, store.count)).tolist()
        are_most = 2 * len(wanted) > store.count > 2 * store.fitting  # and would better be fewer
        self._have(range(store.count) if are_most else wanted)
        return self._index.find(hashes)

    def _add(self, hashes: Hashes, keys: Sequence[Any], those: Flags | None = None) -> None:
        super()._add(hashes, keys, those)
        self._part.extend(0, len(hashes))

    def _have(self, buckets: Iterable[int]) -> None:
        new = sorted(number for number in buckets if number not in self._stored)
        if not new:
            return
        with without_collection():
            found = self._store.get_many(new)
            read = [[] if (content := found[number]) is None else self._read(content) for number in new]
            first = len(self)
            taken = [
                (number, parts, places)
                for number in range(max(map(len, read)))
                for parts, places in self._take_in([parts[number] for parts in read if len(parts) > number], number)
            ]
            newest = [
                (parts, np.where(self._part.array[places] == number, places, NO_PLACE))
                for number, parts, places in taken
            ]
            self._note_stored(new, read, first, self._take_in_timers(newest, first))

    def _take_in(self, parts: Sequence[Part], number: int) -> list[tuple[list[Part], Numbers]]:
        """Have the keys of buckets at hand; or of changes, by their number from 1, in place of what they replace.

        Returns:
            Parts of the same names, and the places of their keys.
        """
        alike = defaultdict[tuple[Name, ...], list[Part]](list)
        for part in parts:
            alike[part.names].append(part)
        found = []
        for names, some in alike.items():
            hashes, keys, columns = self._joined(names, some)
            places = self._index.find(hashes) if number else np.full(len(hashes), NO_PLACE)
            is_new = places == NO_PLACE
            places[is_new] = np.arange(len(self), len(self) + np.count_nonzero(is_new))
            self._add(hashes[is_new], keys, is_new if number else None)
            if number:
                self._part.array[places] = number
                for values in self._values.values():
                    values.where.array[places] = NO_PLACE
            for name, (rows, values_of_rows) in zip(names, columns, strict=True):
                self._values_of(name).set(places[rows], values_of_rows)
            found.append((some, places))
        return found

    def _take_in_timers(self, taken: Sequence[tuple[list[Part], Numbers]], first: int) -> list[list[Rows]]:
        """Have the timers of some parts at hand, given the places that their keys have now, all from the first on.

        Returns:
            The timers of each kind, whose keys are counted from there.
        """
        found: list[list[Rows]] = [[] for _ in self._timers]
        for parts, places in taken:
            firsts = np.array([0, *accumulate(part.length for part in parts[:-1])])
            for kind, timers in enumerate(self._timers):
                groups = zip(*(part.timers[kind] for part in parts), strict=True)
                columns = [joined(group, firsts, places) for group in groups]
                timers.take_in(*columns)
                for owners, times, numbers in map(rows_of_columns, filter(None, columns)):
                    found[kind].append((owners - first, times, numbers))
        return found

    def _note_stored(
        self, new: Sequence[int], read: Sequence[Sequence[Part]], first: int, timers: Sequence[Sequence[Rows]]
    ) -> None:
        """Take note of how buckets are stored. Their keys are those from a place on; their timers count from it."""
        count, slots = len(new), np.searchsorted(new, addresses(self._hashes.array[first:], self._count))
        is_living = self._have_anything(timers, first) | (self._part.array[first:] == 0)
        entries = np.bincount(slots[is_living], minlength=count)
        counts = np.zeros(count, np.int64)
        for owners, _, _ in chain.from_iterable(timers):
            counts += np.bincount(slots[owners], minlength=count)
        facts = zip(new, read, entries.tolist(), counts.tolist(), *_earliest(timers, slots, count), strict=True)
        for number, parts, of_bucket, of_timers, *due in facts:
            if not parts:
                self._stored[number] = NOTHING
                continue
            expiry = min((part.expiry for part in parts if part.expiry is not None), default=None)
            sizes, rows = zip(*((part.size, part.length) for part in parts), strict=True)
            own, times = parts[0], (*due, expiry)
            of_own_form = rows if own.is_own else ()
            self._stored[number] = Stored(sizes, of_own_form, of_bucket, of_timers, times)

    @without_collection()
    def flush(self) -> None:
        """Write back what has changed; call it once at the end of a micro-batch."""
        if self._looked_through:  # written as a whole, so that they say when something expires
            numbers = addresses(self._hashes.array, self._store.count)
            self._has_changed.array[np.isin(numbers, [*self._looked_through])] = True
        changed = self._hashes.array[self._has_changed.array]
        if len(changed):
            self._store.follow(len(changed) - self._new, len(self._stored))
            numbers = distinct(addresses(changed, self._store.count)).tolist()
            self._store.write(numbers, self._stored, self._have, self._made)
        for number in self._looked_through:
            self._store.schedules[EXPIRY].set(number, self._stored[number].earliest[EXPIRY])
        self._store.numbers = [timers.number for timers in self._timers]
        self._store.flush()
        self._declared.flush()
        self._forget()

    def _made(self, buckets: Sequence[int], is_whole: bool) -> dict[int, Made]:
        """Some buckets, in their order, as they are to be stored; as a whole, if their keys may come from others."""
        count = len(buckets)
        numbers = addresses(self._hashes.array, self._store.count)
        slot_of = np.full(max(self._store.count, buckets[-1] + 1), count)  # for buckets that are not asked for
        slot_of[buckets] = np.arange(count)
        slots = slot_of[numbers]
        groups = [of_kind.rows() for of_kind in self._timers]
        timers = [[rows for rows, _ in of_kind] for of_kind in groups]
        is_living = self._have_anything(timers)
        kept = np.zeros(count + 1, np.int8)
        if not is_whole and not self._index.has_twins:  # which could not be told apart by their hashes
            changed = np.bincount(slots[self._has_changed.array], minlength=count).tolist()
            kept[:count] = [
                _parts_kept(self._stored[number], rows) for number, rows in zip(buckets, changed, strict=False)
            ]
        is_change = self._has_changed.array | (self._part.array >= kept[slots])
        rows = np.flatnonzero((slots < count) & np.where(kept[slots], is_change, is_living))
        rows = rows[order_by(slots[rows])]
        places = np.full(len(self), NO_PLACE)
        places[rows] = np.arange(len(rows))
        bounds = np.searchsorted(slots[rows], np.arange(count + 1))
        of_buckets = [[by_bucket(*group, places, bounds) for group in of_kind] for of_kind in groups]
        columns = zip(*(zip(*(found for found, _ in of_kind), strict=True) for of_kind in of_buckets), strict=True)
        counts = np.zeros(count + 1, np.int64)
        counts[:count] = sum(of_bucket for _, of_bucket in chain.from_iterable(of_buckets))
        for owners, _, _ in chain.from_iterable(timers):
            counts += np.bincount(slots[owners[places[owners] == NO_PLACE]], minlength=count + 1)
        kept_parts = kept[:count].tolist()
        expiries = self._expiries_of(buckets, slots, places, kept_parts)
        times_of: list[Times] = list(zip(*_earliest(timers, slots, count + 1), expiries, strict=False))
        are_changes = map(bool, kept_parts)
        contents = self._contents(rows, bounds, zip(buckets, are_changes, columns, times_of, strict=True))
        facts = zip(
            buckets,
            contents,
            np.diff(bounds).tolist(),
            np.bincount(slots[is_living], minlength=count + 1).tolist(),
            counts.tolist(),
            times_of,
            kept_parts,
            strict=False,
        )
        return {
            number: Made(content, entries, of_timers, due, parts) if keys else Made()
            for number, content, keys, entries, of_timers, due, parts in facts
        }

    def _expiries_of(
        self, buckets: Sequence[int], slots: Numbers, places: Numbers, kept: Sequence[int]
    ) -> list[int | None]:
        """When something of each bucket expires first, or a time before that; the keys that are written have places."""
        found = [
            self._stored[number].earliest[EXPIRY] if parts else None
            for number, parts in zip(buckets, kept, strict=True)
        ]
        for _, values in self._expiring():
            owners = values.owners()
            owners = owners[places[owners] != NO_PLACE]
            for slot, time_ms in zip(slots[owners].tolist(), self._expiries(values, owners), strict=True):
                known = found[slot]
                if time_ms is not None and (known is None or time_ms < known):
                    found[slot] = time_ms
        return found


def _parts_kept(stored: Stored, changed: int) -> int:
    """How many parts of a bucket stay, of which some keys have changed; 0 where all are written again as one."""
    sizes, rows = stored.sizes, stored.rows
    if not rows or sizes[0] < _LEAST or (changed + sum(rows[1:])) * _LARGEST_PART > rows[0]:
        return 0
    kept, together = len(rows), changed
    while kept > 1 and rows[kept - 1] < _GROWTH * together:
        kept -= 1
        together += rows[kept]
    return kept


def _earliest(timers: Sequence[Sequence[Rows]], slots: Numbers, count: int) -> list[list[int | None]]:
    """The earliest time of each kind in each of ``count`` buckets, given the bucket of each key; None for never."""
    found = []
    for of_kind in timers:
        earliest, has_any = np.full(count, MAX_MS), np.zeros(count, bool)
        for owners, times, _ in of_kind:
            np.minimum.at(earliest, slots[owners], times)
            has_any[slots[owners]] = True
        found.append([ms if has_one else None for ms, has_one in zip(earliest.tolist(), has_any.tolist(), strict=True)])
    return found
