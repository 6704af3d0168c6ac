"""A bucket: some keys, and what is kept of them side by side; many are read and written with few calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from eventide.common._pickles import dumps, loads
from eventide.runtime.state.timer_columns import TimerColumns, count_of

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
