"""Late elements of one subtask of an operator: how many, how late, and a few of them."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from eventide.runtime.duration_histogram import EIGHTHS, DurationHistogram

_KEPT = 8


class LateOne(NamedTuple):
    """A late element, or several that were summed up before they came: all times are in milliseconds.

    ``timestamp`` is the event time, of several the latest that one of them can have; ``watermark`` is the one that had
    passed them; ``clock`` is when that was.
    """

    timestamp: int
    watermark: int
    clock: int
    elements: int = 1


class Lateness:
    """Late elements of a subtask since its state began.

    >>> late = Lateness()
    >>> late.add([1_000, 4_000], 5_000, clock_ms=0)
    >>> late.behind.total, late.behind.longest_ms
    (2, 4000)
    """

    def __init__(self) -> None:
        self.behind = DurationHistogram(EIGHTHS)
        """How far they were behind the watermark."""
        self.last: deque[LateOne] = deque(maxlen=_KEPT)
        """The last late elements, oldest first."""
        self.from_panes = False
        """Whether some had been summed up before they came, so that the end of their pane stands for their times."""

    def __bool__(self) -> bool:
        return bool(self.last)

    def add(self, timestamps: Any, watermark: int, clock_ms: int, counts: Any = None) -> None:
        """Take late elements by their event times, or sums of several, each with its count."""
        times = np.asarray(timestamps, np.int64)
        if len(times) == 0:
            return
        self.behind.add(np.maximum(watermark - times, 0), counts)
        self.from_panes = self.from_panes or counts is not None
        for i in range(max(len(times) - _KEPT, 0), len(times)):
            self.last.append(LateOne(int(times[i]), watermark, clock_ms, 1 if counts is None else int(counts[i])))

    def take(self, other: Lateness) -> None:
        """Take all of another."""
        self.behind.merge(other.behind)
        self.from_panes = self.from_panes or other.from_panes
        self.last = deque(sorted([*self.last, *other.last], key=lambda one: one.clock), _KEPT)

    def snapshot(self) -> list[Any]:
        """All that must survive a restart, as JSON values."""
        return [self.behind.snapshot(), list(self.last), self.from_panes]

    @classmethod
    def of(cls, snapshot: list[Any]) -> Lateness:
        """The inverse of :meth:`snapshot`."""
        late = cls()
        behind, last, late.from_panes = snapshot
        late.behind = DurationHistogram.of(behind)
        late.last.extend(LateOne(*one) for one in last)
        return late
