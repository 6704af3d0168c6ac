"""The treatment of a split of which more could be read: what the planner of its source says to operators."""

from __future__ import annotations

from enum import StrEnum


class Rest(StrEnum):
    """How a split of which more could be read is treated by what plans its source.

    One that is ``HELD`` is too far ahead of others: its clock of idleness stands still. Of one that is ``DONE`` nothing
    more is read in this run, which ends with what was there at its start: no other waits for it. ``NONE`` says that it
    is neither any more.
    """

    NONE = "none"
    HELD = "held"
    DONE = "done"
