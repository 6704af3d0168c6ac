"""What flows between stages: elements, watermarks, and the state of channels."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eventide.common.types import Row

if TYPE_CHECKING:
    from eventide.runtime.columns import Columns


@dataclass(slots=True)
class Elements:
    """Elements side by side with their event time, their key and their place in the order of arrival.

    ``timestamps`` are milliseconds since the epoch, None for an element without one. ``keys`` is empty on edges
    without a key. ``order`` is the index of each element in its split or task within the micro-batch: elements of
    several channels interleave by it, which makes the order of a batch the same on every replay.

    ``columns`` is the same in Arrow form, without keys, where elements came so and nobody changed them: their values
    have the declared type for certain, and need not be turned into columns once more.
    """

    values: list[Any] = field(default_factory=list)
    timestamps: list[int | None] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    columns: Columns | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def place(self) -> int:
        """Where the first element stands in its split or task."""
        return self.order[0]

    def at(self, places: Sequence[int]) -> Elements:
        """Those at some indices, in the order of the indices."""
        return Elements(
            [self.values[i] for i in places],
            [self.timestamps[i] for i in places],
            [self.order[i] for i in places],
            [self.keys[i] for i in places] if self.keys else [],
        )

    def cut(self, begin: int, round_: int) -> tuple[Elements | None, int | None]:
        """What stands from an index on up to a place, and the index of the rest (None: there is none)."""
        end = bisect_right(self.order, round_, begin)
        rest = None if end == len(self) else end
        if begin == 0 and rest is None:
            return self, None
        span = slice(begin, end)
        part = Elements(self.values[span], self.timestamps[span], self.order[span], self.keys[span])
        return part or None, rest

    def shifted(self, by: int) -> Elements:
        """The same, so many places further back."""
        return Elements(self.values, self.timestamps, [place + by for place in self.order], self.keys)

    def append(self, value: Any, timestamp: int | None, order: int) -> None:
        """Add one element without a key."""
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.order.append(order)

    def extend(self, values: Sequence[Any], timestamp: int) -> None:
        """Add elements of one timestamp without keys, each at its place in this."""
        self.order += range(len(self.values), len(self.values) + len(values))
        self.timestamps += [timestamp] * len(values)
        self.values += values

    def rows(self) -> Iterator[tuple[Any, Any, int | None]]:
        """Each element as ``(key, value, timestamp)``; the key is None where there are no keys."""
        keys = self.keys or [None] * len(self.values)
        return zip(keys, self.values, self.timestamps, strict=True)


_UNCHANGING = (tuple, str, int, float, bytes, type(None))
_FLAT = (Row, dict, list)
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
"""What most elements are made of: then a flat copy, which takes a fraction of the time, is as good as a deep one."""


def own(value: Any) -> Any:
    """A copy of an element that could be changed in place by one who has it; what cannot be changed is given as it is.

    >>> own((1, 2)), own([1, 2])
    ((1, 2), [1, 2])
    """
    if isinstance(value, _UNCHANGING):
        return value
    parts = value.values() if type(value) is dict else value
    if type(value) in _FLAT and _PLAIN.issuperset(map(type, parts)):
        return copy.copy(value)
    return copy.deepcopy(value)


def interleave(parts: Sequence[Elements]) -> Elements:
    """Put elements of several channels into the one defined order: by place in their channel, then by channel."""
    if len(parts) == 1:
        return parts[0]
    together = Elements()
    for part in parts:
        together.values += part.values
        together.timestamps += part.timestamps
        together.order += part.order
        together.keys += part.keys
    places = np.array(together.order, np.int64)
    if bool((places[1:] >= places[:-1]).all()):
        return together
    return together.at(np.argsort(places, kind="stable").tolist())


START_OF_BATCH = -1
"""The round before the first element of a micro-batch."""

END_OF_BATCH = 1 << 30
"""The round behind the last element of a micro-batch."""

END_OF_INPUT = (1 << 31) - 1
"""The round in which the input as a whole ends."""

BY_PLACE = -2
"""Stands for a round where each element has its own: its place in its channel."""


class Report(NamedTuple):
    """What a channel, a split or a subtask, says of event time behind one place of a micro-batch.

    ``round`` is the place: behind the element of that number, or one of the constants of this module. ``watermark`` is
    in milliseconds (None: no statement). ``idle`` says that the channel has nothing to say for now (True), or counts
    again (False). ``spoke`` tells whether it had elements in this micro-batch. ``ended`` says that nothing will ever
    follow.
    """

    channel: str
    round: int = END_OF_BATCH
    watermark: int | None = None
    idle: bool | None = None
    spoke: bool = False
    ended: bool = False

    @property
    def says_something(self) -> bool:
        """Whether anyone has to hear of it."""
        return self.watermark is not None or self.idle is not None or self.spoke or self.ended


class Signal(IntEnum):
    """What a frame carries."""

    ELEMENTS = 0
    REPORTS = 1
    END_OF_SOURCE = 2
    METRICS = 3
