"""Contexts of process functions without keys: their view of the task that calls them."""

from __future__ import annotations

from eventide.api.functions import CoProcessFunction, ProcessFunction
from eventide.api.functions.timer_service import TimerService
from eventide.common.ms import MIN_MS
from eventide.errors import ProgramError


class Moment:
    """Where an operator stands, in milliseconds."""

    __slots__ = ("processing_time", "watermark")

    def __init__(self, watermark: int = MIN_MS, processing_time: int = MIN_MS) -> None:
        self.watermark = watermark
        self.processing_time = processing_time


class Times(TimerService):
    """The times of an operator or task; there are no timers without keys."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    def current_processing_time(self) -> int:
        """The time of the micro-batch."""
        return self._moment.processing_time

    def current_watermark(self) -> int:
        """The operator's watermark."""
        return self._moment.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()

    def register_event_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Refused."""
        raise _no_timers()


class ElementContext(ProcessFunction.Context, CoProcessFunction.Context):
    """The operator or task as a function without keys sees it; ``time_ms`` is the time of the element at hand."""

    def __init__(self, moment: Moment) -> None:
        self.time_ms: int | None = None
        self._timers: TimerService = Times(moment)

    def timer_service(self) -> TimerService:
        """The times that the operator knows."""
        return self._timers

    def timestamp(self) -> int | None:
        """The time of the element or timer at hand."""
        return self.time_ms


def _no_timers() -> ProgramError:
    return ProgramError("timers belong to a key, and this stream has none; call key_by(...) before process(...)")
