"""Counts of lengths of time: how many there are of each, so that shares can be promised and not only estimated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]

_BITS = 10
_STEPS = 1 << _BITS  # in each power of two
_LONGEST = 1 << 52  # up to here a float, which finds the power of two, is exact: 140,000 years


@dataclass(slots=True)
class Lengths:
    """Counts lengths of whole milliseconds: exactly up to two seconds, and beyond in steps of at most a thousandth.

    The steps are the same for all data, so two of these add up to that of both, and what is said of a share is no
    estimate: at least so many are not longer than that. (A sketch of quantiles is smaller, and may err by a share that
    is larger than what is asked for here.)

    Attributes:
        counts: how many there are in each step; the first is that of 0 ms.
        longest_ms: the longest, exactly; 0 where there is none.

    >>> lengths = Lengths()
    >>> lengths.add(np.array([0, 0, 0, 5, 7_000_000]))
    >>> lengths.total, lengths.longer_than(5), lengths.longest_ms
    (5, 1, 7000000)
    >>> lengths.within(0.4), lengths.within(0.2), lengths.within(0)
    (0, 5, 7000000)
    """

    counts: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    longest_ms: int = 0

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    def add(self, lengths_ms: Ints) -> None:
        """Count some more.

        Args:
            lengths_ms: milliseconds, none below 0; what is longer than 140,000 years counts as that.
        """
        if not len(lengths_ms):
            return
        known = np.minimum(lengths_ms, _LONGEST)
        power = np.maximum(np.frexp(known.astype(np.float64))[1] - (_BITS + 1), 0)
        self._count(np.bincount((known >> power) + _STEPS * power))
        self.longest_ms = max(self.longest_ms, int(known.max()))

    def merge(self, other: Lengths) -> None:
        """Add what another has counted."""
        self._count(other.counts)
        self.longest_ms = max(self.longest_ms, other.longest_ms)

    def longer_than(self, length_ms: int) -> int:
        """How many are longer; those of the step of this length count as longer unless it is the step's last."""
        step = int(np.searchsorted(self._lasts(), length_ms, side="right"))
        return 0 if length_ms >= self.longest_ms else int(self.counts[step:].sum())

    def within(self, share: float) -> int:
        """The shortest length that no more than a share of all are longer than; the last one of its step.

        Args:
            share: between 0 and 1; 0 gives the longest.
        """
        allowed = int(share * self.total)
        longer = self.total - np.cumsum(self.counts)
        step = int(np.argmax(longer <= allowed))
        return min(int(self._lasts()[step]), self.longest_ms)

    def points(self) -> tuple[Ints, Ints]:
        """For a curve: the last length of each step that has any, and how many are longer than that."""
        there = np.flatnonzero(self.counts)
        lengths = np.minimum(self._lasts()[there], self.longest_ms)
        return lengths, (self.total - np.cumsum(self.counts))[there]

    def _lasts(self) -> Ints:
        steps = np.arange(len(self.counts), dtype=np.int64)
        power = np.maximum(steps // _STEPS - 1, 0)
        lasts: Ints = ((steps - _STEPS * power + 1) << power) - 1
        return lasts

    def _count(self, counts: npt.NDArray[Any]) -> None:
        if len(counts) > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(len(counts) - len(self.counts), np.int64)])
        self.counts[: len(counts)] += counts
