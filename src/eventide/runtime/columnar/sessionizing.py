"""Which intervals of time belong to one session: found by sorting, for all keys at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Intervals put together: ``number`` is the session of each interval; the others have an entry for each session.

    ``first`` is an interval of each session, from which its key can be taken.
    """

    number: Array
    first: Array
    starts: Array
    ends: Array


def sessions_of(keys: Array, starts: Array, ends: Array) -> Sessions:
    """Put intervals of one key that overlap or touch into one session.

    Args:
        keys: the key of each interval, as a number from 0.
        starts: when each begins, in milliseconds.
        ends: when each ends (exclusive), in milliseconds.

    >>> found = sessions_of(np.array([0, 0, 1, 0]), np.array([0, 10, 5, 21]), np.array([10, 20, 15, 31]))
    >>> found.number.tolist(), found.starts.tolist(), found.ends.tolist()
    ([0, 0, 2, 1], [0, 21, 5], [20, 31, 15])
    """
    order = _in_order(keys, starts)
    sorted_keys, sorted_starts = keys[order], starts[order]
    reach = _highest_so_far(sorted_keys, ends[order])
    is_first = np.ones(len(order), bool)
    is_first[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (sorted_starts[1:] > reach[:-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_first) - 1
    at = np.flatnonzero(is_first)
    last = np.append(at[1:], len(order)) - 1 if len(at) else at
    return Sessions(number, order[at], sorted_starts[at], reach[last])


def _in_order(keys: Array, times: Array) -> Array:
    """The order by key and time: found by sorting plain numbers where key, time and place fit into 64 bits together."""
    count = len(keys)
    if not count:
        return np.zeros(0, np.int64)
    lowest = int(times.min())
    span = int(times.max()) - lowest + 1
    if (int(keys.max()) + 1) * span * count >= 2**63:
        return np.lexsort((times, keys))
    packed = (keys * span + (times - lowest)) * count + np.arange(count)
    packed.sort()
    order: Array = packed % count
    return order


def _highest_so_far(keys: Array, ends: Array) -> Array:
    """The highest end up to each interval of its key, of intervals that are sorted by key."""
    if ((ends[1:] >= ends[:-1]) | (keys[1:] != keys[:-1])).all():
        return ends
    distinct, rank = np.unique(ends, return_inverse=True)
    highest: Array = distinct[np.maximum.accumulate(keys * len(distinct) + rank) % len(distinct)]
    return highest


def key_numbers(table: pa.Table, keys: Sequence[str]) -> Array:
    """Each key of a table as a number from 0; 0 throughout where there are no keys."""
    numbers = np.zeros(len(table), np.int64)
    for position, name in enumerate(keys):
        encoded = pc.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        if position == 0:
            numbers = codes
        else:
            _, numbers = np.unique(numbers * len(encoded.dictionary) + codes, return_inverse=True)
    return numbers


def numbered_together(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> tuple[Array, Array]:
    """The keys of two tables as numbers, equal keys by equal numbers."""
    if not keys:
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64)
    numbers = key_numbers(pa.concat_tables([left.select(keys), right.select(keys)]), keys)
    return numbers[: len(left)], numbers[len(left) :]
