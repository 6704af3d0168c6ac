"""Timers as functions see them: the two kinds of time, and the services that set and delete timers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = [
    "TimeDomain",
    "TimerService",
    "VectorizedTimerService",
]


class TimeDomain(Enum):
    """The kind of time that has reached a timer: event time or processing time."""

    EVENT_TIME = 0
    """The watermark has reached the timer."""

    PROCESSING_TIME = 1
    """The clock has reached the timer."""


class TimerService(ABC):
    """The times that an operator knows, and the timers of the current key.

    A key has at most one timer of a kind for a time: setting it again changes nothing. A timer that is set for a time
    in the past fires with the next progress of that kind of time. Timers are part of the checkpoint.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time, in milliseconds: the time of the micro-batch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's watermark, in milliseconds; -2**63 before the first."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for this key when the clock reaches a time, in milliseconds."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for this key when the watermark reaches a time, in milliseconds."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer; no effect if it is not set."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer; no effect if it is not set."""


class VectorizedTimerService(ABC):
    """The times that an operator knows, and the timers of many keys. Flink: ``TimerService``.

    Each method that sets or deletes timers takes keys of the call, and a time in milliseconds for each of them, or one
    for all. A key has at most one timer of a kind for a time: setting it again changes nothing.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time, in milliseconds: the time of the micro-batch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's watermark, in milliseconds; -2**63 before the first."""

    @abstractmethod
    def register_event_time_timers(self, keys: pa.Array, timestamps: pa.Array | np.ndarray | int) -> None:
        """Call `on_timers` for keys when the watermark reaches a time."""

    @abstractmethod
    def register_processing_time_timers(self, keys: pa.Array, timestamps: pa.Array | np.ndarray | int) -> None:
        """Call `on_timers` for keys when the clock reaches a time."""

    @abstractmethod
    def delete_event_time_timers(self, keys: pa.Array, timestamps: pa.Array | np.ndarray | int) -> None:
        """Delete event-time timers; no effect for those that are not set."""

    @abstractmethod
    def delete_processing_time_timers(self, keys: pa.Array, timestamps: pa.Array | np.ndarray | int) -> None:
        """Delete processing-time timers; no effect for those that are not set."""
