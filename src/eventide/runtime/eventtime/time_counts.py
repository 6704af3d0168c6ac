"""How many elements have which event time: counts in cells of time, which grow wider as the times spread."""

from __future__ import annotations

from typing import Any

import numpy as np

_CELLS = 128
_RANGE = 8_192


class TimeCounts:
    """Counts event times in at most `most` cells, each as wide as a power of two of milliseconds.

    >>> counts = TimeCounts()
    >>> counts.add(np.array([1_000, 1_001, 1_001, 2_000]))
    >>> counts.total, counts.until(1_001)
    (4, 3.0)
    """

    def __init__(self) -> None:
        self._shift = 0
        self._cells: dict[int, int] = {}

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self._cells.values())

    def add(self, times: Any) -> None:
        """Take an array of event times, in milliseconds."""
        lowest, highest = int(times.min()), int(times.max())
        while (highest >> self._shift) - (lowest >> self._shift) >= _RANGE:
            self._widen()
        first = lowest >> self._shift
        found = np.bincount((times >> self._shift) - first)
        while np.count_nonzero(found) > _CELLS:
            self._widen()
            found = np.pad(found, (first & 1, (len(found) + first) & 1)).reshape(-1, 2).sum(axis=1)
            first >>= 1
        for cell in np.flatnonzero(found).tolist():
            self._cells[first + cell] = self._cells.get(first + cell, 0) + int(found[cell])
        while len(self._cells) > _CELLS:
            self._widen()

    def until(self, time_ms: int) -> float:
        """How many are at a time or before it; of the cell that it is in, the share that is before it."""
        cell = time_ms >> self._shift
        part = ((time_ms + 1) - (cell << self._shift)) / (1 << self._shift)
        return sum(count for at, count in self._cells.items() if at < cell) + self._cells.get(cell, 0) * part

    def _widen(self) -> None:
        self._shift += 1
        cells, self._cells = self._cells, {}
        for cell, count in cells.items():
            self._cells[cell >> 1] = self._cells.get(cell >> 1, 0) + count

    def snapshot(self) -> list[Any]:
        """All of it, as JSON values."""
        return [self._shift, list(self._cells), list(self._cells.values())]

    @classmethod
    def of(cls, snapshot: list[Any]) -> TimeCounts:
        """The inverse of :meth:`snapshot`."""
        counts = cls()
        counts._shift, cells, numbers = snapshot
        counts._cells = dict(zip(cells, numbers, strict=True))
        return counts
