"""What flows between stages: elements, watermarks, and the state of channels."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What a split says at the end of its part of a micro-batch.

    ``watermark`` is the candidate of its generator in milliseconds (None: no statement), ``idle`` that it has
    nothing to say for now, ``ended`` that it never will again.
    """

    watermark: int | None = None
    idle: bool = False
    ended: bool = False


class Signal(IntEnum):
    """What a frame carries; within a round, the signals of a channel take effect in this order."""

    ELEMENTS = 0
    SPLIT_REPORT = 1
    ACTIVE = 2
    WATERMARK = 3
    IDLE = 4
    END_OF_SOURCE = 5
    METRICS = 6
