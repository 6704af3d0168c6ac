"""Buckets of keys: what each keeps side by side, as bytes, and how they are filled from what is at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any, TypeAlias

import numpy as np

from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.expiring import SUFFIX, expiry_of
from eventide.runtime.state.timers import NO_PLACE, Numbers, TimerColumns, Timers, TimersInOrder, count_of, earliest_of

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
        hashes = np.array(self.hashes, _HASHES).tobytes()
        return dumps((self.keys, hashes, self.values, self.spaces, self.timers, self.earliest))

    @staticmethod
    def from_bytes(stored: bytes, load: Callable[[bytes], Any] = loads) -> Bucket:
        """The inverse of :meth:`to_bytes`."""
        keys, hashes, *rest = load(stored)
        return Bucket(keys, np.frombuffer(hashes, _HASHES).tolist(), *rest)


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
    expiring = (value for name in names if name.name.endswith(SUFFIX) for value in name.values[begin:end])
    times = (expiry_of(live(value)) for value in expiring if value is not None)
    return min((time_ms for time_ms in times if time_ms is not None), default=None)
