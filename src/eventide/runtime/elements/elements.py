"""Elements as Python objects, side by side with their time and key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.common._ms import MIN_MS

if TYPE_CHECKING:
    from eventide.runtime.elements.columns import Columns


@dataclass(slots=True)
class Elements:
    """Elements side by side with their event time, their key and their number in the order of arrival.

    ``timestamps`` are milliseconds since the epoch, None for an element without one. ``keys`` is empty on edges
    without a key. ``sequence`` is the index of each element in its split or task within the micro-batch: elements of
    several channels interleave by it, which makes the order of a batch the same on every replay.

    ``columns`` is the same in Arrow form, without keys, where elements came so and nobody changed them: their values
    have the declared type for certain, and need not be turned into columns once more.
    """

    values: list[Any] = field(default_factory=list)
    timestamps: list[int | None] = field(default_factory=list)
    sequence: list[int] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    columns: Columns | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def first(self) -> int:
        """Where the first element stands in its split or task."""
        return self.sequence[0]

    def at(self, indices: Sequence[int]) -> Elements:
        """Those at some indices, in the order of the indices."""
        return Elements(
            list(map(self.values.__getitem__, indices)),
            list(map(self.timestamps.__getitem__, indices)),
            list(map(self.sequence.__getitem__, indices)),
            list(map(self.keys.__getitem__, indices)) if self.keys else [],
        )

    def cut(self, begin: int, point: int) -> tuple[Elements | None, int | None]:
        """What stands from an index on up to a point, and the index of the rest (None: there is none)."""
        end = bisect_right(self.sequence, point, begin)
        rest = None if end == len(self) else end
        if begin == 0 and rest is None:
            return self, None
        return self.between(begin, end) or None, rest

    def between(self, begin: int, end: int) -> Elements:
        """The elements from one index up to another, which is exclusive."""
        span = slice(begin, end)
        return Elements(self.values[span], self.timestamps[span], self.sequence[span], self.keys[span])

    def extend(self, others: Elements) -> None:
        """Put other elements at the end."""
        self.values += others.values
        self.timestamps += others.timestamps
        self.sequence += others.sequence
        self.keys += others.keys

    def shifted(self, by: int) -> Elements:
        """The same, so many indices further back."""
        return Elements(self.values, self.timestamps, [number + by for number in self.sequence], self.keys)

    def append(self, value: Any, timestamp: int | None, sequence: int) -> None:
        """Add one element without a key."""
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.sequence.append(sequence)

    def shorten(self, count: int) -> None:
        """Forget all but the first of elements without keys, also what was not yet added in full."""
        del self.values[count:], self.timestamps[count:], self.sequence[count:]

    def rows(self) -> Iterator[tuple[Any, Any, int | None]]:
        """Each element as ``(key, value, timestamp)``; the key is None where there are no keys."""
        keys = self.keys or [None] * len(self.values)
        return zip(keys, self.values, self.timestamps, strict=True)


def interleave(parts: Sequence[Elements]) -> Elements:
    """Put elements of several channels into the one defined order: by number in their channel, then by channel."""
    if len(parts) == 1:
        return parts[0]
    together = Elements()
    for part in parts:
        together.extend(part)
    indices = np.array(together.sequence, np.int64)
    if bool((indices[1:] >= indices[:-1]).all()):
        return together
    return together.at(np.argsort(indices, kind="stable").tolist())


def in_time_order(inputs: Mapping[int, list[Elements]]) -> Iterator[tuple[int, Elements]]:
    """Give the elements of all inputs in one order of timestamps, as batch execution hands them to operators with keys.

    Elements without a timestamp come first; those of one time stay in their order, by input.

    Args:
        inputs: for each input, by number, its elements, of one or several channels.

    Yields:
        the number of an input, and those of its elements that come before the next of another input.

    >>> one, other = Elements(["a", "c"], [7, 3], [0, 1]), Elements(["b"], [5], [0])
    >>> [(number, elements.values) for number, elements in in_time_order({0: [one], 1: [other]})]
    [(0, ['c']), (1, ['b']), (0, ['a'])]
    """
    joined, together = {number: interleave(parts) for number, parts in inputs.items()}, Elements()
    for elements in joined.values():
        together.extend(elements)
    if not together:
        return
    times = np.array([MIN_MS if timestamp is None else timestamp for timestamp in together.timestamps], np.int64)
    order = np.argsort(times, kind="stable")
    input_of = np.repeat([*joined], [*map(len, joined.values())])[order]
    in_order = together.at(order.tolist())
    begins = [0, *(np.flatnonzero(np.diff(input_of)) + 1).tolist(), len(together)]
    for begin, end in pairwise(begins):
        yield int(input_of[begin]), in_order if len(begins) == 2 else in_order.between(begin, end)
