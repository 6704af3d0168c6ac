"""Reports of channels on event time, and the points of a micro-batch after which they hold."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

START_OF_BATCH = -1
"""The point before the first element of a micro-batch."""

END_OF_BATCH = 1 << 30
"""The point after the last element of a micro-batch."""

END_OF_INPUT = (1 << 31) - 1
"""The point at which the input as a whole ends."""

BY_ELEMENT = -2
"""Stands for a point where each element has its own: its number in its channel."""


class Rest(StrEnum):
    """How a split of which more could be read is treated by what plans its source.

    One that is ``HELD`` is too far ahead of others: its clock of idleness stands still. Of one that is ``DONE`` nothing
    more is read in this run, which ends with what was there at its start: no other waits for it. ``NONE`` says that it
    is neither any more.
    """

    NONE = "none"
    HELD = "held"
    DONE = "done"


class WatermarkReport(NamedTuple):
    """Report of a channel, a split or a subtask, on event time after one point of a micro-batch.

    ``point`` is where: after the element of that number, or one of the constants of this module. ``watermark`` is
    in milliseconds (None: no statement). ``idle`` says that the channel has nothing to say for now (True), or counts
    again (False). ``spoke`` tells whether it had elements in this micro-batch. ``ended`` says that nothing will ever
    follow. ``joined`` says that it is new, and holds the watermark from now on. ``rest`` is one of `Rest`, where that
    has changed.
    """

    channel: str
    point: int = END_OF_BATCH
    watermark: int | None = None
    idle: bool | None = None
    spoke: bool = False
    ended: bool = False
    joined: bool = False
    rest: str | None = None

    @property
    def says_something(self) -> bool:
        """Whether anyone has to hear of it."""
        says = self.watermark is not None or self.idle is not None or self.rest is not None
        return says or self.spoke or self.ended or self.joined
