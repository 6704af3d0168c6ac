"""The two kinds of time that a timer can wait for."""

from enum import Enum

__all__ = ["TimeDomain"]


class TimeDomain(Enum):
    """Says which time has reached a timer: event time, or processing time."""

    EVENT_TIME = 0
    """The watermark has reached it."""

    PROCESSING_TIME = 1
    """The clock has reached it."""
