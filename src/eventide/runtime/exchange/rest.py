"""The treatment of a split of which more could be read: what the planner of its source says to operators."""

from __future__ import annotations

from enum import StrEnum


class Rest(StrEnum):
    """The way in which the planner of a source treats a split that could be read further.

    A ``HELD`` split is too far ahead of others: its idleness clock stands still. A ``DONE`` split is not read again in
    this run, which ends with what was there at its start: no other split waits for it. ``NONE`` ends either state.
    """

    NONE = "none"
    HELD = "held"
    DONE = "done"
