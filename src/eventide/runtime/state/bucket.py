"""Buckets of objects: the state of some keys, side by side, as bytes.

Where few keys of a stored bucket have changed, they follow it as a bucket of their own, and so do later changes.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from eventide.pickling.pickles import dumps, loads
from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.expiring import SUFFIX, expiry_of
from eventide.runtime.state.pages import HASH, Page, is_page, read_parts
from eventide.runtime.state.timers import TimerColumns

KINDS_OF_TIME = 2
"""The number of kinds of timers: of event time, and of processing time."""

EXPIRY = KINDS_OF_TIME
"""The kind of time at which the first part of a bucket expires; most have none."""

Owners: TypeAlias = list[int] | None
"""Which keys of a bucket have something, by their places; None stands for all."""

Column: TypeAlias = tuple[Owners, bool, list[Any]]
"""A state of some keys under one name: which keys, whether each value is a pickle, and the values or pickles."""

PLAIN = frozenset({str, int, float, bool, bytes})
"""Values of these types cannot be changed, so that those of several keys are pickled together."""

TIMES = ("event times", "clock times", "expiries")
"""The names of the kinds of time in a store of buckets."""

Times: TypeAlias = tuple[int | None, ...]
"""A time of each kind, in milliseconds; None for never."""

NO_TIMES: Times = (None,) * (KINDS_OF_TIME + 1)
"""The due time of an empty bucket."""

_HASHES = np.dtype("<u8")
_LENGTH, _END_OF_CHANGES = struct.Struct("<I"), b"keys"
"""Changes end with their length and this, and no bucket ends so."""


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
        earliest: the earliest time of each kind, in milliseconds, as it was stored; of changes, also of their bucket.

    >>> bucket = Bucket(["a"], np.array([7], np.uint64), {"n": column(["x"], 1)})
    >>> [(same, size)] = read_bucket(bucket.to_bytes())
    >>> same.values
    {'n': (None, False, ['x'])}
    """

    keys: list[Any]
    hashes: Hashes
    values: dict[str, Column] = field(default_factory=dict)
    spaces: dict[str, Column] = field(default_factory=dict)
    timers: Sequence[tuple[TimerColumns | None, ...]] = ((None, None),) * KINDS_OF_TIME
    earliest: Times = NO_TIMES

    def to_bytes(self, *, are_changes: bool = False) -> bytes:
        """Return the bytes to be stored, or those to be stored beside the bucket that is changed.

        Raises:
            Exception: any error of pickling.
        """
        hashes = self.hashes.astype(_HASHES).tobytes()
        content = dumps((self.keys, hashes, self.values, self.spaces, self.timers, self.earliest))
        return content + _LENGTH.pack(len(content)) + _END_OF_CHANGES if are_changes else content


def read_bucket(stored: bytes, load: Callable[[bytes], Any] = loads) -> list[tuple[Bucket, int]]:
    """A bucket as it is by itself, or a page, and its changes, the oldest first; and how many bytes each has."""
    if is_page(stored):
        return [(_of_page(page), page.size) for page in read_parts(stored)]
    found, end = [], len(stored)
    while stored.endswith(_END_OF_CHANGES, 0, end):
        end_of_content = end - _LENGTH.size - len(_END_OF_CHANGES)
        begin = end_of_content - _LENGTH.unpack_from(stored, end_of_content)[0]
        found.append((_unpickled(load(stored[begin:end_of_content])), end - begin))
        end = begin
    return [(_unpickled(load(stored[:end])), end), *reversed(found)]


def read_living(stored: bytes, load: Callable[[bytes], Any] = loads) -> list[tuple[Bucket, list[int]]]:
    """A bucket and its changes, and the places of the keys in each that are as it says.

    A key of which nothing is kept any more may be among the changes.
    """
    found: list[tuple[Bucket, list[int]]] = []
    newer = np.zeros(0, np.uint64)
    for bucket, _ in reversed(read_bucket(stored, load)):
        stays = ~np.isin(bucket.hashes, newer)
        found.append((bucket, np.flatnonzero(stays).tolist()))
        newer = np.concatenate([newer, bucket.hashes])
    return found[::-1]


def _unpickled(content: Any) -> Bucket:
    keys, hashes, *rest = content
    return Bucket(keys, np.frombuffer(hashes, _HASHES), *rest)


def _of_page(page: Page) -> Bucket:
    types, rows, timers, _ = page
    count = len(rows)
    found: defaultdict[str, list[Any]] = defaultdict(lambda: [None] * count)
    for (name, kind), values in zip(types.values, types.values_of(rows), strict=True):
        owners = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)).tolist()
        held = values.drop_null()
        objects = map(Pickled, held.to_pylist()) if kind.is_pickled else kind.from_arrow(held)
        for owner, value in zip(owners, objects, strict=True):
            found[name][owner] = value
    return Bucket(
        types.key.from_arrow(types.keys_of(rows)),
        rows.column(HASH).to_numpy(),
        {name: column(held, count - held.count(None)) for name, held in found.items()},
        timers=[(of_kind, None) for of_kind in timers],
        earliest=(*NO_TIMES[:EXPIRY], expiry_of_page(page)),
    )


def expiry_of_page(page: Page) -> int | None:
    """When the first value of a page expires, in milliseconds; None for never."""
    columns = zip(page.types.values, page.types.values_of(page.rows), strict=True)
    expiring = (values.drop_null().to_pylist() for (name, _), values in columns if name.endswith(SUFFIX))
    times = (expiry_of(loads(stored)) for values in expiring for stored in values)
    return min((time_ms for time_ms in times if time_ms is not None), default=None)


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
    if PLAIN.issuperset(map(type, values)):
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
