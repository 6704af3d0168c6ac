"""Arrivals of one split in one micro-batch: how many elements, of what times, and how far out of order."""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.observation.histograms import EIGHTHS, DurationHistogram, TimeCounts

FIRST = 32
"""Number of timestamps that go on as they are: their disorder depends on the elements before the micro-batch."""


BLOCK = 16_384
_COUNTED = 32
"""One block in this many is counted; others are looked at if an element is further out of order than any before."""


class TimestampSummary:
    """The timestamps of a split in the order in which its elements came, summed up.

    >>> arrivals = TimestampSummary()
    >>> arrivals.see(np.array([1_000, 5_000, 4_000]))
    >>> arrivals.rows, arrivals.newest, arrivals.first
    (3, 5000, [1000, 5000, 4000])
    """

    def __init__(self) -> None:
        self.rows = 0
        self.newest = MIN_MS
        self.oldest = MAX_MS
        self.largest = 0
        """The largest distance of one of them from the newest before it; the rise of the newest in a block may lack."""
        self._blocks = 0
        self.first: list[int] = []
        self.behind = DurationHistogram(EIGHTHS)
        """The distance of each of the others from the newest before it."""
        self._times = TimeCounts()

    def see(self, timestamps: Any) -> None:
        """Take some timestamps, an array of milliseconds."""
        if len(self.first) + len(timestamps) <= FIRST:
            self._see_few(timestamps.tolist())
            return
        for begin in range(0, len(timestamps), BLOCK):  # which stays in the processor's cache
            self._see_block(timestamps[begin : begin + BLOCK])

    def _see_block(self, timestamps: Any) -> None:
        newest, oldest = int(timestamps.max()), int(timestamps.min())
        begin = min(FIRST - len(self.first), len(timestamps))
        is_counted = self._blocks % _COUNTED == 0
        if begin or is_counted or self.newest - oldest > self.largest:
            self.first += timestamps[:begin].tolist()
            distances = np.maximum(np.maximum.accumulate(timestamps), self.newest) - timestamps
            self.largest = max(self.largest, int(distances.max()))
            if is_counted:
                self.behind.add(distances[begin:])
                self._times.add(timestamps)
        self._blocks += 1
        self.rows += len(timestamps)
        self.newest = max(self.newest, newest)
        self.oldest = min(self.oldest, oldest)

    def _see_few(self, timestamps: list[int]) -> None:
        """Count a few timestamps, for which arrays would take longer."""
        if not timestamps:
            return
        self.first += timestamps
        self.rows += len(timestamps)
        self.oldest = min(self.oldest, *timestamps)
        for time in timestamps:
            self.newest = max(self.newest, time)
            self.largest = max(self.largest, self.newest - time)

    def until(self, time_ms: int) -> float:
        """How many elements are at a time or before it: an estimate where not all of them were counted."""
        if self.newest <= time_ms or self.oldest > time_ms:
            return self.rows if self.newest <= time_ms else 0
        if len(self.first) == self.rows:
            return sum(time <= time_ms for time in self.first)
        if counted := self._times.total:
            return max(self._times.until(time_ms) * self.rows / counted, 1)
        return max(self.rows * (time_ms - self.oldest) / (self.newest - self.oldest), 1)

    def snapshot(self, *, brief: bool = False) -> list[Any]:
        """All of it, as JSON values; ``brief``, how far out of order most are is left out."""
        ends = [self.rows, self.newest, self.oldest, self.largest]
        return ends if brief else [*ends, self.first, self.behind.snapshot(), self._times.snapshot()]

    @classmethod
    def of(cls, snapshot: list[Any]) -> TimestampSummary:
        """The inverse of :meth:`snapshot`."""
        arrivals = cls()
        arrivals.rows, arrivals.newest, arrivals.oldest, arrivals.largest, *rest = snapshot
        if rest:
            arrivals.first, behind, times = rest
            arrivals._times = TimeCounts.of(times)
            arrivals.behind = DurationHistogram.of(behind)
        return arrivals
