"""Buckets of keys: what each keeps side by side, as bytes, and where a state backend has them.

``Bucket`` has what is stored of its keys, and ``buckets_of`` fills buckets from what is at hand. ``BucketStore`` keeps
them in a backend; their number grows one by one with what is stored: linear hashing.

With ``2**n`` buckets, the last ``n`` bits of a hash say which one. The next bucket takes from the first those hashes
that have one more bit set, the one after it from the second, and so on until there are twice as many: so a bucket more
means that the entries of one other bucket move, and the number of buckets is all that needs to be known to find one.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any, TypeAlias

import numpy as np

from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.expiring import SUFFIX, expiry_of
from eventide.runtime.state.pages import HASH, Page, is_page, read_page, without_empty
from eventide.runtime.state.runs import compressed, decompressed
from eventide.runtime.state.timers import (
    NO_PLACE,
    Numbers,
    StoredTimers,
    TimerColumns,
    TimersInOrder,
    count_of,
    earliest_of,
)

KINDS_OF_TIME = 2
"""There are timers of event time, and of processing time."""

EXPIRY = KINDS_OF_TIME
"""The kind of time at which the first part of a bucket expires; most have none."""

Owners: TypeAlias = list[int] | None
"""Which keys of a bucket have something, by their places; None stands for all."""

Column: TypeAlias = tuple[Owners, bool, list[Any]]
"""A state of some keys under one name: which keys, whether each value is a pickle, and the values or pickles."""

_HASHES = np.dtype("<u8")

_PLAIN = frozenset({str, int, float, bool, bytes})
"""Values of these types cannot be changed, so that those of several keys are pickled together."""

TIMES = ("event times", "clock times", "expiries")
"""The names of the kinds of time in a store of buckets."""

NO_TIMES: tuple[int | None, ...] = (None,) * (KINDS_OF_TIME + 1)
"""The due time of an empty bucket."""


class Pickled(bytes):
    """A value that was not looked at since it was read: it is written as it is."""

    __slots__ = ()


@dataclass(slots=True)
class Bucket:
    """Some keys by their places, and what is kept of them.

    Attributes:
        keys: the keys.
        hashes: their hashes.
        values: what has no namespace, by name.
        spaces: by name too, what each key has by namespace.
        timers: of each kind, those without a namespace and those with one.
        earliest: the earliest time of each kind, in milliseconds; None if there is none.

    >>> bucket = Bucket(["a"], [7], {"n": column(["x"], 1)}, earliest=(1_000, None, None))
    >>> Bucket.from_bytes(bucket.to_bytes()) == bucket
    True
    """

    keys: list[Any]
    hashes: list[int]
    values: dict[str, Column] = field(default_factory=dict)
    spaces: dict[str, Column] = field(default_factory=dict)
    timers: list[tuple[TimerColumns | None, TimerColumns | None]] = field(default_factory=list)
    earliest: tuple[int | None, ...] = NO_TIMES

    def count_timers(self) -> int:
        """How many timers its keys have."""
        return sum(map(count_of, self.timers))

    def to_bytes(self) -> bytes:
        """Return the bytes to be stored. Raises what pickling raises."""
        hashes = struct.pack(f"<{len(self.hashes)}Q", *self.hashes)  # of few numbers quicker than an array
        return dumps((self.keys, hashes, self.values, self.spaces, self.timers, self.earliest))

    @staticmethod
    def from_bytes(stored: bytes, load: Callable[[bytes], Any] = loads) -> Bucket:
        """The inverse of :meth:`to_bytes`, which reads pages too: their values are objects then."""
        if is_page(stored):
            return _of_page(without_empty(read_page(stored)))
        keys, hashes, *rest = load(stored)
        return Bucket(keys, np.frombuffer(hashes, _HASHES).tolist(), *rest)


def _of_page(page: Page) -> Bucket:
    types, rows, timers, _ = page
    found = Bucket(types.key.from_arrow(types.keys_of(rows)), rows.column(HASH).to_pylist())
    for (name, kind), values in zip(types.values, types.values_of(rows), strict=True):
        owners = (
            np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)).tolist() if values.null_count else None
        )
        held = values.drop_null()
        of_name: Column = (owners, kind.is_pickled, held.to_pylist() if kind.is_pickled else kind.from_arrow(held))
        earlier = found.values.get(name)
        if owners != []:
            found.values[name] = of_name if earlier is None else _together(earlier, of_name)
    found.timers = [(of_kind, None) for of_kind in timers]
    found.earliest = (*map(earliest_of, found.timers), None)  # what expires comes up in its time all the same
    return found


def _together(*columns: Column) -> Column:
    """The values of keys of which each is in one of several columns."""
    owners = [owner for owners, _, _ in columns for owner in owners or ()]
    parts = (values if are_pickled else map(dumps, values) for _, are_pickled, values in columns)
    return owners, True, list(chain.from_iterable(parts))


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


NO_BUCKET = -1
"""The number of a key that is in no bucket that is asked for."""


def buckets_of(
    keys: list[Any],
    hashes: Hashes,
    numbers: Numbers,
    values: Mapping[str, Mapping[Any, Any]],
    spaces: Mapping[str, Mapping[Any, Any]],
    timers: Sequence[StoredTimers],
) -> dict[int, Bucket]:
    """Buckets by their numbers, given the number of each key at hand; keys of a bucket stay in their order.

    Keys of which nothing is kept are in none, and those whose number is ``NO_BUCKET``.
    """
    order = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers == NO_BUCKET) :]
    places = np.full(len(keys), NO_PLACE)
    places[order] = np.arange(len(order))
    keys, hashes, numbers = list(map(keys.__getitem__, order.tolist())), hashes[order], numbers[order]
    names = [[_OfName(name, of_key, keys) for name, of_key in kind.items()] for kind in (values, spaces)]
    of_timers = [kind.in_order(places) for kind in timers]
    has_any = np.zeros(len(keys), bool)
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
    spans, of_hashes = bounds.tolist(), hashes.tolist()
    expiring = [name for name in names[0] if name.name.endswith(SUFFIX)]
    earliest = [_lower(plain.earliest, spaced.earliest) for plain, spaced in of_timers]
    for i, number in enumerate(numbers[starts].tolist()):
        begin, end = spans[i], spans[i + 1]
        bucket = found[number] = Bucket(keys[begin:end], of_hashes[begin:end])
        bucket.values, bucket.spaces = (
            {of_name.name: of_name.between(i, begin, end) for of_name in kind if of_name.counts[i]} for kind in names
        )
        bucket.timers = [(plain.between(i), spaced.between(i)) for plain, spaced in of_timers]
        bucket.earliest = (*[of_kind.get(i) for of_kind in earliest], _expiry(expiring, begin, end))
    return found


def _lower(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """The lower number of those that two mappings have under each key."""
    return {**one, **{i: min(number, one.get(i, number)) for i, number in other.items()}}


class _OfName:
    """The values of some keys under a name, None for a key without one; ``places`` are the keys that have a value."""

    def __init__(self, name: str, of_key: Mapping[Any, Any], keys: list[Any]) -> None:
        self.name = name
        self.values = list(map(of_key.get, keys))
        self.places = np.flatnonzero(np.fromiter((value is not None for value in self.values), bool, len(keys)))
        self.counts: list[int] = []

    def keep(self, those: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
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
    times = (expiry_of(live(value)) for value in expiring if value is not None)
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


_INDEX = "buckets"
BUCKET = "bucket"
"""The beginning of a bucket's name, before a slash."""

_PREFIX = f"{BUCKET}/"
_CHANGES = "/changes"
"""The end of the name of what is stored beside a bucket, and follows its content; most have none."""
_MANY = 256
"""Fewer buckets are read one by one in any case."""


_ADDRESS_BITS = 32
MOST_BUCKETS = 1 << _ADDRESS_BITS - 1
"""The upper half of a hash says which subtask a key is in, so it tells nothing any more within one."""

_BUCKETS_OF_A_PAGE = 512
_NUMBERS = np.dtype("<u2")
_TIMES = np.dtype("<i8")


class BucketStore:
    """So many buckets that they have a handy size on average: a call to the store costs what it carries, and itself.

    ``size`` is the number of bytes that a bucket should have before it is compressed; it may change. ``times`` names
    the kinds of time at which a bucket may be due. A small index has the number of buckets and the earliest time of
    each page of a :class:`Schedule`; buckets without content take no place. Their number does not go down by itself
    before nothing is left: an empty bucket costs nothing. ``numbers`` are for the user of the store, and kept with the
    index for as long as anything is stored; so is ``timers``, how many of them the buckets have, which is None where a
    version wrote the buckets that did not count them. The index also has how many buckets have changes beside them: as
    long as none has, these are not looked for. ``credit`` is how many bytes the user of the store may spend on more
    buckets where these would not be worth it at once; it is kept for as long as there are changes.
    """

    def __init__(self, backend: Backend, size: int, times: Sequence[str]) -> None:
        self._backend = backend
        self.size = size
        stored = backend.get(_INDEX)
        self._stored = stored
        content: dict[str, Any] = {"count": 1, "entries": 0, "bytes": 0} if stored is None else json.loads(stored)
        self.count: int = content["count"]
        self._entries: int = content["entries"]
        self._bytes: int = content["bytes"]
        self.schedules = [Schedule(backend, name, content.get(name, ())) for name in times]
        self._names = list(times)
        self.numbers: list[int] = content.get("numbers", [])
        self.timers: int | None = 0 if stored is None else content.get("timers")
        self._changes: int = content.get("changes", 0)
        self._has_changes: set[int] = set()
        self.credit: int = content.get("credit", 0)

    @property
    def entries(self) -> int:
        """How many entries all buckets have together."""
        return self._entries

    def get(self, bucket: int) -> bytes | None:
        """The content of a bucket; None if it is empty."""
        stored = self._backend.get(_name(bucket)) if self._entries else None
        changes = self._backend.get(_name_of_changes(bucket)) if stored is not None and self._changes else None
        return None if stored is None else self._content(bucket, stored, changes)

    def get_many(self, buckets: Collection[int]) -> dict[int, bytes | None]:
        """The contents of several buckets; where most of all are wanted, all are read at once."""
        if len(buckets) < _MANY or 2 * len(buckets) < self.count:
            return {bucket: self.get(bucket) for bucket in buckets}
        found: dict[int, bytes | None] = dict.fromkeys(buckets)
        stored = dict(self._backend.all_of(_PREFIX)) if self._entries else {}
        for name, content in stored.items():
            bucket = name.removeprefix(_PREFIX)
            if not bucket.endswith(_CHANGES) and int(bucket) in found:
                found[int(bucket)] = self._content(int(bucket), content, stored.get(name + _CHANGES))
        return found

    def grow(self, entries: int, size: int, most: int = MOST_BUCKETS) -> list[int]:
        """Take note of how many entries and bytes there are more, or less, and have as many buckets as they need.

        ``most`` is the largest number of buckets that it adds.

        Returns:
            The buckets of which entries move to new buckets, to be put again.
        """
        self._entries += entries
        self._bytes += size
        before = self.count
        self.count = max(before, min(self.fitting, before + most))
        return parents(before, self.count)

    @property
    def fitting(self) -> int:
        """How many buckets would have the size that they should have."""
        return max(1, min(self._bytes // self.size, self._entries, MOST_BUCKETS))

    def put(self, bucket: int, content: bytes | None) -> None:
        """Store the content of a bucket, None if it is empty; its schedules are to be told when it is due."""
        if bucket in self._has_changes:
            self._has_changes.discard(bucket)
            self._changes -= 1
            self._backend.delete(_name_of_changes(bucket))
        if content is None:
            self._backend.delete(_name(bucket))
        else:
            self._backend.put(_name(bucket), compressed(content))

    def put_changes(self, bucket: int, changes: bytes) -> None:
        """Store what follows the content of a bucket, in place of what has followed it."""
        if bucket not in self._has_changes:
            self._has_changes.add(bucket)
            self._changes += 1
        self._backend.put(_name_of_changes(bucket), compressed(changes))

    def _content(self, bucket: int, stored: bytes, changes: bytes | None) -> bytes:
        """The content of a bucket, followed by its changes."""
        if changes is None:
            return decompressed(stored)
        self._has_changes.add(bucket)
        return decompressed(stored) + decompressed(changes)

    def forget(self, contents: Mapping[int, bytes | None]) -> None:
        """Delete all buckets, which have these contents."""
        for bucket, content in contents.items():
            if content is not None:
                self.put(bucket, None)
            for schedule in self.schedules:
                schedule.set(bucket, None)
        self._entries = self._bytes = 0
        self.flush()

    def flush(self) -> None:
        """Store what was changed beside the buckets; call it once at the end of a micro-batch."""
        for schedule in self.schedules:
            schedule.flush()
        if not self._entries:
            self.count, self.timers = 1, 0
            if self._stored is not None:
                self._backend.delete(_INDEX)
                self._stored = None
            return
        content = {"count": self.count, "entries": self._entries, "bytes": self._bytes, "numbers": self.numbers}
        content |= {} if self.timers is None else {"timers": self.timers}
        content |= {"changes": self._changes, "credit": self.credit} if self._changes else {}
        earliest = {name: s.earliest for name, s in zip(self._names, self.schedules, strict=True) if s.earliest}
        stored = json.dumps(content | earliest).encode()
        if stored != self._stored:
            self._backend.put(_INDEX, stored)
            self._stored = stored


def address(key_hash: int, count: int) -> int:
    """The bucket of a hash among ``count`` buckets.

    >>> [address(key_hash, 6) for key_hash in range(8)]
    [0, 1, 2, 3, 4, 5, 2, 3]
    """
    low = 1 << count.bit_length() - 1
    found = key_hash & 2 * low - 1
    return found if found < count else found - low


def addresses(hashes: Hashes, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """:func:`address` for each of many hashes."""
    low = 1 << count.bit_length() - 1
    found = (hashes & np.uint64(2 * low - 1)).astype(np.int64)
    return np.where(found < count, found, found - low)


def parents(before: int, count: int) -> list[int]:
    """The buckets from which entries move when ``before`` buckets become ``count``.

    >>> parents(6, 8), parents(1, 8)
    ([2, 3], [0])
    """
    found = set()
    for bucket in range(before, count):
        parent = bucket
        while parent >= before:
            parent -= 1 << parent.bit_length() - 1
        found.add(parent)
    return sorted(found)


class Schedule:
    """The earliest time of each bucket, in pages of some hundred buckets, and the earliest time of each page.

    The earliest times of the pages are small, and kept by the user of the schedule; a page is read when its earliest
    time has come, or when the time of one of its buckets changes, and written if it did.
    """

    def __init__(self, backend: Backend, name: str, earliest: Iterable[tuple[int, int]]) -> None:
        self._backend = backend
        self._name = name
        self._earliest = dict(earliest)
        self._pages: dict[int, dict[int, int]] = {}
        self._changed: set[int] = set()
        self._coming: list[tuple[int, bool, int]] = []
        self._start()

    @property
    def earliest(self) -> list[tuple[int, int]]:
        """The earliest time of each page in which there is any, in milliseconds: what a schedule is opened with."""
        return sorted(self._earliest.items())

    def due(self, until_ms: int) -> list[int]:
        """The buckets whose time has come, each once."""
        coming = self._coming
        found = []
        while coming and coming[0][0] <= until_ms:
            _, is_bucket, number = heapq.heappop(coming)
            if is_bucket:
                found.append(number)
            else:
                self._unfold(number)
        return found

    def next(self) -> tuple[int, int] | None:
        """The earliest time and its bucket; None if there is none."""
        while self._coming and not self._coming[0][1]:
            self._unfold(heapq.heappop(self._coming)[2])
        return (self._coming[0][0], self._coming[0][2]) if self._coming else None

    def next_but(self, touched: Collection[int]) -> int | None:
        """The earliest time of the buckets that were not touched since the last :meth:`flush`; None if there is none.

        Where none was touched, no page is read for it.
        """
        if touched:
            while (found := self.next()) is not None and found[1] in touched:
                heapq.heappop(self._coming)
        return self._coming[0][0] if self._coming else None

    def set(self, bucket: int, time_ms: int | None) -> None:
        """Have a bucket come up at another time from the next :meth:`flush` on; None for never."""
        number, position = divmod(bucket, _BUCKETS_OF_A_PAGE)
        page = self._page(number)
        if page.get(position) == time_ms:
            return
        self._changed.add(number)
        if time_ms is None:
            page.pop(position)
        else:
            page[position] = time_ms

    def flush(self) -> None:
        """Store the pages that changed, and start again with what is stored."""
        for number in sorted(self._changed):
            page = self._pages[number]
            if page:
                self._backend.put(f"{self._name}/{number}", _stored(page))
                self._earliest[number] = min(page.values())
            else:
                self._backend.delete(f"{self._name}/{number}")
                self._earliest.pop(number, None)
        self._changed.clear()
        self._pages.clear()
        self._start()

    def _start(self) -> None:
        self._coming = [(time_ms, False, page) for page, time_ms in self._earliest.items()]
        heapq.heapify(self._coming)

    def _unfold(self, number: int) -> None:
        first = number * _BUCKETS_OF_A_PAGE
        for position, time_ms in self._page(number).items():
            heapq.heappush(self._coming, (time_ms, True, first + position))

    def _page(self, number: int) -> dict[int, int]:
        page = self._pages.get(number)
        if page is None:
            stored = self._backend.get(f"{self._name}/{number}") if number in self._earliest else None
            page = self._pages[number] = {} if stored is None else _read(stored)
        return page


def _name(bucket: int) -> str:
    return f"{_PREFIX}{bucket}"


def _name_of_changes(bucket: int) -> str:
    return f"{_PREFIX}{bucket}{_CHANGES}"


def _stored(page: dict[int, int]) -> bytes:
    """The times, then the buckets that they belong to."""
    return np.array([*page.values()], _TIMES).tobytes() + np.array([*page], _NUMBERS).tobytes()


def _read(stored: bytes) -> dict[int, int]:
    count = len(stored) // (_TIMES.itemsize + _NUMBERS.itemsize)
    times = np.frombuffer(stored, _TIMES, count)
    return dict(zip(np.frombuffer(stored, _NUMBERS, count, times.nbytes).tolist(), times.tolist(), strict=True))
