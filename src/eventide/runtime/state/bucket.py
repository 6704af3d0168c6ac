"""Buckets of keys: what each keeps side by side, as bytes.

``Bucket`` has what is stored of some keys, and ``buckets_of`` fills buckets from what is at hand. Where few keys of a
stored bucket have changed, they follow it as a bucket of their own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.expiring import SUFFIX, expiry_of
from eventide.runtime.state.pages import HASH, Page, PageTypes, is_page, read_page, without_empty
from eventide.runtime.state.stored_timers import (
    NO_PLACE,
    NUMBERS,
    PLACES,
    Numbers,
    TimerColumns,
    TimersInOrder,
    count_of,
    earliest_of,
    joined,
)
from eventide.runtime.state.timers import Timers

KINDS_OF_TIME = 2
"""There are timers of event time, and of processing time."""

EXPIRY = KINDS_OF_TIME
"""The kind of time at which the first part of a bucket expires; most have none."""

Owners: TypeAlias = list[int] | None
"""Which keys of a bucket have something, by their places; None stands for all."""

Column: TypeAlias = tuple[Owners, bool, list[Any]]
"""A state of some keys under one name: which keys, whether each value is a pickle, and the values or pickles."""

_HASHES, _ROWS = np.dtype("<u8"), np.dtype("<i4")

_PLAIN = frozenset({str, int, float, bool, bytes})
"""Values of these types cannot be changed, so that those of several keys are pickled together."""

TIMES = ("event times", "clock times", "expiries")
"""The names of the kinds of time in a store of buckets."""

Times: TypeAlias = tuple[int | None, ...]
"""A time of each kind, in milliseconds; None for never."""

NO_TIMES: Times = (None,) * (KINDS_OF_TIME + 1)
"""The due time of an empty bucket."""


_LENGTH, _END_OF_CHANGES = struct.Struct("<I"), b"keys"
"""Changes end with their length and this, and no bucket ends so."""

_TYPICAL = (
    b"eventide.common.time_window\x94\x8c\nTimeWindow\x94\x93\x94)\x81\x94N}\x94(\x8c\x05start\x94\x8c\x03end\x94u\x86\x94bK\x06s."
    b"eventide.api.windows\x94\x8c\x0cGlobalWindow\x94\x93\x94)\x81\x94]\x94b\x8c\x08contents\x94\x8c\x07windows\x94N\x88]\x94C$"
    b"\x80\x05\x95\x19\x00\x00\x00\x00\x00\x00\x00]\x94\x8a\x06\x00\x00]\x94\x8a\x06\x86\x94.\x94a\x87\x94}\x94(\x8c\ttrigger:\x80\x05"
    b"\x95\x00\x00\x00\x00\x00\x00\x00\x00(]\x94aC\x08}\x94\x8c\x0bglobal:N\x89]\x94\x8a\x06a\x87\x94s}\x94]\x94((C\x04\x00\x00\x00"
    b"\x00\x94C\x08\x01\x00\x00\x94C\x08\x00\x00\x00\x00\x00\x00\x94]\x94(at\x94N\x86\x94NN\x86\x94e\x8a\x06\x01NN\x87\x94t\x94."
)
"""Parts of the pickle of a bucket that has one key, which changes are compressed by. It stays as it is for ever."""


class Stored(NamedTuple):
    """A bucket as it is stored, with its changes.

    Attributes:
        own_bytes: the bytes of the bucket itself, without its changes; 0 where it can have none beside it.
        own_entries: its keys.
        size: the bytes of both.
        entries: how many keys have anything.
        timers: how many timers these have.
        earliest: the earliest time of each kind, in milliseconds.
        types: those of a page.
    """

    own_bytes: int = 0
    own_entries: int = 0
    size: int = 0
    entries: int = 0
    timers: int = 0
    earliest: Times = NO_TIMES
    types: PageTypes | None = None


NOTHING = Stored()


_FEW = 4
"""So few keys are looked for in a bucket one by one."""

_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class Pickled(bytes):
    """A value that was not looked at since it was read: it is written as it is."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Bucket:
    """Some keys by their places, and what is kept of them.

    Attributes:
        keys: the keys.
        hashes: their hashes.
        values: what has no namespace, by name.
        spaces: by name too, what each key has by namespace.
        timers: of each kind, those without a namespace and those with one.
        expiry: a time before which nothing of it expires, in milliseconds; None if nothing does.
        known: the earliest time of each kind, or an earlier one, where that was stored.

    >>> bucket = Bucket(["a"], np.array([7], np.uint64), {"n": column(["x"], 1)})
    >>> Bucket.from_bytes(bucket.to_bytes()).values
    {'n': (None, False, ['x'])}
    """

    keys: list[Any]
    hashes: Hashes
    values: dict[str, Column] = field(default_factory=dict)
    spaces: dict[str, Column] = field(default_factory=dict)
    timers: Sequence[tuple[TimerColumns | None, TimerColumns | None]] = ((None, None),) * KINDS_OF_TIME
    expiry: int | None = None
    known: Times | None = None

    @property
    def earliest(self) -> Times:
        """The earliest time of each kind, in milliseconds; None if there is none."""
        if self.known is None:
            self.known = (*map(earliest_of, self.timers), self.expiry)
        return self.known

    def count_timers(self) -> int:
        """How many timers its keys have."""
        return sum(map(count_of, self.timers))

    def keep_anything(self) -> _Flags:
        """For each key, whether anything is kept of it: of keys that have changed, this may be nothing."""
        found = np.zeros(len(self.keys), bool)
        for owners, _, _ in chain(self.values.values(), self.spaces.values()):
            found[slice(None) if owners is None else owners] = True
        for part in chain.from_iterable(self.timers):
            if part is not None:
                found[np.frombuffer(part[0], PLACES)] = True
        return found

    def only(self, rows: Numbers) -> Bucket:
        """The keys at some places, in their order, with what is kept of them."""
        if len(rows) == len(self.keys):
            return self
        places = np.full(len(self.keys), NO_PLACE)
        places[rows] = np.arange(len(rows))
        some = rows.tolist()
        values, spaces = (
            {name: part for name, of_name in kind.items() if (part := _only(of_name, places, some)) is not None}
            for kind in (self.values, self.spaces)
        )
        timers = [(joined([plain], [places]), joined([spaced], [places])) for plain, spaced in self.timers]
        keys = list(map(self.keys.__getitem__, some))
        return Bucket(keys, self.hashes[rows], values, spaces, timers, self.expiry if some else None)

    def to_bytes(self) -> bytes:
        """Return the bytes to be stored. Raises what pickling raises."""
        return dumps(self._parts())

    def to_bytes_of_changes(self, replaced: Numbers, entries: int, timers: int, earliest: Times) -> bytes:
        """Return the bytes to be stored after those of a bucket, whose changes these are.

        Args:
            replaced: where there each key has been so far; `NO_PLACE` for a new one.
            entries: how many keys the bucket has with its changes.
            timers: how many timers these have.
            earliest: the earliest time of each kind, in milliseconds.
        """
        of_all = (earliest, replaced.astype(_ROWS).tobytes(), entries, timers)
        packing = zlib.compressobj(1, wbits=-zlib.MAX_WBITS, zdict=_TYPICAL)
        content = packing.compress(dumps((*self._parts()[:-1], *of_all))) + packing.flush()
        return content + _LENGTH.pack(len(content)) + _END_OF_CHANGES

    @staticmethod
    def from_bytes(stored: bytes, load: Callable[[bytes], Any] = loads) -> Bucket:
        """The inverse of :meth:`to_bytes`, which reads pages too: their values are objects then."""
        _, (own, *changes) = read_bucket(stored, load)
        return together([own.bucket.only(own.living()), *(keys.bucket.only(keys.living()) for keys in changes)])

    def _parts(self) -> tuple[Any, ...]:
        hashes = self.hashes.astype(_HASHES).tobytes()
        return self.keys, hashes, self.values, self.spaces, self.timers, self.earliest


def read_bucket(stored: bytes, load: Callable[[bytes], Any] = loads) -> tuple[Stored, list[Resting]]:
    """How a bucket is stored, and its keys: those that lie in it, and those that have changed since, if there are any.

    A page is read with its changes, and has no bytes of its own.
    """
    if not is_page(stored) and stored.endswith(_END_OF_CHANGES):
        end = len(stored) - _LENGTH.size - len(_END_OF_CHANGES)
        own_bytes = end - _LENGTH.unpack_from(stored, end)[0]
        changes = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_TYPICAL).decompress(stored[own_bytes:end])
        *parts, replaced, entries, timers = load(changes)
        own, beside = Resting(_unpickled(load(stored[:own_bytes]))), Resting(_unpickled(parts), replaced)
        own.left[beside.origin[beside.origin != NO_PLACE]] = False
        return Stored(own_bytes, len(own.left), len(stored), entries, timers, parts[-1]), [own, beside]
    is_object = not is_page(stored)
    bucket = _unpickled(load(stored)) if is_object else _of_page(without_empty(read_page(stored)))
    own_bytes, count = len(stored) if is_object else 0, len(bucket.keys)
    own_entries = count if is_object else 0
    return Stored(own_bytes, own_entries, len(stored), count, bucket.count_timers(), bucket.earliest), [Resting(bucket)]


def first_of(times: Iterable[int | None]) -> int | None:
    """The earliest of some times; None if there is none."""
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


def together(buckets: Sequence[Bucket]) -> Bucket:
    """One bucket of the keys of several."""
    if len(buckets) < 2:
        return buckets[0] if buckets else Bucket([], np.zeros(0, np.uint64))
    firsts = np.cumsum([0, *(len(bucket.keys) for bucket in buckets)]).tolist()
    values, spaces = (
        {
            name: _column_of_parts([(kind[i].get(name), firsts[i], firsts[i + 1]) for i in range(len(kind))])
            for name in dict.fromkeys(chain.from_iterable(kind))
        }
        for kind in ([bucket.values for bucket in buckets], [bucket.spaces for bucket in buckets])
    )
    places = [np.arange(firsts[i], firsts[i + 1]) for i in range(len(buckets))]
    of_kinds = zip(*(bucket.timers for bucket in buckets), strict=True)
    timers = [
        (joined([plain for plain, _ in kind], places), joined([spaced for _, spaced in kind], places))
        for kind in of_kinds
    ]
    return Bucket(
        list(chain.from_iterable(bucket.keys for bucket in buckets)),
        np.concatenate([bucket.hashes for bucket in buckets]),
        values,
        spaces,
        timers,
        first_of(bucket.expiry for bucket in buckets),
    )


def _unpickled(content: Any) -> Bucket:
    keys, hashes, values, spaces, timers, earliest = content
    return Bucket(keys, np.frombuffer(hashes, _HASHES), values, spaces, timers, earliest[EXPIRY], earliest)


def _only(column: Column, places: Numbers, rows: list[int]) -> Column | None:
    """The values of keys that get places, at the rows that these had; None if there are none."""
    owners, are_pickled, values = column
    if owners is None:
        return (None, are_pickled, list(map(values.__getitem__, rows))) if rows else None
    found = places[owners]
    stays = found != NO_PLACE
    return (found[stays].tolist(), are_pickled, list(compress(values, stays.tolist()))) if stays.any() else None


def _column_of_parts(parts: Sequence[tuple[Column | None, int, int]]) -> Column:
    """The values of several columns in one, given between which places the keys of each lie there."""
    there = [(part, first, end) for part, first, end in parts if part is not None]
    are_pickled = any(part[1] for part, _, _ in there)
    values = list(
        chain.from_iterable(map(dumps, part[2]) if are_pickled and not part[1] else part[2] for part, _, _ in there)
    )
    if len(there) == len(parts) and all(part[0] is None for part, _, _ in there):
        return None, are_pickled, values
    owners: list[int] = []
    for part, first, end in there:
        owners += range(first, end) if part[0] is None else (first + place for place in part[0])
    return owners, are_pickled, values


def _of_page(page: Page) -> Bucket:
    types, rows, timers, _ = page
    found = Bucket(types.key.from_arrow(types.keys_of(rows)), rows.column(HASH).to_numpy())
    for (name, kind), values in zip(types.values, types.values_of(rows), strict=True):
        owners = (
            np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)).tolist() if values.null_count else None
        )
        held = values.drop_null()
        of_name: Column = (owners, kind.is_pickled, held.to_pylist() if kind.is_pickled else kind.from_arrow(held))
        earlier = found.values.get(name)
        if owners != []:
            count = len(found.keys)
            parts = [(earlier, 0, count), (of_name, 0, count)]
            found.values[name] = of_name if earlier is None else _column_of_parts(parts)
    found.timers = [(of_kind, None) for of_kind in timers]
    expiring = (
        expiry_of(loads(value) if are_pickled else value)
        for name, (_, are_pickled, values) in found.values.items()
        if name.endswith(SUFFIX)
        for value in values
    )
    found.expiry = first_of(expiring)
    return found


def column(values: list[Any], count: int) -> Column:
    """Make a column of the values of keys under a name, None where they have none; `count` have one.

    What can be changed is pickled by itself: keys share no object, and an untouched value stays as it is.

    >>> column(["x", None, "y"], 2)
    ([0, 2], False, ['x', 'y'])
    """
    owners = None
    if count < len(values):
        owners = [place for place, value in enumerate(values) if value is not None]
        values = [values[place] for place in owners]
    if _PLAIN.issuperset(map(type, values)):
        return owners, False, values
    return owners, True, [bytes(value) if type(value) is Pickled else dumps(value) for value in values]


def owned(keys: list[Any], owners: Owners, values: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Give the values of a column, with their keys."""
    return zip(keys if owners is None else map(keys.__getitem__, owners), values, strict=True)


def live(value: Any) -> Any:
    """A value as its user knows it."""
    return loads(value) if type(value) is Pickled else value


def unpickled(values: dict[Any, Any], key: Any) -> Any:
    """The value of a key, None if there is none; it is unpickled when it is looked at for the first time."""
    value = values.get(key)
    if type(value) is Pickled:
        value = values[key] = live(value)
    return value


class Resting:
    """The keys of a bucket, or of its changes, that are not at hand, which lie as they are stored.

    Attributes:
        bucket: all of them.
        origin: where each lies in the bucket itself; `NO_PLACE` for one that is new since.
        left: those that are not at hand, and not replaced by changes.
        taken: those that are at hand: the place of the first of them there, and where all of them lie here.
    """

    def __init__(self, bucket: Bucket, replaced: bytes | None = None) -> None:
        count = len(bucket.keys)
        self.bucket = bucket
        self.origin: Numbers = np.arange(count) if replaced is None else np.frombuffer(replaced, _ROWS).astype(np.int64)
        self.left = np.ones(count, bool)
        self.taken: list[tuple[int, Numbers]] = []
        self._are_changes = replaced is not None

    def take(self, rows: Numbers, first: int) -> Bucket:
        """Have some keys at hand, the first of them at a place."""
        self.left[rows] = False
        self.taken.append((first, rows))
        return self.bucket.only(rows)

    def put_back(self, has_changed: _Flags) -> None:
        """Have those keys lie as they are stored that have not changed."""
        for first, rows in self.taken:
            self.left[rows] = ~has_changed[first : first + len(rows)]

    def living(self) -> Numbers:
        """Where keys are of which anything is kept."""
        return np.flatnonzero(self.left & self.bucket.keep_anything() if self._are_changes else self.left)

    def held(self) -> tuple[int, int, Times]:
        """How many keys there are of which anything is kept, how many timers they have, and what is due first."""
        count = len(self.living())
        if self.left.all():
            return count, self.bucket.count_timers(), self.bucket.earliest
        times = [self._times(kind) for kind in range(KINDS_OF_TIME)]
        earliest = (*(int(of_kind.min()) if len(of_kind) else None for of_kind in times), self.bucket.expiry)
        return count, sum(map(len, times)), earliest

    def next_ms(self, kind: int) -> int | None:
        """The earliest time of their timers of a kind, in milliseconds; None if there are none."""
        times = self._times(kind)
        return int(times.min()) if len(times) else None

    def due(self, kind: int, until_ms: int) -> Numbers:
        """Where keys are that have a timer of a kind at or before a time."""
        places, times = self._timers(kind)
        return np.unique(places[(times <= until_ms) & self.left[places]])

    def find(self, keys: list[Any], hashes: Hashes) -> Numbers:
        """Where those of some keys lie that rest here."""
        known = self.bucket.keys
        if len(keys) <= _FEW:
            same = [np.flatnonzero(self.left & (self.bucket.hashes == key_hash)).tolist() for key_hash in hashes]
            rows = [row for key, rows in zip(keys, same, strict=True) for row in rows if known[row] == key]
        else:
            places = dict(zip(known, range(len(known)), strict=True))
            rows = [row for row in map(places.get, keys) if row is not None and self.left[row]]
        return np.array(sorted(rows), np.int64)

    def _timers(self, kind: int) -> tuple[Numbers, Numbers]:
        """The places and the times of all timers of a kind."""
        plain, spaced = ((b"", b"") if part is None else part for part in self.bucket.timers[kind])
        return np.frombuffer(plain[0] + spaced[0], PLACES), np.frombuffer(plain[1] + spaced[1], NUMBERS)

    def _times(self, kind: int) -> Numbers:
        """The times of the timers of a kind."""
        places, times = self._timers(kind)
        return times[self.left[places]] if len(places) else times


NO_BUCKET = -1
"""The number of a key that is in no bucket that is asked for."""


def buckets_of(
    keys: list[Any],
    hashes: Hashes,
    numbers: Numbers,
    values: Mapping[str, Mapping[Any, Any]],
    spaces: Mapping[str, Mapping[Any, Any]],
    timers: Sequence[Timers],
    are_changes: _Flags,
) -> dict[int, Bucket]:
    """Buckets by their numbers, given the number of each key at hand; keys of a bucket stay in their order.

    Keys whose number is ``NO_BUCKET`` are in none; nor are those of which nothing is kept, but for buckets that
    ``are_changes``, by number.
    """
    order = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers == NO_BUCKET) :]
    places = np.full(len(keys), NO_PLACE)
    places[order] = np.arange(len(order))
    keys, hashes, numbers = list(map(keys.__getitem__, order.tolist())), hashes[order], numbers[order]
    names = [[_OfName(name, of_key, keys) for name, of_key in kind.items()] for kind in (values, spaces)]
    of_timers = [kind.in_order(places) for kind in timers]
    has_any = are_changes[numbers]
    parts: list[_OfName | TimersInOrder] = [*chain(*names), *chain(*of_timers)]
    for part in parts:
        has_any[part.places] = True
    if not has_any.all():
        keys, hashes, numbers = list(compress(keys, has_any)), hashes[has_any], numbers[has_any]
        for part in parts:
            part.keep(has_any)
    if not keys:
        return {}
    starts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    bounds = np.append(starts, len(keys))
    for part in parts:
        part.cut(bounds)
    found = {}
    spans = bounds.tolist()
    expiring = [name for name in names[0] if name.name.endswith(SUFFIX)]
    for i, number in enumerate(numbers[starts].tolist()):
        begin, end = spans[i], spans[i + 1]
        bucket = found[number] = Bucket(keys[begin:end], hashes[begin:end])
        bucket.values, bucket.spaces = (
            {of_name.name: of_name.between(i, begin, end) for of_name in kind if of_name.counts[i]} for kind in names
        )
        bucket.timers = [(plain.between(i), spaced.between(i)) for plain, spaced in of_timers]
        bucket.expiry = _expiry(expiring, begin, end)
    return found


class _OfName:
    """The values of some keys under a name, None for a key without one; ``places`` are the keys that have a value."""

    def __init__(self, name: str, of_key: Mapping[Any, Any], keys: list[Any]) -> None:
        self.name = name
        self.values = list(map(of_key.get, keys))
        self.places = np.flatnonzero(np.fromiter((value is not None for value in self.values), bool, len(keys)))
        self.counts: list[int] = []

    def keep(self, those: _Flags) -> None:
        """Leave out some keys, of which none has anything."""
        self.values = list(compress(self.values, those))
        self.places = (np.cumsum(those) - 1)[self.places]

    def cut(self, bounds: Numbers) -> None:
        """Cut it where a bucket ends, and count how many keys of each have anything."""
        self.counts = np.diff(np.searchsorted(self.places, bounds)).tolist()

    def between(self, i: int, begin: int, end: int) -> Column:
        """The column of one bucket."""
        return column(self.values[begin:end], self.counts[i])


def _expiry(names: list[_OfName], begin: int, end: int) -> int | None:
    """When the first part of a bucket expires, in milliseconds; None if nothing of it does."""
    if not names:
        return None
    expiring = (value for name in names for value in name.values[begin:end])
    return first_of(expiry_of(live(value)) for value in expiring if value is not None)
