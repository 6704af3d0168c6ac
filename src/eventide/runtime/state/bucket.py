"""A bucket of entries as it is stored: each entry as bytes of its own, so that only what is touched is looked into."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from eventide.common._pickles import dumps, loads
from eventide.runtime.state.linear_hashing import address

KINDS_OF_TIME = 2
"""An entry may have timers of event time, and of processing time."""

EXPIRY = KINDS_OF_TIME
"""The kind of time at which the first part of an entry expires; most entries have none."""

_WITHOUT_EXPIRY = 1 + KINDS_OF_TIME

StoredEntry: TypeAlias = tuple[bytes, int | None, int | None] | tuple[bytes, int | None, int | None, int]
"""The bytes of an entry, its earliest timer of each kind, and its expiry if it has any, in milliseconds."""

_BESIDE_CONTENT = 28
"""About how many bytes the hash and the times of an entry take."""


class Bucket:
    """A few entries by the hash of their key; stored, they are one pickle of plain values.

    >>> bucket = Bucket.read(None)
    >>> bucket.replace({7: (b"seven", 1_000, None), 8: (b"eight", None, None)})
    66
    >>> Bucket.read(bucket.stored()).earliest()
    (1000, None, None)
    """

    __slots__ = ("entries",)

    def __init__(self, entries: dict[int, StoredEntry]) -> None:
        self.entries = entries

    @staticmethod
    def read(stored: bytes | None) -> Bucket:
        """A bucket from what is stored; None if nothing is."""
        return Bucket({} if stored is None else loads(stored))

    def stored(self) -> bytes | None:
        """What is to be stored; None if there is nothing."""
        return dumps(self.entries) if self.entries else None

    def __len__(self) -> int:
        return len(self.entries)

    def content(self, key_hash: int) -> bytes | None:
        """The bytes of the entry with a hash; None if there is none."""
        entry = self.entries.get(key_hash)
        return None if entry is None else entry[0]

    def earliest(self) -> tuple[int | None, ...]:
        """The earliest time of each kind; None if there is none."""
        return tuple(min(self._times(kind), default=None) for kind in range(EXPIRY + 1))

    def earliest_of_others(self, kind: int, known: Collection[int]) -> int | None:
        """The earliest time of the entries whose hashes are not known; None if there is none."""
        return Bucket({h: entry for h, entry in self.entries.items() if h not in known}).earliest()[kind]

    def due(self, kind: int, until_ms: int) -> list[int]:
        """The hashes of the entries whose time has come."""
        times = self._times_of_hashes(kind)
        return [key_hash for key_hash, time_ms in times if time_ms <= until_ms]

    def later(self, kind: int, after_ms: int) -> int | None:
        """The earliest time behind a time; None if there is none."""
        return min((time_ms for time_ms in self._times(kind) if time_ms > after_ms), default=None)

    def replace(self, entries: Mapping[int, StoredEntry | None]) -> int:
        """Put other entries in the place of some, or new ones, by their hashes; None takes one away.

        Returns:
            About how many bytes more it takes.
        """
        more = 0
        for key_hash, entry in entries.items():
            more += _size(entry) - _size(self.entries.pop(key_hash, None))
            if entry is not None:
                self.entries[key_hash] = entry
        return more

    def split(self, count: int) -> dict[int, Bucket]:
        """The parts of it that belong into each bucket, now that there are so many."""
        parts: dict[int, Bucket] = {}
        for key_hash, entry in self.entries.items():
            number = address(key_hash, count)
            part = parts.get(number)
            if part is None:
                part = parts[number] = Bucket({})
            part.entries[key_hash] = entry
        return parts

    def _times(self, kind: int) -> list[int]:
        at = 1 + kind
        entries = self.entries.values()
        if kind == EXPIRY:
            return [entry[at] for entry in entries if len(entry) > _WITHOUT_EXPIRY]  # type: ignore[misc]
        return [entry[at] for entry in entries if entry[at] is not None]  # type: ignore[misc]

    def _times_of_hashes(self, kind: int) -> list[tuple[int, int]]:
        at = 1 + kind
        return [(h, e[at]) for h, e in self.entries.items() if len(e) > at and e[at] is not None]  # type: ignore[misc]


def _size(entry: StoredEntry | None) -> int:
    return 0 if entry is None else len(entry[0]) + _BESIDE_CONTENT
