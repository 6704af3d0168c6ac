"""Elements as Python objects, side by side with their time and key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from eventide.common.ms import MIN_MS

if TYPE_CHECKING:
    from eventide.runtime.elements.columns import Columns


Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""Integers, one for each of some elements."""


@dataclass(slots=True)
class Elements:
    """Elements side by side with their event time, their key and their number in the order of arrival.

    ``timestamps`` are milliseconds since the epoch, None for an element without one. ``keys`` is empty on edges
    without a key. ``sequence`` is the index of each element in its split or task within the micro-batch: elements of
    several channels interleave by it, which makes the order of a batch the same on every replay.

    ``columns`` is the same in Arrow form, without keys, where elements came so and were not changed: their values
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
        """Return the elements at some indices, in the order of the indices."""
        return Elements(
            list(map(self.values.__getitem__, indices)),
            list(map(self.timestamps.__getitem__, indices)),
            list(map(self.sequence.__getitem__, indices)),
            list(map(self.keys.__getitem__, indices)) if self.keys else [],
        )

    def cut(self, begin: int, point: int) -> tuple[Elements | None, int | None]:
        """Return the elements from an index on up to a point, and the index of the rest (None: there is none)."""
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
        """Return a copy whose sequence numbers are shifted by `by`."""
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
    """Give the elements of all inputs so that those of each key come in the order of their timestamps.

    Batch execution hands them to operators with keys so. Elements without a timestamp come first; those of one time
    stay in their order, by input. Each input is given in few parts: first those of each key that come before its first
    change from one input to another, then those up to its second change, and so on.

    Args:
        inputs: for each input, by number, its elements, of one or several channels.

    Yields:
        the number of an input, and some of its elements, in the order of their timestamps.

    >>> one = Elements(["a9", "a3", "b7"], [9, 3, 7], [0, 1, 2], ["a", "a", "b"])
    >>> other = Elements(["a5"], [5], [0], ["a"])
    >>> [(number, elements.values) for number, elements in in_time_order({0: [one], 1: [other]})]
    [(0, ['a3', 'b7']), (1, ['a5']), (0, ['a9'])]
    """
    joined, together = {number: interleave(parts) for number, parts in inputs.items()}, Elements()
    for elements in joined.values():
        together.extend(elements)
    times = np.array([MIN_MS if timestamp is None else timestamp for timestamp in together.timestamps], np.int64)
    order = np.argsort(times, kind="stable")
    if len(joined) == 1:
        yield from ((number, together.at(order.tolist())) for number in joined)
    elif together:
        input_of = np.repeat([*joined], [*map(len, joined.values())])
        turn_of = _turns(together.keys, input_of, order)
        order = order[np.lexsort((input_of[order], turn_of[order]))]
        in_order, input_of, turn_of = together.at(order.tolist()), input_of[order], turn_of[order]
        changes = np.flatnonzero(np.diff(input_of) | np.diff(turn_of)) + 1
        for begin, end in pairwise([0, *changes.tolist(), len(together)]):
            yield int(input_of[begin]), in_order.between(begin, end)


def _turns(keys: Sequence[Any], input_of: Numbers, order: Numbers) -> Numbers:
    """For each element, how often its key has changed from one input to another before it, in an order."""
    numbers: dict[Any, int] = {}
    key_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    by_key = order[np.argsort(key_of[order], kind="stable")]
    is_first = np.diff(key_of[by_key], prepend=-1) != 0
    changes = np.cumsum((np.diff(input_of[by_key], prepend=0) != 0) & ~is_first)
    turns = np.empty(len(keys), np.int64)
    turns[by_key] = changes - changes[is_first][np.cumsum(is_first) - 1]
    return turns
