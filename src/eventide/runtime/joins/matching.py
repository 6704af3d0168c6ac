"""Which rows of two tables meet: found by sorting, for all rows at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from eventide.common.ms import MAX_MS, MIN_MS, clamp_ms

Array: TypeAlias = np.ndarray[Any, Any]


def in_time(keys: Array, times: Array, other_keys: Array, other_times: Array, bounds: tuple[int, int]) -> list[Array]:
    """The pairs of rows that have equal keys, the other's time being later by what is within the bounds.

    Args:
        keys: the key of each row, as a number from 0, the same for both tables.
        times: the time of each row, in milliseconds.
        other_keys: the key of each row of the other table.
        other_times: its time.
        bounds: how much later it may be at least and at most, both inclusive; less than 0 is earlier.

    Returns:
        The rows of the one and of the other table, pair by pair: in the order of the one's rows, then of the other's
        times, then of its rows.

    >>> keys, times = np.array([0, 1]), np.array([5, 5])
    >>> rows, others = in_time(keys, times, np.array([0, 0, 1, 0]), np.array([7, 6, 9, 4]), (0, 2))
    >>> rows.tolist(), others.tolist()
    ([0, 0], [1, 0])
    """
    count = len(other_times) + 1
    by_time = np.argsort(other_times, kind="stable")
    sorted_times, keys_in_time = other_times[by_time], other_keys[by_time]
    by_key = np.argsort(keys_in_time, kind="stable")
    # The place of each other row among all, by key and then by time, as one number that can be searched for.
    places = keys_in_time[by_key] * count + by_key
    begin = np.searchsorted(sorted_times, later(times, bounds[0]), side="left")
    end = np.searchsorted(sorted_times, later(times, bounds[1]), side="right")
    first, behind = (np.searchsorted(places, keys * count + at) for at in (begin, end))
    rows, found = _spread(first, behind - first)
    return [rows, by_time[by_key[found]]]


def equal(keys: Array, other_keys: Array, keeps: tuple[bool, bool] = (False, False)) -> list[Array]:
    """The pairs of rows that have equal keys, those of one key together.

    A table that is kept has rows that meet none, too, with -1 in place of the other.

    Args:
        keys: the key of each row, as a number from 0, the same for both tables.
        other_keys: the key of each row of the other table.
        keeps: whether rows of the one and of the other are kept that meet none.

    Returns:
        The rows of the one and of the other table, pair by pair.

    >>> [rows.tolist() for rows in equal(np.array([1, 0, 1]), np.array([2, 1, 1]), (True, True))]
    [[1, 0, 0, 2, 2, -1], [-1, 1, 2, 1, 2, 0]]
    """
    order, other_order = (np.argsort(some, kind="stable") for some in (keys, other_keys))
    in_order, others_in_order = keys[order], other_keys[other_order]
    first = np.searchsorted(others_in_order, in_order, side="left")
    counts = np.searchsorted(others_in_order, in_order, side="right") - first
    alone = counts == 0
    if keeps[0]:
        counts[alone] = 1
    rows, found = _spread(first, counts)
    others = np.append(other_order, -1)[np.where(alone[rows], len(other_order), found)]
    pairs = [order[rows], others]
    if keeps[1]:
        unmet = np.flatnonzero(~np.isin(other_keys, keys))
        pairs = [np.append(pairs[0], np.full(len(unmet), -1)), np.append(pairs[1], unmet)]
    return pairs


def later(times: Array, by_ms: int) -> Array:
    """Shift times by `by_ms`; sums saturate at the ends of the 64-bit range.

    >>> later(np.array([1, MAX_MS]), 2).tolist() == [3, MAX_MS]
    True
    """
    by_ms = clamp_ms(by_ms)
    if by_ms >= 0:
        return np.where(times > MAX_MS - by_ms, MAX_MS, times + by_ms)
    return np.where(times < MIN_MS - by_ms, MIN_MS, times + by_ms)


def _spread(first: Array, counts: Array) -> tuple[Array, Array]:
    """For each of some ranges, its number as often as it is long, and the numbers that are in it."""
    counts = np.maximum(counts, 0)
    rows = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) + (first - begins)[rows]
