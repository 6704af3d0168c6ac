"""Where a state backend has buckets of keys, how many there are, and when something of each is due.

The number of buckets grows one by one with what is stored: linear hashing. With ``2**n`` buckets, the last ``n`` bits
of a hash say which one. The next bucket takes from the first those hashes that have one more bit set, the one after it
from the second, and so on until there are twice as many: so a bucket more means that the entries of one other bucket
move, and the number of buckets is all that needs to be known to find one.
"""

from __future__ import annotations

import heapq
import json
from base64 import b85decode, b85encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eventide.errors import StateError
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.bucket import EXPIRY, NO_TIMES, Times
from eventide.runtime.state.runs import compressed, decompressed

_INDEX = "buckets"
BUCKET = "bucket"
"""The beginning of a bucket's name, before a slash."""

_PREFIX = f"{BUCKET}/"
_CHANGES = "changes"
"""The end of the name of the first changes beside a bucket; the end of the next ones is this and a number."""
_MANY = 256
"""The number of buckets from which on all may be read at once; fewer are read one by one."""

_SPLIT = 12
"""For each ``_SPLIT`` buckets that are written, one may be split, for no more bytes than are written."""

_ADDRESS_BITS = 32
MOST_BUCKETS = 1 << _ADDRESS_BITS - 1
"""The upper half of a hash says which subtask a key is in, so it tells nothing any more within one."""

_BUCKETS_OF_A_PAGE = 512
_NUMBERS = np.dtype("<u2")
_TIMES = np.dtype("<i8")


class Stored(NamedTuple):
    """A bucket as it is stored, with its changes.

    Attributes:
        sizes: the bytes of each part: of the bucket itself, then of its changes, the oldest first.
        rows: the keys of each part; nothing where no changes can lie beside the bucket.
        entries: how many keys have anything.
        timers: how many timers these have.
        earliest: the earliest time of each kind, in milliseconds.
    """

    sizes: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    entries: int = 0
    timers: int = 0
    earliest: Times = NO_TIMES

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(self.sizes)


NOTHING = Stored()


class Made(NamedTuple):
    """A bucket to be stored, with what :class:`Stored` says of it; no content for an empty one.

    Attributes:
        content: the bytes.
        kept: how many parts of what is stored stay, beside which the content lies; 0 where it takes their place.
    """

    content: bytes | None = None
    entries: int = 0
    timers: int = 0
    earliest: Times = NO_TIMES
    kept: int = 0


class NoColumns(StateError):
    """Columns cannot hold what is stored: it has to be used as objects."""


class BucketStore:
    """Buckets of a handy size, as a call of the backend costs time for itself and for each byte.

    ``size`` is the number of bytes, before compression, that a bucket should have where many of its keys are touched.
    Elsewhere it should have ``small`` ones: where a micro-batch touches one key of each that it reads, some are split;
    where it touches many, and has read most buckets, they are put together. ``times`` names the kinds of time at which
    a bucket may be due.

    A small index has the number of buckets, bits for those that have one, two or more changes beside them, and the
    earliest time of each page of a :class:`Schedule`; buckets without content take no place. ``numbers`` are for the
    user of the store, and kept with the index for as long as anything is stored; so is ``timers``, how many of them the
    buckets have, and how many bytes may still be spent on splitting.
    """

    def __init__(self, backend: Backend, size: int, times: Sequence[str], small: int | None = None) -> None:
        self._backend = backend
        self._largest = self._size = size
        self._smallest = small or size
        stored = backend.get(_INDEX)
        self._stored = stored
        content: dict[str, Any] = {"count": 1, "entries": 0, "bytes": 0} if stored is None else json.loads(stored)
        self.count: int = content["count"]
        self._entries: int = content["entries"]
        self._bytes: int = content["bytes"]
        self.schedules = [Schedule(backend, name, content.get(name, ())) for name in times]
        self.numbers: list[int] = content.get("numbers", [])
        self.timers: int = content.get("timers", 0)
        self._with_changes = _with_changes(content.get("changes", []), self.count)
        self._credit: int = content.get("credit", 0)

    @property
    def entries(self) -> int:
        """How many entries all buckets have together."""
        return self._entries

    def get(self, bucket: int) -> bytes | None:
        """The content of a bucket; None if it is empty."""
        return self._content(bucket, self._backend.get) if self._entries else None

    def get_many(self, buckets: Collection[int]) -> dict[int, bytes | None]:
        """The contents of several buckets; where most of all are wanted, all are read at once."""
        if len(buckets) < _MANY or 2 * len(buckets) < self.count:
            return {bucket: self.get(bucket) for bucket in buckets}
        stored = dict(self._backend.all_of(_PREFIX)) if self._entries else {}
        return {bucket: self._content(bucket, stored.get) for bucket in buckets}

    def follow(self, touched: int, buckets: int) -> None:
        """Have the size of buckets follow how densely they are touched: how many keys of how many buckets."""
        self._size = self._largest if touched >= 2 * buckets else self._smallest

    def write(
        self,
        changed: Iterable[int],
        known: dict[int, Stored],
        have: Callable[[Iterable[int]], None],
        make: Callable[[Sequence[int], bool], Mapping[int, Made]],
    ) -> None:
        """Write buckets that have changed, and those whose keys move because there are more buckets now, or fewer.

        Args:
            changed: their numbers.
            known: the buckets that were read.
            have: reads more of them.
            make: gives some buckets, in their order; as a whole, if their keys may come from others.
        """
        made = dict[int, Made]()
        sizes = {number: (one.size, one.entries) for number, one in known.items()}
        buckets, is_whole, most = sorted(changed), len(known) == self.count > 2 * self.fitting, MOST_BUCKETS
        if is_whole:  # all were read, and are too small
            buckets, self.count = sorted(known), self.fitting
        while True:
            new = make(buckets, is_whole)
            made |= new
            size = entries = 0
            for number, one in new.items():
                length = len(one.content or b"") + sum(known.get(number, NOTHING).sizes[: one.kept])
                before = sizes.get(number, (0, 0))
                size, entries = size + length - before[0], entries + one.entries - before[1]
                sizes[number] = length, one.entries
            if self._size < self._largest and most == MOST_BUCKETS:
                average = sum(length for length, _ in sizes.values()) // len(sizes) + 1
                written = sum(len(one.content or b"") for one in new.values())
                self._credit += min(written, len(new) * average // _SPLIT)
                most = self.count + (size // self._size if entries > 0 else 0) + self._credit // average
                self._credit %= min(average, self._largest)
            count = self.count
            moving = self.grow(entries, size, most - count)
            try:
                have(moving)
            except NoColumns:
                self.count, moving = count, []  # what cannot move yet stays together with what could
            if not moving:
                break
            sizes = {number: (one.size, one.entries) for number, one in known.items()} | sizes
            buckets, is_whole = [*moving, *range(count, self.count)], True
        for number in sorted(made):
            self._store(number, made[number], known)

    def _store(self, number: int, made: Made, known: dict[int, Stored]) -> None:
        before = known.get(number, NOTHING)
        if made.kept:
            self._forget_changes(number, made.kept + 1)
            if made.kept > len(self._with_changes):
                self._with_changes.append(set())
            self._with_changes[made.kept - 1].add(number)
            self._backend.put(_name(number, made.kept), compressed(made.content or b""))
        elif made.content is not None or before.size:
            self.put(number, made.content)
        self.timers += made.timers - before.timers
        for kind, (old_ms, time_ms) in enumerate(zip(before.earliest, made.earliest, strict=True)):
            is_earlier = old_ms is not None and time_ms is not None and old_ms < time_ms
            if old_ms != time_ms and not (kind == EXPIRY and is_earlier):  # to look there too early saves telling
                self.schedules[kind].set(number, time_ms)
        known[number] = before._replace(earliest=made.earliest)

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
        return max(1, min(self._bytes // self._size, self._entries, MOST_BUCKETS))

    def put(self, bucket: int, content: bytes | None) -> None:
        """Store the content of a bucket, None if it is empty; its schedules are to be told when it is due."""
        self._forget_changes(bucket, 1)
        if content is None:
            self._backend.delete(_name(bucket))
        else:
            self._backend.put(_name(bucket), compressed(content))

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
        content: dict[str, Any] = {"count": self.count, "entries": self._entries, "bytes": self._bytes}
        content |= {"numbers": self.numbers, "timers": self.timers}
        with_changes = [_bits(buckets) for buckets in self._with_changes if buckets]
        content |= {"changes": with_changes} if with_changes else {}
        content |= {"credit": self._credit} if self._credit else {}
        times = {schedule.name: schedule.earliest for schedule in self.schedules if schedule.earliest}
        stored = json.dumps(content | times).encode()
        if stored != self._stored:
            self._backend.put(_INDEX, stored)
            self._stored = stored

    def _content(self, bucket: int, get: Callable[[str], bytes | None]) -> bytes | None:
        """The content of a bucket, followed by its changes, the oldest first; None if it is empty."""
        stored = get(_name(bucket))
        if stored is None:
            return None
        parts = [decompressed(stored)]
        for buckets in self._with_changes:
            if bucket not in buckets:
                break
            if (changes := get(_name(bucket, len(parts)))) is None:  # an earlier version did not tell which have some
                break
            parts.append(decompressed(changes))
        return b"".join(parts)

    def _forget_changes(self, bucket: int, first: int) -> None:
        """Delete the changes of a bucket from a part on."""
        for part in range(first, len(self._with_changes) + 1):
            if bucket not in self._with_changes[part - 1]:
                break
            self._with_changes[part - 1].discard(bucket)
            self._backend.delete(_name(bucket, part))


def _bits(numbers: Collection[int]) -> str:
    """Some numbers as text, in which each has a bit."""
    bits = np.zeros(max(numbers) + 1, np.uint8)
    bits[[*numbers]] = 1
    return b85encode(compressed(np.packbits(bits).tobytes())).decode()


def _with_changes(stored: list[str] | str | int, count: int) -> list[set[int]]:
    """The buckets with changes, those with two, and so on.

    Of earlier versions, one wrote how many of all have changes, but not which, and the next one those with changes.
    """
    if isinstance(stored, int):
        return [{*range(count)}] if stored else []
    return [_numbers_of(bits) for bits in ([stored] if isinstance(stored, str) else stored)]


def _numbers_of(bits: str) -> set[int]:
    """The inverse of :func:`_bits`."""
    return {*np.flatnonzero(np.unpackbits(np.frombuffer(decompressed(b85decode(bits)), np.uint8))).tolist()}


def addresses(hashes: Hashes, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The bucket of each of some hashes among ``count`` buckets.

    >>> addresses(np.arange(8, dtype=np.uint64), 6).tolist()
    [0, 1, 2, 3, 4, 5, 2, 3]
    """
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
        self.name = name
        self._earliest = dict(earliest)
        self._pages: dict[int, dict[int, int]] = {}
        self._changed: set[int] = set()
        self._coming: list[tuple[int, bool, int]] = []
        self._start()

    @property
    def earliest(self) -> list[tuple[int, int]]:
        """The earliest time of each page in which there is any, in milliseconds, to open a schedule with."""
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
                self._backend.put(f"{self.name}/{number}", _stored(page))
                self._earliest[number] = min(page.values())
            else:
                self._backend.delete(f"{self.name}/{number}")
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
            stored = self._backend.get(f"{self.name}/{number}") if number in self._earliest else None
            page = self._pages[number] = {} if stored is None else _read(stored)
        return page


def _name(bucket: int, part: int = 0) -> str:
    """The name of a part of a bucket: of itself, or of its changes, which are counted from 1."""
    name = f"{_PREFIX}{bucket}"
    if part:
        name = f"{name}/{_CHANGES}" if part == 1 else f"{name}/{_CHANGES}/{part - 1}"
    return name


def _stored(page: dict[int, int]) -> bytes:
    """The times, then the buckets that they belong to."""
    return np.array([*page.values()], _TIMES).tobytes() + np.array([*page], _NUMBERS).tobytes()


def _read(stored: bytes) -> dict[int, int]:
    count = len(stored) // (_TIMES.itemsize + _NUMBERS.itemsize)
    times = np.frombuffer(stored, _TIMES, count)
    return dict(zip(np.frombuffer(stored, _NUMBERS, count, times.nbytes).tolist(), times.tolist(), strict=True))
