"""Retention of a checkpoint whose job is cancelled."""

from enum import Enum

from eventide._absent import hand_out_names

__all__ = ["ExternalizedCheckpointRetention"]


class ExternalizedCheckpointRetention(Enum):
    """Whether a checkpoint stays when its job is cancelled; one that a program gave a place always stays."""

    DELETE_ON_CANCELLATION = 0
    """It is deleted."""

    RETAIN_ON_CANCELLATION = 1
    """It stays."""

    NO_EXTERNALIZED_CHECKPOINTS = 2
    """There is none outside of the job."""


hand_out_names(__name__)
