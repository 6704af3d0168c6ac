"""Arrays that grow at their end at little cost, and an index of hashes that does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.state.timers import NO_PLACE, Numbers


class GrowingArray:
    """An array of numbers.

    >>> numbers = GrowingArray(np.int64)
    >>> numbers.extend(np.arange(3), 3)
    >>> numbers.extend(-1, 2)
    >>> numbers.array.tolist()
    [0, 1, 2, -1, -1]
    """

    def __init__(self, kind: Any) -> None:
        self._room = np.empty(0, kind)
        self._length = 0

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The numbers, which may be changed in place."""
        return self._room[: self._length]

    def extend(self, values: object, count: int) -> None:
        """Put `count` values at the end, or one value `count` times."""
        end = self._length + count
        if end > len(self._room):
            before, self._room = self.array, np.empty(max(end, 2 * self._length), self._room.dtype)
            self._room[: len(before)] = before
        self._room[self._length : end] = values
        self._length = end


class GrowingColumn:
    """A column of an Arrow type, in parts, which become one when values are taken: Arrow would do that each time.

    >>> column = GrowingColumn(pa.int64())
    >>> [column.extend(pa.array(values)).tolist() for values in ([5, None], [7])]
    [[0, -1], [2]]
    >>> column.take(np.array([2, -1, 0])).to_pylist()
    [7, None, 5]
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._parts: list[pa.Array] = []
        self._length = 0

    def extend(self, values: pa.Array) -> Numbers:
        """Put values at the end, and say where each is; `NO_PLACE` for null."""
        places = np.arange(self._length, self._length + len(values))
        self._parts.append(values)
        self._length += len(values)
        if values.null_count:
            places[values.is_null().to_numpy(zero_copy_only=False)] = NO_PLACE
        return places

    def take(self, places: Numbers) -> pa.Array:
        """The values at some places; null where a place is none."""
        wanted = pa.array(places, mask=places < 0)
        if len(self._parts) > 1:
            with suppress(pa.ArrowInvalid):  # more text than one array can hold
                self._parts = [pa.concat_arrays(self._parts)]
        if len(self._parts) == 1:
            return self._parts[0].take(wanted)
        found = pa.chunked_array(self._parts, self._kind).take(wanted)
        return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], self._kind)


class GrowingObjects:
    """A column of objects."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def extend(self, values: list[Any]) -> Numbers:
        """Put values at the end, and say where each is."""
        first = len(self._objects)
        self._objects += values
        return np.arange(first, len(self._objects))

    def take(self, places: Numbers) -> list[Any]:
        """The values at some places."""
        return list(map(self._objects.__getitem__, places.tolist()))


class HashIndex:
    """Where each hash stands: sorted runs, of which two become one when they are about as large.

    >>> index = HashIndex()
    >>> index.add(np.array([7, 5], np.uint64), 0)
    >>> index.add(np.array([6], np.uint64), 2)
    >>> index.find(np.array([5, 6, 8], np.uint64)).tolist()
    [1, 2, -1]
    >>> index.has(np.array([5, 8], np.uint64)).tolist()
    [True, False]
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Numbers]] = []

    def add(self, hashes: Hashes, first: int) -> None:
        """Take in hashes, which stand one after the other."""
        if not len(hashes):
            return
        order = np.argsort(hashes)
        run = hashes[order], order + first
        while self._runs and 2 * len(run[0]) >= len(self._runs[-1][0]):
            hashes, places = (np.concatenate(columns) for columns in zip(self._runs.pop(), run, strict=True))
            order = np.argsort(hashes)
            run = hashes[order], places[order]
        self._runs.append(run)

    def find(self, hashes: Hashes) -> Numbers:
        """Where each hash stands, at one place of several; `NO_PLACE` where it does not."""
        found = np.full(len(hashes), NO_PLACE)
        order = np.argsort(hashes)  # what is looked for in its order is found five times as fast
        hashes = hashes[order]
        for known, places in self._runs:
            at = np.minimum(known.searchsorted(hashes), len(known) - 1)
            is_there = known[at] == hashes
            found[order[is_there]] = places[at[is_there]]
        return found

    def has(self, hashes: Hashes) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which of some hashes stand anywhere."""
        found: np.ndarray[Any, np.dtype[np.bool_]] = self.find(hashes) != NO_PLACE
        return found
