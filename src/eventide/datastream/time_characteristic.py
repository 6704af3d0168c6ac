"""The kind of time of a program whose windows do not name it themselves."""

from enum import Enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(Enum):
    """The kind of time that ``time_window`` and ``time_window_all`` follow.

    ProcessingTime is the time of the clock: that of the micro-batch in which an element is handled. IngestionTime is
    the time at which an element arrives from its source, which becomes its timestamp. EventTime is the timestamp from a
    timestamp assigner.
    """

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
