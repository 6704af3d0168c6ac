"""Which keys of a subtask are at hand: those of the buckets that were read, one bucket for each key group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from eventide.runtime.elements.keys import key_group


class Buckets:
    """Has each bucket read when one of its keys is touched for the first time, and says which bucket a key is in.

    ``read`` is called with the number of a bucket, once until :meth:`clear`. Everything that is stored by key shares
    ``group_of``, the key groups of the keys that are at hand: who is about to touch a key that is not in it opens it.
    """

    def __init__(self, max_parallelism: int, read: Callable[[int], None]) -> None:
        self._max_parallelism = max_parallelism
        self._read = read
        self.loaded: set[int] = set()
        self.group_of: dict[Any, int] = {}

    def open(self, key: Any) -> None:
        """Have the bucket of a key."""
        group = key_group(key, self._max_parallelism)
        self.load(group)
        self.group_of[key] = group

    def open_all(self, keys: Iterable[Any]) -> None:
        """Have the buckets of many keys."""
        known = self.group_of
        for key in keys:
            if key not in known:
                self.open(key)

    def load(self, group: int) -> None:
        """Have a bucket."""
        if group not in self.loaded:
            self.loaded.add(group)
            self._read(group)

    def load_all(self) -> None:
        """Have every bucket: for harnesses."""
        for group in range(self._max_parallelism):
            self.load(group)

    def found(self, keys: Iterable[Any], group: int) -> None:
        """Take note of keys that were in a bucket."""
        self.group_of.update(dict.fromkeys(keys, group))

    def split(self, table: dict[Any, Any]) -> dict[int, dict[Any, Any]]:
        """A table by key, cut into the parts of its buckets."""
        group_of = self.group_of
        parts: defaultdict[int, dict[Any, Any]] = defaultdict(dict)
        for key, value in table.items():
            parts[group_of[key]][key] = value
        return parts

    def clear(self) -> None:
        """Have no bucket any more."""
        self.loaded.clear()
        self.group_of.clear()
