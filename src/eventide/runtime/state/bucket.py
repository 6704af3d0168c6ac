"""Buckets: the state of some keys, side by side, as objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.timers import TimerColumns

KINDS_OF_TIME = 2
"""The number of kinds of timers: of event time, and of processing time."""

EXPIRY = KINDS_OF_TIME
"""The kind of time at which the first part of what a key has expires; most have none."""

Owners: TypeAlias = list[int] | None
"""Which keys of a bucket have something, by their places; None stands for all."""

Column: TypeAlias = tuple[Owners, bool, list[Any]]
"""A state of some keys under one name: which keys, whether each value is a pickle, and the values or pickles."""

PLAIN = frozenset({str, int, float, bool, bytes})
"""Values of these types cannot be changed, so they are no pickles while they are loaded."""

TIMES = ("event times", "clock times", "expiries")
"""The names of the kinds of time at which something of a key is due."""


class Pickled(bytes):
    """A value that was not looked at since it was read: it is written as it is."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Bucket:
    """Some keys by their places, and what is kept of them.

    Attributes:
        keys: the keys.
        hashes: their hashes.
        values: the state without a namespace, by name.
        spaces: by name too, what each key has by namespace.
        timers: of each kind, those without a namespace and those with one.

    >>> import numpy as np
    >>> Bucket(["a"], np.array([7], np.uint64), {"n": column(["x"], 1)}).values
    {'n': (None, False, ['x'])}
    """

    keys: list[Any]
    hashes: Hashes
    values: dict[str, Column] = field(default_factory=dict)
    spaces: dict[str, Column] = field(default_factory=dict)
    timers: Sequence[tuple[TimerColumns | None, ...]] = ((None, None),) * KINDS_OF_TIME


def column(values: list[Any], count: int) -> Column:
    """Make a column of the values of keys under a name, None if they have none; `count` have one.

    What can be changed is pickled by itself: keys share no object, and an untouched value stays as it is.

    >>> column(["x", None, "y"], 2)
    ([0, 2], False, ['x', 'y'])
    """
    owners = None
    if count < len(values):
        owners = [place for place, value in enumerate(values) if value is not None]
        values = [values[place] for place in owners]
    if PLAIN.issuperset(map(type, values)):
        return owners, False, values
    return owners, True, [bytes(value) if type(value) is Pickled else dumps(value) for value in values]


def live(value: object) -> Any:
    """A value as its user knows it."""
    return loads(value) if type(value) is Pickled else value


def unpickled(values: dict[Any, Any], key: object) -> Any:
    """The value of a key, None if there is none; it is unpickled when it is looked at for the first time."""
    value = values.get(key)
    if type(value) is Pickled:
        value = values[key] = live(value)
    return value
