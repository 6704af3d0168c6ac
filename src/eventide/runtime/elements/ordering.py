"""The order of rows by several whole numbers, found by sorting one number for each where all fit; runs and groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np

_Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Scalar = TypeVar("_Scalar", bound=np.generic)
_MOST = 2**63


def order_by(*columns: _Numbers) -> _Numbers:
    """The order of rows by their first numbers, of equal ones by their second, and so on; equal rows stay in order.

    >>> order_by(np.array([1, 0, 1]), np.array([5, 9, 3])).tolist()
    [1, 2, 0]
    """
    count = len(columns[0])
    if not count:
        return np.zeros(0, np.int64)
    packed, room = np.zeros(count, np.int64), 1
    for column in columns:
        lowest, highest = int(column.min()), int(column.max())
        span = highest - lowest + 1
        room *= span
        if room >= _MOST:
            return np.lexsort(columns[::-1])
        packed *= span
        packed += column - lowest
    order: _Numbers
    if room * count < _MOST:
        packed = packed * count + np.arange(count)
        packed.sort()
        order = packed % count
        return order
    order = np.argsort(packed)  # in which equal rows may change their order, which is quicker
    in_order = packed[order]
    return np.argsort(packed, kind="stable") if (in_order[1:] == in_order[:-1]).any() else order


def are_first(*columns: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row, whether it differs from the row before it in any column; the first row does.

    >>> are_first(np.array([1, 1, 2, 2]), np.array([5, 5, 5, 6])).tolist()
    [True, False, True, True]
    """
    found = np.ones(len(columns[0]), bool)
    found[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return found


def firsts(*columns: np.ndarray[Any, Any]) -> _Numbers:
    """The number of each row that differs from the row before it: where runs of equal rows begin.

    >>> firsts(np.array([1, 1, 2, 2])).tolist()
    [0, 2]
    """
    return np.flatnonzero(are_first(*columns))


def equal_runs(*columns: np.ndarray[Any, Any]) -> Iterator[tuple[int, int]]:
    """Where each run of equal rows begins and ends.

    >>> list(equal_runs(np.array([5, 5, 7])))
    [(0, 2), (2, 3)]
    """
    return pairwise([*firsts(*columns).tolist(), len(columns[0])])


def spread(counts: _Numbers) -> tuple[_Numbers, _Numbers]:
    """The members of some groups, one after the other: the group of each by its number, and its own number in that.

    >>> groups, members = spread(np.array([2, 0, 1]))
    >>> groups.tolist(), members.tolist()
    ([0, 0, 2], [0, 1, 0])
    """
    groups = np.repeat(np.arange(len(counts)), counts)
    return groups, np.arange(len(groups)) - (np.cumsum(counts) - counts)[groups]


def highest_so_far(groups: _Numbers, numbers: _Numbers) -> _Numbers:
    """The highest number up to each row of its group; rows are sorted by group.

    >>> highest_so_far(np.array([0, 0, 0, 1]), np.array([5, 9, 7, 1])).tolist()
    [5, 9, 9, 1]
    """
    if ((numbers[1:] >= numbers[:-1]) | (groups[1:] != groups[:-1])).all():
        return numbers
    in_order, rank = np.unique(numbers, return_inverse=True)
    highest: _Numbers = in_order[np.maximum.accumulate(groups * len(in_order) + rank) % len(in_order)]
    return highest


def distinct(numbers: np.ndarray[Any, np.dtype[_Scalar]]) -> np.ndarray[Any, np.dtype[_Scalar]]:
    """Some numbers in order, each once: quicker than numpy's own ``unique``."""
    numbers = np.sort(numbers)
    found: np.ndarray[Any, np.dtype[_Scalar]] = numbers[are_first(numbers)]
    return found
