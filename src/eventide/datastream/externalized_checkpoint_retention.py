"""Retention of a checkpoint whose job is cancelled."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether a checkpoint is kept when its job is cancelled; one in a directory of the program is always kept."""

    DELETE_ON_CANCELLATION = 0
    """The checkpoint is deleted."""

    RETAIN_ON_CANCELLATION = 1
    """The checkpoint is kept."""

    NO_EXTERNALIZED_CHECKPOINTS = 2
    """The job has no checkpoint that outlives it."""


hand_out_names(__name__)
