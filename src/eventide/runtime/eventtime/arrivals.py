"""What one split brought in one micro-batch: how many elements, of what times, and how far out of order."""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.common._ms import MAX_MS, MIN_MS
from eventide.runtime.spread import Spread

FIRST = 32
"""How many timestamps go on as they are: what they are behind is known only with what came before the micro-batch."""


class Arrivals:
    """The timestamps of a split in the order in which its elements came, summed up.

    >>> arrivals = Arrivals()
    >>> arrivals.see(np.array([1_000, 5_000, 4_000]))
    >>> arrivals.rows, arrivals.newest, arrivals.first
    (3, 5000, [1000, 5000, 4000])
    """

    def __init__(self) -> None:
        self.rows = 0
        self.newest = MIN_MS
        self.oldest = MAX_MS
        self.first: list[int] = []
        self.behind = Spread()
        """How far each of the others is behind the newest before it."""

    def see(self, timestamps: Any) -> None:
        """Take some timestamps, an array of milliseconds."""
        if len(timestamps) == 0:
            return
        ahead = np.maximum(np.maximum.accumulate(timestamps), self.newest)
        begin = min(FIRST - len(self.first), len(timestamps))
        self.first += timestamps[:begin].tolist()
        self.behind.add(ahead[begin:] - timestamps[begin:])
        self.rows += len(timestamps)
        self.newest = int(ahead[-1])
        self.oldest = min(self.oldest, int(timestamps.min()))

    def snapshot(self) -> list[Any]:
        """All of it, as JSON values."""
        return [self.rows, self.newest, self.oldest, self.first, self.behind.snapshot()]

    @classmethod
    def of(cls, snapshot: list[Any]) -> Arrivals:
        """The inverse of :meth:`snapshot`."""
        arrivals = cls()
        arrivals.rows, arrivals.newest, arrivals.oldest, arrivals.first, behind = snapshot
        arrivals.behind = Spread.of(behind)
        return arrivals
