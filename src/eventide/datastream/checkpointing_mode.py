"""Guarantees for a job that goes on after a failure."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """How often an element may count in state after a failure; every eventide job has `EXACTLY_ONCE`."""

    EXACTLY_ONCE = 0
    """Once, whatever happens."""

    AT_LEAST_ONCE = 1
    """Once or more."""


hand_out_names(__name__)
