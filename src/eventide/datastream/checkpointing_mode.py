"""Guarantees for a job that continues after a failure."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """How often state may count an element after a failure; every eventide job has `EXACTLY_ONCE`."""

    EXACTLY_ONCE = 0
    """Exactly once."""

    AT_LEAST_ONCE = 1
    """At least once."""


hand_out_names(__name__)
