"""The two kinds of time that windows can follow: where an element's time comes from, and what fires its windows."""

from __future__ import annotations

from typing import ClassVar, Protocol

from eventide.api.windows._assigners import WindowAssigner
from eventide.api.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger, Trigger
from eventide.common.ms import MIN_MS
from eventide.common.time_window import TimeWindow, Window
from eventide.common.type_variables import T_contra
from eventide.errors import DataError


class KindOfTime(Protocol):
    """Kind of time that windows follow."""

    @property
    def is_event_time(self) -> bool:
        """Whether watermarks close the windows."""

    def time_of(self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """The time at which an element is, in milliseconds since the epoch (UTC)."""

    def default_trigger(self) -> Trigger[object, Window]:
        """The trigger that fires a window when the time has reached its last millisecond."""


class _EventTime:
    is_event_time = True

    def time_of(self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        if timestamp is None or timestamp == MIN_MS:
            message = (
                f"element {element!r} has no timestamp, but its windows follow event time: give the source or the "
                "stream a WatermarkStrategy with a timestamp assigner"
            )
            raise DataError(message)
        return timestamp

    def default_trigger(self) -> Trigger[object, Window]:
        return EventTimeTrigger()


class _ProcessingTime:
    is_event_time = False

    def time_of(self, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return context.get_current_processing_time()

    def default_trigger(self) -> Trigger[object, Window]:
        return ProcessingTimeTrigger()


EVENT_TIME: KindOfTime = _EventTime()
"""The time that elements carry."""

PROCESSING_TIME: KindOfTime = _ProcessingTime()
"""The time at which elements are handled: that of their micro-batch."""


class InTime(WindowAssigner[T_contra, TimeWindow]):
    """Windows of time, of the kind that the class names."""

    _TIME: ClassVar[KindOfTime]

    @property
    def has_time_windows(self) -> bool:
        """True."""
        return True

    def get_default_trigger(self, env: object = None) -> Trigger[T_contra, TimeWindow]:
        """Return an `EventTimeTrigger` or a `ProcessingTimeTrigger`, as the windows are."""
        return self._TIME.default_trigger()

    def is_event_time(self) -> bool:
        """Say whether the windows follow event time; otherwise they follow processing time."""
        return self._TIME.is_event_time
