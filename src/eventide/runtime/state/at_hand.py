"""Keys at hand, as rows: what state of objects and state of columns have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from eventide.runtime.elements.hashing import Hashes
from eventide.runtime.elements.keys import groups_of_hashes
from eventide.runtime.state.expiring import SUFFIX
from eventide.runtime.state.growing import GrowingArray, GrowingColumn, GrowingObjects, HashIndex
from eventide.runtime.state.timers import NO_PLACE, Numbers, Rows

Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Name: TypeAlias = tuple[str, Any]
"""The name of a state, and the kind of its values: a name may have values of several kinds, each key of one of them."""

_Column = TypeVar("_Column", bound=GrowingColumn | GrowingObjects)


class Values(Generic[_Column]):
    """The values at hand of one name and kind, and where among them the one of each key is."""

    def __init__(self, stored: _Column, keys: int) -> None:
        self._stored = stored
        self.where = GrowingArray(np.int64)
        self.where.extend(NO_PLACE, keys)

    def set(self, places: Numbers, values: Any) -> None:
        """Give the keys at some places values, the last one that is given; null stands for none."""
        self.where.array[places] = self._stored.extend(values)

    def at(self, places: Numbers) -> Any:
        """The values of the keys at some places."""
        return self._stored.take(self.where.array[places])

    def owners(self) -> Numbers:
        """The places of the keys that have a value."""
        return np.flatnonzero(self.where.array != NO_PLACE)


class RowsAtHand(ABC, Generic[_Column]):
    """The keys of a subtask that were read, with their values by name, and what has become of them.

    A key is named by its place among those at hand.

    Attributes:
        is_quiesced: whether timers have begun to fire in batch execution: from then on, none is set.
    """

    def __init__(self, max_parallelism: int, *, in_batch: bool) -> None:
        self.is_quiesced = False
        self._in_batch = in_batch
        self._max_parallelism = max_parallelism

    def _forget(self) -> None:
        """Have nothing at hand."""
        self._hashes, self._has_changed = map(GrowingArray, (np.uint64, np.bool_))
        self._index = HashIndex()
        self._values: dict[Name, Values[_Column]] = {}

    def __len__(self) -> int:
        """How many keys are at hand."""
        return len(self._hashes.array)

    @abstractmethod
    def _column(self, kind: Any) -> _Column:
        """A column for values of a kind."""

    @abstractmethod
    def _add_keys(self, columns: Sequence[Any], those: Flags | None) -> None:
        """Have keys at hand: those of some columns, or all."""

    def groups(self, places: Numbers) -> Numbers:
        """The key groups of the keys at some places."""
        return groups_of_hashes(self._hashes.array[places], self._max_parallelism)

    def _twins(self, key_hash: np.uint64) -> list[int]:
        """The places of all keys of a hash, of which another key was found."""
        self._index.has_twins = True
        places: list[int] = np.flatnonzero(self._hashes.array == key_hash).tolist()
        return places

    def _values_of(self, name: Name) -> Values[_Column]:
        if name not in self._values:
            self._values[name] = Values(self._column(name[1]), len(self))
        return self._values[name]

    def _expiring(self) -> list[tuple[str, Values[_Column]]]:
        return [(name, values) for (name, _), values in self._values.items() if name.endswith(SUFFIX)]

    def _add(self, hashes: Hashes, keys: Sequence[Any], those: Flags | None = None) -> None:
        """Have keys at hand that have nothing yet, given the columns of all of which they are some."""
        count = len(hashes)
        self._index.add(hashes, len(self))
        self._hashes.extend(hashes, count)
        self._add_keys(keys, those)
        self._has_changed.extend(False, count)
        for values in self._values.values():
            values.where.extend(NO_PLACE, count)

    def _have_anything(self, timers: Sequence[Sequence[Rows]], first: int = 0) -> Flags:
        """Which of the keys from a place on have a value, or one of some timers, which count from there."""
        found = np.zeros(len(self) - first, bool)
        for values in self._values.values():
            found |= values.where.array[first:] != NO_PLACE
        for owners, _, _ in chain.from_iterable(timers):
            found[owners] = True
        return found
