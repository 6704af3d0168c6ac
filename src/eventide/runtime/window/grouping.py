"""Which elements of a batch are in which pane: worked out for all of them at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from eventide.runtime.columnar.panes import Panes
from eventide.runtime.window.contents import Times

Indices: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""Indices of elements in a batch, rising."""


def by_pane(panes: Panes, timestamps: Times) -> list[tuple[int, Indices | None]]:
    """The elements of each pane, in the order of time; None stands for all elements, where there is but one pane.

    >>> by_pane(Panes(10, 10), np.array([1, 12, 3]))
    [(0, array([0, 2])), (10, array([1]))]
    >>> by_pane(Panes(10, 10), np.array([1, 3]))
    [(0, None)]
    """
    ends = panes.start_of(np.array([timestamps.min(), timestamps.max()]))
    if ends[0] == ends[1]:
        return [(int(ends[0]), None)]
    starts = panes.start_of(timestamps)
    distinct, codes = np.unique(starts, return_inverse=True)
    narrow = codes.astype(np.uint16) if len(distinct) < 1 << 16 else codes  # numpy sorts 16 bits by radix
    order = np.argsort(narrow, kind="stable")
    cuts = np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1]
    return list(zip(distinct.tolist(), np.split(order, cuts), strict=True))
