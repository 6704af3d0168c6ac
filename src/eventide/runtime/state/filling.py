"""From what is at hand to buckets: each name once for all keys, then cut where a bucket ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np

from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.bucket import Bucket, Column, column, live
from eventide.runtime.state.expiring import SUFFIX, expiry_of
from eventide.runtime.state.timer_columns import NO_PLACE, Numbers, TimersInOrder, earliest_of
from eventide.runtime.state.timers import Timers

NO_BUCKET = -1
"""The number of a key that is in no bucket that is asked for."""


def buckets_of(
    keys: list[Any],
    hashes: Hashes,
    numbers: Numbers,
    values: Mapping[str, Mapping[Any, Any]],
    spaces: Mapping[str, Mapping[Any, Any]],
    timers: Sequence[Timers],
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
    spans = bounds.tolist()
    for i, number in enumerate(numbers[starts].tolist()):
        begin, end = spans[i], spans[i + 1]
        bucket = found[number] = Bucket(keys[begin:end], hashes[begin:end].tolist())
        bucket.values, bucket.spaces = (
            {of_name.name: of_name.between(i, begin, end) for of_name in kind if of_name.counts[i]} for kind in names
        )
        bucket.timers = [(plain.between(i, begin), spaced.between(i, begin)) for plain, spaced in of_timers]
        bucket.earliest = (*map(earliest_of, bucket.timers), _expiry(names[0], begin, end))
    return found


class _OfName:
    """Values of some keys under a name, None where a key has none; ``places`` are those of keys that have one."""

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
    expiring = (value for name in names if name.name.endswith(SUFFIX) for value in name.values[begin:end])
    times = (expiry_of(live(value)) for value in expiring if value is not None)
    return min((time_ms for time_ms in times if time_ms is not None), default=None)
