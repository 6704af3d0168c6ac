"""A bucket of entries as it is stored: any of them is found, read and replaced without looking at the others."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.linear_hashing import by_bucket

Array: TypeAlias = np.ndarray[Any, Any]

KINDS_OF_TIME = 2
"""An entry may have timers of event time, and of processing time."""

_NEVER = MAX_MS
_HEAD = struct.Struct("<II")
_HASHES, _TIMES, _ENDS = np.dtype("<u8"), np.dtype("<i8"), np.dtype("<u4")
_NOTHING, _ZERO = np.zeros(0, _ENDS), np.zeros(1, _ENDS)


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """The bytes of an entry, None where it is gone, and its earliest time of each kind, in milliseconds."""

    content: bytes | None
    times: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Bucket:
    """Entries in the order of their hashes, each with its bytes, and with its earliest timer of each kind.

    Stored are, one behind the other: how many entries there are and which kinds of time; the hashes; the times of each
    kind of which there are any; where the bytes of each entry end; the bytes.
    """

    hashes: Hashes
    times: tuple[Array | None, ...]
    ends: Array
    content: bytes | memoryview

    @staticmethod
    def empty() -> Bucket:
        """A bucket without entries."""
        return Bucket(np.zeros(0, _HASHES), (None,) * KINDS_OF_TIME, _NOTHING, b"")

    @staticmethod
    def read(stored: bytes) -> Bucket:
        """A bucket from what is stored."""
        count, kinds = _HEAD.unpack_from(stored)
        at = _HEAD.size
        hashes = np.frombuffer(stored, _HASHES, count, at)
        at += hashes.nbytes
        times: list[Array | None] = []
        for kind in range(KINDS_OF_TIME):
            times.append(np.frombuffer(stored, _TIMES, count, at) if kinds & 1 << kind else None)
            at += count * _TIMES.itemsize if kinds & 1 << kind else 0
        ends = np.frombuffer(stored, _ENDS, count, at)
        return Bucket(hashes, tuple(times), ends, memoryview(stored)[at + ends.nbytes :])

    def __len__(self) -> int:
        return len(self.hashes)

    def stored(self) -> bytes | None:
        """What is to be stored; None if there is nothing."""
        if not len(self.hashes):
            return None
        kinds = sum(1 << kind for kind, times in enumerate(self.times) if times is not None)
        columns = [self.hashes, *(times for times in self.times if times is not None), self.ends]
        return b"".join([_HEAD.pack(len(self.hashes), kinds), *(c.tobytes() for c in columns), self.content])

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 28 * len(self.hashes) + len(self.content)

    def contents(self, hashes: Hashes) -> list[bytes | memoryview | None]:
        """The bytes of the entries with some hashes, None where there is none."""
        at, found = self._places(hashes)
        bounds = self._bounds()
        pairs = zip(bounds[at].tolist(), bounds[at + found].tolist(), found.tolist(), strict=True)
        return [self.content[start:end] if there else None for start, end, there in pairs]

    def earliest(self) -> tuple[int | None, ...]:
        """The earliest time of each kind; None if there is none."""
        return tuple(None if times is None else int(times.min()) for times in self.times)

    def due(self, kind: int, until_ms: int) -> Hashes:
        """The hashes of the entries whose time has come."""
        times = self.times[kind]
        return self.hashes[:0] if times is None else self.hashes[times <= min(until_ms, _NEVER - 1)]

    def later(self, kind: int, after_ms: int) -> int | None:
        """The earliest time behind a time; None if there is none."""
        times = self.times[kind]
        left = () if times is None else times[(times > after_ms) & (times != _NEVER)]
        return int(left.min()) if len(left) else None  # type: ignore[union-attr]

    def earliest_of_others(self, kind: int, known: Mapping[int, Any]) -> int | None:
        """The earliest time of the entries whose hashes are not known; None if there is none."""
        times = self.times[kind]
        if times is None:
            return None
        left = [t for h, t in zip(self.hashes.tolist(), times.tolist(), strict=True) if h not in known and t != _NEVER]
        return min(left, default=None)

    def replaced(self, entries: Mapping[int, StoredEntry]) -> Bucket:
        """The bucket with other entries in the place of some, or new ones, by their hashes."""
        hashes = np.array(sorted(entries), _HASHES)
        new = [entries[key_hash] for key_hash in hashes.tolist()]
        at, found = self._places(hashes)
        content = b"".join(self._spliced(at.tolist(), found.tolist(), new))
        stays = np.array([entry.content is not None for entry in new], bool)
        sizes = np.array([0 if entry.content is None else len(entry.content) for entry in new], np.int64)
        times = [[_index_time(entry.times[kind]) for entry in new] for kind in range(KINDS_OF_TIME)]
        old_sizes = np.diff(self.ends.astype(np.int64), prepend=0)
        if found.all() and stays.all():
            old_sizes[at] = sizes
            columns = tuple(_put(old, at, column, len(self)) for old, column in zip(self.times, times, strict=True))
            return Bucket(self.hashes, columns, np.cumsum(old_sizes).astype(_ENDS), content)
        kept = np.ones(len(self), bool)
        kept[at[found]] = False
        all_hashes = np.concatenate([self.hashes[kept], hashes[stays]])
        order = np.argsort(all_hashes)
        all_sizes = np.concatenate([old_sizes[kept], sizes[stays]])[order]
        columns = tuple(
            _joined(None if old is None else old[kept], int(kept.sum()), np.array(column, _TIMES)[stays], order)
            for old, column in zip(self.times, times, strict=True)
        )
        return Bucket(all_hashes[order], columns, np.cumsum(all_sizes).astype(_ENDS), content)

    def split(self, count: int) -> Iterator[tuple[int, Bucket]]:
        """The parts of it that belong into each bucket, now that there are so many."""
        bounds = self._bounds()
        sizes = np.diff(bounds)
        for number, at in by_bucket(self.hashes, count):
            pairs = zip(bounds[at].tolist(), bounds[at + 1].tolist(), strict=True)
            content = b"".join([self.content[start:end] for start, end in pairs])
            times = tuple(None if column is None else _or_none(column[at]) for column in self.times)
            yield number, Bucket(self.hashes[at], times, np.cumsum(sizes[at]).astype(_ENDS), content)

    def _bounds(self) -> Array:
        """Where the bytes of each entry begin, and behind it where the last ones end."""
        return np.concatenate((_ZERO, self.ends))

    def _places(self, hashes: Hashes) -> tuple[Array, Array]:
        """Where the entries with some hashes are or would have to be, and whether they are there."""
        at = np.searchsorted(self.hashes, hashes)
        found = np.zeros(len(at), bool)
        inside = at < len(self.hashes)
        found[inside] = self.hashes[at[inside]] == hashes[inside]
        return at, found

    def _spliced(self, at: list[int], found: list[bool], new: list[StoredEntry]) -> Iterator[bytes | memoryview]:
        """The bytes of all entries, with new ones in their place: what is between them is copied as it is."""
        ends, copied = self._bounds().tolist(), 0
        for place, there, entry in zip(at, found, new, strict=True):
            yield self.content[copied : ends[place]]
            if entry.content is not None:
                yield entry.content
            copied = ends[place + there]
        yield self.content[copied:]


def _index_time(time_ms: int | None) -> int:
    """A time as it stands beside an entry; a timer at the very end of time is looked at a millisecond too early."""
    return _NEVER if time_ms is None else max(MIN_MS, min(time_ms, _NEVER - 1))


def _put(old: Array | None, at: Array, new: list[int], count: int) -> Array | None:
    if old is None and all(time_ms == _NEVER for time_ms in new):
        return None
    column = np.full(count, _NEVER, _TIMES) if old is None else old.copy()
    column[at] = new
    return _or_none(column)


def _joined(old: Array | None, count: int, new: Array, order: Array) -> Array | None:
    if old is None:
        old = np.full(count, _NEVER, _TIMES)
    return _or_none(np.concatenate([old, new])[order])


def _or_none(column: Array) -> Array | None:
    return column if len(column) and column.min() != _NEVER else None
