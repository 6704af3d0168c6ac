"""What channels say of event time, and the points of a micro-batch behind which they say it."""

from __future__ import annotations

from typing import NamedTuple

START_OF_BATCH = -1
"""The point before the first element of a micro-batch."""

END_OF_BATCH = 1 << 30
"""The point behind the last element of a micro-batch."""

END_OF_INPUT = (1 << 31) - 1
"""The point at which the input as a whole ends."""

BY_ELEMENT = -2
"""Stands for a point where each element has its own: its number in its channel."""


class Report(NamedTuple):
    """What a channel, a split or a subtask, says of event time behind one point of a micro-batch.

    ``point`` is where: behind the element of that number, or one of the constants of this module. ``watermark`` is
    in milliseconds (None: no statement). ``idle`` says that the channel has nothing to say for now (True), or counts
    again (False). ``spoke`` tells whether it had elements in this micro-batch. ``ended`` says that nothing will ever
    follow.
    """

    channel: str
    point: int = END_OF_BATCH
    watermark: int | None = None
    idle: bool | None = None
    spoke: bool = False
    ended: bool = False
    joined: bool = False

    @property
    def says_something(self) -> bool:
        """Whether anyone has to hear of it."""
        return self.watermark is not None or self.idle is not None or self.spoke or self.ended or self.joined
