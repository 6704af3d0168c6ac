"""Which kind of time a program works with, where its windows do not say so themselves."""

from enum import Enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(Enum):
    """The kind of time that ``time_window`` and ``time_window_all`` follow.

    ProcessingTime is the clock's: the time of the micro-batch in which an element is handled. IngestionTime is the
    time at which an element comes in from its source, which then is its timestamp. EventTime is what a timestamp
    assigner says.
    """

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
