"""Counts of lengths of time, and of times: so that shares can be promised and not only estimated.

``TimestampSummary`` counts the elements of a split in a micro-batch: of what times, and how far out of order.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eventide.common.ms import MAX_MS, MIN_MS

Ints: TypeAlias = npt.NDArray[np.int64]

THOUSANDTHS = 10
EIGHTHS = 3

_LONGEST = 1 << 52  # up to here a float, whose first bits are the step, is exact: 140,000 years

_CELLS = 128
_RANGE = 8_192


class DurationHistogram:
    """Counts lengths of whole milliseconds, in steps that grow with the length.

    Each power of two has ``1 << bits`` steps, so that a length is known to a thousandth of itself, or to an eighth;
    what is shorter than two of these powers is counted exactly. The steps are the same for all data, so two histograms
    add up to the histogram of both, and a statement about a share is a bound, not an estimate: at least this share is
    not longer. (A sketch of quantiles is smaller, but its error may exceed the share in question.)

    A longer time than 140,000 years counts as that.

    Attributes:
        bits: how fine the steps are: ``THOUSANDTHS`` or ``EIGHTHS``.
        longest_ms: the longest, exactly; 0 where there is none.

    >>> lengths = DurationHistogram()
    >>> lengths.add(np.array([0, 0, 0, 5, 7_000_000]))
    >>> lengths.total, lengths.longer_than(5), lengths.longest_ms
    (5, 1, 7000000)
    >>> lengths.within(0.4), lengths.within(0.2), lengths.within(0)
    (0, 5, 7000000)
    """

    __slots__ = ("_counts", "bits", "longest_ms")

    def __init__(self, bits: int = THOUSANDTHS) -> None:
        self.bits = bits
        self.longest_ms = 0
        self._counts: Ints = np.zeros(1, np.int64)

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self._counts.sum())

    def add(self, lengths_ms: Ints, times: Any = None) -> None:
        """Count some more.

        Args:
            lengths_ms: milliseconds, none below 0.
            times: how often each of them is there; once, by default.
        """
        if not len(lengths_ms):
            return
        self.reach(int(lengths_ms.max()))
        self._count(np.bincount(self._steps_of(lengths_ms), times).astype(np.int64, copy=False))

    def reach(self, length_ms: int) -> None:
        """Take note that there was one so long, without counting it."""
        self.longest_ms = max(self.longest_ms, min(length_ms, _LONGEST))

    def merge(self, other: DurationHistogram, further_ms: int = 0) -> None:
        """Add what another has counted, in the same steps; each longer by `further_ms`.

        Raises:
            ValueError: if the other has other steps.
        """
        if other.bits != self.bits:
            raise ValueError(f"lengths in steps of {other.bits} bits cannot be added to those of {self.bits} bits")
        if not other.total:
            self.reach(other.longest_ms)
            return
        self.reach(other.longest_ms + further_ms)
        if further_ms:
            there = np.flatnonzero(other._counts)
            moved = other._lasts_of(there) + min(further_ms, _LONGEST)
            self._count(np.bincount(self._steps_of(moved), other._counts[there]).astype(np.int64))
        else:
            self._count(other._counts)

    def longer_than(self, length_ms: int) -> int:
        """How many are longer; those of the step of this length count as longer unless it is the step's last."""
        if length_ms >= self.longest_ms:
            return 0
        there = np.flatnonzero(self._counts)
        return int(self._counts[there[self._lasts_of(there) > length_ms]].sum())

    def within(self, share: float) -> int:
        """The shortest length that no more than a share of all are longer than; the last one of its step.

        Args:
            share: between 0 and 1; 0 gives the longest.
        """
        allowed = int(share * self.total)
        longer = self.total - np.cumsum(self._counts)
        step = np.argmax(longer <= allowed)
        return min(int(self._lasts_of(step)), self.longest_ms)

    def points(self) -> tuple[Ints, Ints]:
        """For a curve: the last length of each step that has any, and how many are longer than that."""
        there = np.flatnonzero(self._counts)
        lengths = np.minimum(self._lasts_of(there), self.longest_ms)
        return lengths, (self.total - np.cumsum(self._counts))[there]

    def steps(self) -> list[tuple[int, int]]:
        """The last length of each step that has any, in milliseconds, and how many it has; shortest first."""
        there = np.flatnonzero(self._counts)
        return list(zip(self._lasts_of(there).tolist(), self._counts[there].tolist(), strict=True))

    def snapshot(self) -> list[Any]:
        """The counts as JSON values."""
        there = np.flatnonzero(self._counts)
        return [self.bits, self.longest_ms, there.tolist(), self._counts[there].tolist()]

    @classmethod
    def of(cls, snapshot: list[Any]) -> DurationHistogram:
        """The inverse of :meth:`snapshot`."""
        bits, longest_ms, steps, counts = snapshot
        lengths = cls(bits)
        lengths.longest_ms = longest_ms
        if steps:
            lengths._counts = np.zeros(steps[-1] + 1, np.int64)
            lengths._counts[steps] = counts
        return lengths

    def _steps_of(self, lengths_ms: Ints) -> Ints:
        """The step of each: 0 for nothing, then by the power of two, and the first bits after it, as a float."""
        shift = 52 - self.bits
        known = np.minimum(lengths_ms, _LONGEST).astype(np.float64)
        steps: Ints = np.maximum((known.view(np.int64) >> shift) - ((0x3FF << self.bits) - 1), 0)
        return steps

    def _lasts_of(self, steps: object) -> Ints:
        """The last length of each step; the next step begins one further."""
        power, part = np.divmod(np.asarray(steps), 1 << self.bits)
        first, up = (1 << self.bits) + part, power - self.bits
        begins = np.where(up >= 0, first << np.maximum(up, 0), -(-first >> np.maximum(-up, 0)))
        lasts: Ints = np.where(steps == 0, 0, np.maximum(begins - 1, 1))
        return lasts

    def _count(self, counts: Ints) -> None:
        if len(counts) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(len(counts) - len(self._counts), np.int64)])
        self._counts[: len(counts)] += counts


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
        """The counts as JSON values."""
        return [self._shift, list(self._cells), list(self._cells.values())]

    @classmethod
    def of(cls, snapshot: list[Any]) -> TimeCounts:
        """The inverse of :meth:`snapshot`."""
        counts = cls()
        counts._shift, cells, numbers = snapshot
        counts._cells = dict(zip(cells, numbers, strict=True))
        return counts


FIRST = 32
"""Number of timestamps that go on as they are: their disorder depends on the elements before the micro-batch."""


BLOCK = 16_384
_COUNTED = 32
"""One block in this many is counted; others are looked at if an element is further out of order than any before."""


class TimestampSummary:
    """The timestamps of a split in the order in which its elements came, summed up.

    >>> summary = TimestampSummary()
    >>> summary.see(np.array([1_000, 5_000, 4_000]))
    >>> summary.rows, summary.newest, summary.first
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
        """The counts as JSON values; if ``brief``, without the histograms."""
        ends = [self.rows, self.newest, self.oldest, self.largest]
        return ends if brief else [*ends, self.first, self.behind.snapshot(), self._times.snapshot()]

    @classmethod
    def of(cls, snapshot: list[Any]) -> TimestampSummary:
        """The inverse of :meth:`snapshot`."""
        summary = cls()
        summary.rows, summary.newest, summary.oldest, summary.largest, *rest = snapshot
        if rest:
            summary.first, behind, times = rest
            summary._times = TimeCounts.of(times)
            summary.behind = DurationHistogram.of(behind)
        return summary
