"""What flows between stages: elements, watermarks, and the state of channels."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


@dataclass(slots=True)
class Elements:
    """Elements side by side with their event time, their key and their place in the order of arrival.

    ``timestamps`` are milliseconds since the epoch, None for an element without one. ``keys`` is empty on edges
    without a key. ``order`` is the index of each element in its split or task within the micro-batch: elements of
    several channels interleave by it, which makes the order of a batch the same on every replay.
    """

    values: list[Any] = field(default_factory=list)
    timestamps: list[int | None] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def place(self) -> int:
        """Where the first element stands in its split or task."""
        return self.order[0]

    def append(self, value: Any, timestamp: int | None, order: int) -> None:
        """Add one element without a key."""
        self.values.append(value)
        self.timestamps.append(timestamp)
        self.order.append(order)

    def rows(self) -> Iterator[tuple[Any, Any, int | None]]:
        """Each element as ``(key, value, timestamp)``; the key is None where there are no keys."""
        keys = self.keys or [None] * len(self.values)
        return zip(keys, self.values, self.timestamps, strict=True)


_UNCHANGING = (tuple, str, int, float, bytes, type(None))


def own(value: Any) -> Any:
    """A copy of an element that could be changed in place by one who has it; what cannot be changed is given as it is.

    >>> own((1, 2)), own([1, 2])
    ((1, 2), [1, 2])
    """
    return value if isinstance(value, _UNCHANGING) else copy.deepcopy(value)


def interleave(parts: list[Elements]) -> Elements:
    """Put elements of several channels into the one defined order: by place in their channel, then by channel."""
    if len(parts) == 1:
        return parts[0]
    places = [(order, channel, i) for channel, part in enumerate(parts) for i, order in enumerate(part.order)]
    places.sort()
    merged = Elements(
        [parts[c].values[i] for _, c, i in places],
        [parts[c].timestamps[i] for _, c, i in places],
        [order for order, _, _ in places],
    )
    if any(part.keys for part in parts):
        merged.keys = [parts[c].keys[i] for _, c, i in places]
    return merged


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
