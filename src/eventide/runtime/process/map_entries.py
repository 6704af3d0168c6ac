"""Entries of many maps in columns, side by side: found, changed and put back together by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.elements.elements import Numbers
from eventide.runtime.elements.keys import first_rows, key_column, numbers_of_columns


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of maps: the number of the map of each, its key there, and its value.

    >>> maps = pa.array([[("a", 1), ("b", 2)], None, [("a", 3)]], pa.map_(pa.string(), pa.int64()))
    >>> entries = Entries.of(maps)
    >>> entries.owners.tolist(), entries.keys.to_pylist()
    ([0, 0, 2], ['a', 'b', 'a'])
    >>> more = Entries(np.array([1, 0]), pa.array(["c", "a"]), pa.array([4, 5]))
    >>> changed = entries.updated(more).without(np.array([2]), pa.array(["a"]))
    >>> changed.owners.tolist(), changed.keys.to_pylist(), changed.values.to_pylist()
    ([0, 0, 1], ['a', 'b', 'c'], [5, 2, 4])
    """

    owners: Numbers
    keys: pa.Array
    values: pa.Array

    def __len__(self) -> int:
        return len(self.owners)

    @staticmethod
    def of(maps: pa.MapArray) -> Entries:
        """Take maps apart; null counts as an empty one."""
        entry = pa.struct([pa.field("key", maps.type.key_type, nullable=False), maps.type.item_field])
        lists = maps.cast(pa.list_(entry))
        counts = lists.value_lengths().fill_null(0).to_numpy()
        keys, values = lists.flatten().flatten()
        return Entries(np.repeat(np.arange(len(maps)), counts), keys, values)

    def maps(self, count: int, kind: TypeInformation) -> pa.MapArray:
        """Put `count` maps together, of entries in the order of their owners; null for an empty one."""
        offsets = np.searchsorted(self.owners, np.arange(count + 1)).astype(np.int32)
        is_empty = pa.array(np.diff(offsets) == 0)
        return pa.MapArray.from_arrays(pa.array(offsets), self.keys, self.values, mask=is_empty).cast(kind.arrow_type())

    def updated(self, others: Entries) -> Entries:
        """Return the entries with others, which take the place of equal ones, and of each other, the last one."""
        owners = np.concatenate([self.owners, others.owners])
        keys, values = (
            pa.concat_arrays(columns) for columns in ((self.keys, others.keys), (self.values, others.values))
        )
        numbers = entry_numbers(self, others.owners, others.keys)
        first = first_rows(numbers)
        last = np.empty(len(first), np.int64)
        last[numbers] = np.arange(len(numbers))
        order = np.argsort(owners[first], kind="stable")
        return Entries(owners[first[order]], keys.take(pa.array(first[order])), values.take(pa.array(last[order])))

    def without(self, owners: Numbers, keys: pa.Array) -> Entries:
        """Return the entries but for some, which are given by their maps and keys."""
        numbers = entry_numbers(self, owners, keys)
        stays = ~np.isin(numbers[: len(self)], numbers[len(self) :])
        return Entries(self.owners[stays], self.keys.filter(pa.array(stays)), self.values.filter(pa.array(stays)))


def entry_numbers(entries: Entries, owners: Numbers, keys: pa.Array) -> Numbers:
    """Numbers of entries and then of others, which are given by their maps and keys; equal ones have one number."""
    of_all: Any = pa.array(np.concatenate([entries.owners, owners]))
    return numbers_of_columns([of_all, key_column(pa.concat_arrays([entries.keys, keys]))])


def places_of_last(numbers: Numbers, count: int) -> pa.Array:
    """Where each number after the first `count` is among these; null where it is not.

    >>> places_of_last(np.array([0, 1, 2, 1, 3]), 3).to_pylist()
    [1, None]
    """
    known = np.full(int(numbers.max(initial=-1)) + 1, -1)
    known[numbers[:count]] = np.arange(count)
    found = known[numbers[count:]]
    return pa.array(found, mask=found < 0)
