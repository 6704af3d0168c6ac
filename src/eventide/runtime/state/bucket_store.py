"""Where versions up to 0.1.0 have stored keys, and tables of rows by key: in buckets, by the hash of a key."""

from __future__ import annotations

import json
from base64 import b85decode
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from eventide.errors import StateError
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.runs import decompressed

_INDEX = "buckets"
BUCKET = "bucket"
"""The beginning of a bucket's name, before a slash."""

_PREFIX = f"{BUCKET}/"
_CHANGES = "changes"
"""The end of the name of the first changes beside a bucket; the end of the next ones is this and a number."""
_MANY = 256
"""The number of buckets from which on all may be read at once; fewer are read one by one."""


class NoColumns(StateError):
    """Columns cannot hold what is stored: it has to be used as objects."""


class BucketStore:
    """The buckets that an earlier version has stored, to be read once.

    Args:
        backend: where they lie.

    Attributes:
        count: the number of buckets.
        entries: how many entries all of them have together; 0 where there are none.
        numbers: those of the last timers of each kind.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        stored = backend.get(_INDEX)
        self._index: dict[str, Any] = {"count": 1, "entries": 0} if stored is None else json.loads(stored)
        self.count: int = self._index["count"]
        self.entries: int = self._index["entries"]
        self.numbers: list[int] = self._index.get("numbers", [])
        self._with_changes = _with_changes(self._index.get("changes", []), self.count)

    def get(self, bucket: int) -> bytes | None:
        """The content of a bucket; None if it is empty."""
        return self._content(bucket, self._backend.get) if self.entries else None

    def get_many(self, buckets: Collection[int]) -> dict[int, bytes | None]:
        """The contents of several buckets; where most of all are wanted, all are read at once."""
        if len(buckets) < _MANY or 2 * len(buckets) < self.count:
            return {bucket: self.get(bucket) for bucket in buckets}
        stored = dict(self._backend.all_of(_PREFIX)) if self.entries else {}
        return {bucket: self._content(bucket, stored.get) for bucket in buckets}

    def due(self, kind: str) -> int | None:
        """The earliest time of a kind at which anything is due, in milliseconds; None for never."""
        return min((time_ms for _, time_ms in self._index.get(kind, ())), default=None)

    def delete_all(self) -> None:
        """Delete all buckets, and what was stored to find them."""
        for bucket in range(self.count):
            for part in range(1 + len(self._with_changes)):
                self._backend.delete(_name(bucket, part))
        for name, pages in self._index.items():
            if isinstance(pages, list):
                for page in pages:
                    if isinstance(page, list):
                        self._backend.delete(f"{name}/{page[0]}")
        self._backend.delete(_INDEX)
        self.count, self.entries = 1, 0

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


def _with_changes(stored: list[str] | str | int, count: int) -> list[set[int]]:
    """The buckets with changes, those with two, and so on.

    Of earlier versions, one wrote how many of all have changes, but not which, and the next one those with changes.
    """
    if isinstance(stored, int):
        return [{*range(count)}] if stored else []
    return [_numbers_of(bits) for bits in ([stored] if isinstance(stored, str) else stored)]


def _numbers_of(bits: str) -> set[int]:
    """The numbers that have a bit in a text."""
    return {*np.flatnonzero(np.unpackbits(np.frombuffer(decompressed(b85decode(bits)), np.uint8))).tolist()}


def _name(bucket: int, part: int = 0) -> str:
    """The name of a part of a bucket: of itself, or of its changes, which are counted from 1."""
    name = f"{_PREFIX}{bucket}"
    if part:
        name = f"{name}/{_CHANGES}" if part == 1 else f"{name}/{_CHANGES}/{part - 1}"
    return name
