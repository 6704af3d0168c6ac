"""How far times lie apart, as counts in steps that grow with the distance: small to keep, and quick to add to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from eventide.common._ms import add_ms, clamp_ms

_STEPS = 8
"""Steps from one power of two to the next: a quantile is at most an eighth too large."""

_SHIFT = 52 - 3
_ONE = 0x3FF << 3


class Spread:
    """Counts of distances in milliseconds, none below zero; the largest is exact.

    >>> spread = Spread()
    >>> spread.add(np.array([0, 0, 5, 1_000]))
    >>> spread.count, spread.largest, spread.quantile(0.5), spread.quantile(1.0)
    (4, 1000, 0, 1000)
    """

    def __init__(self, steps: Iterable[tuple[int, int]] = (), largest: int = 0) -> None:
        self._counts = dict(steps)
        self.largest = largest

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self._counts.values())

    def add(self, distances: Any, counts: Any = None) -> None:
        """Take an array of distances, each once, or as often as ``counts`` say."""
        if len(distances) == 0:
            return
        self.reach(int(distances.max()))
        found = np.bincount(_steps_of(distances), counts)
        for step in np.flatnonzero(found).tolist():
            self._counts[step] = self._counts.get(step, 0) + int(found[step])

    def take(self, other: Spread, further_ms: int = 0) -> None:
        """Take all of another, each so much further away."""
        steps = other._counts
        if further_ms:
            moved = np.array([add_ms(_end_of(step), clamp_ms(further_ms)) for step in steps], np.int64)
            steps = dict[int, int]()
            for step, count in zip(_steps_of(moved).tolist(), other._counts.values(), strict=True):
                steps[step] = steps.get(step, 0) + count
        for step, count in steps.items():
            self._counts[step] = self._counts.get(step, 0) + count
        if other._counts:
            self.reach(other.largest + further_ms)

    def reach(self, distance: int) -> None:
        """Take note that there was a distance, without counting it."""
        self.largest = max(self.largest, distance)

    def quantile(self, share: float) -> int:
        """The distance that this share does not go beyond, in milliseconds; up to an eighth too large."""
        needed, seen = share * self.count, 0
        for step in sorted(self._counts):
            seen += self._counts[step]
            if seen >= needed:
                return min(_end_of(step), self.largest)
        return self.largest

    def beyond(self, distance_ms: int) -> int:
        """About how many go beyond a distance; none where the largest does not."""
        if distance_ms >= self.largest:
            return 0
        return sum(count for step, count in self._counts.items() if _end_of(step) > distance_ms)

    def steps(self) -> list[tuple[int, int]]:
        """Each distance that a step ends with, in milliseconds, and how many are in it, nearest first."""
        return [(_end_of(step), self._counts[step]) for step in sorted(self._counts)]

    def snapshot(self) -> list[Any]:
        """All of it, as JSON values."""
        return [sorted(self._counts.items()), self.largest]

    @classmethod
    def of(cls, snapshot: list[Any]) -> Spread:
        """The inverse of :meth:`snapshot`."""
        steps, largest = snapshot
        return cls(((step, count) for step, count in steps), largest)


def _steps_of(distances: Any) -> Any:
    """The step of each: 0 for nothing, then by the first bits of the number as a float."""
    bits = distances.astype(np.float64).view(np.int64) >> _SHIFT
    return np.maximum(bits - (_ONE - 1), 0)


def _end_of(step: int) -> int:
    """The largest distance of a step."""
    if step == 0:
        return 0
    power, part = divmod(step, _STEPS)  # the step behind this one begins where this one ends
    return max(-(-((_STEPS + part) << power) // _STEPS) - 1, 1)
