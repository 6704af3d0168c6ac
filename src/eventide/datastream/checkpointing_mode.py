"""What a program is promised when a job goes on after a failure."""

from enum import Enum

__all__ = ["CheckpointingMode"]


class CheckpointingMode(Enum):
    """How often an element may count in state behind a failure; every job of eventide's has `EXACTLY_ONCE`."""

    EXACTLY_ONCE = 0
    """Once, whatever happens."""

    AT_LEAST_ONCE = 1
    """Once or more."""
