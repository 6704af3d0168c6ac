"""The triggers that fire again and again while their window is open, in event time and in processing time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from eventide._absent import says_what_is_absent
from eventide.api.state import ReducingState, ReducingStateDescriptor
from eventide.api.windows.triggers import Trigger, TriggerResult
from eventide.common.ms import add_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.time_window import Window
from eventide.common.typeinfo import Types


@dataclass(frozen=True)
class _ContinuousTrigger(Trigger[object, Window]):
    """The shared part of triggers of both kinds of time: the multiple of the interval that a window waits for."""

    interval: int

    _FIRE_TIME: ClassVar[ReducingStateDescriptor[int]] = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def __post_init__(self) -> None:
        to_positive_ms(self.interval, "trigger interval")

    @classmethod
    def of(cls, interval: Duration | Time | int) -> Self:
        """Return a trigger that fires at every multiple of `interval`."""
        return cls(to_positive_ms(interval, "trigger interval"))

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the earliest of the multiples that the merged windows waited for."""
        ctx.merge_partitioned_state(self._FIRE_TIME)
        fire_time = self._fire_time(ctx).get()
        if fire_time is not None:
            self._register(fire_time, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Take the timer back and forget the multiple."""
        fire_time = self._fire_time(ctx)
        pending = fire_time.get()
        if pending is not None:
            self._delete(pending, ctx)
            fire_time.clear()

    def _wait_behind(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Wait for the next multiple after a time, unless a multiple is waited for already."""
        if self._fire_time(ctx).get() is None:
            # The remainder is that of Java's %, which has the sign of the time.
            remainder = abs(time) % self.interval
            self._wait_from(time - remainder if time >= 0 else time + remainder, window, ctx)

    def _on_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the multiple that was waited for, and wait for the next one, if there is one in the window."""
        fire_time = self._fire_time(ctx)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        # Nothing is after the last millisecond: to wait for that one again would be to fire for ever.
        if time < window.max_timestamp():
            self._wait_from(time, window, ctx)
        return TriggerResult.FIRE

    def _wait_from(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> None:
        following = min(add_ms(time, self.interval), window.max_timestamp())
        self._fire_time(ctx).add(following)
        self._register(following, ctx)

    def _fire_time(self, ctx: Trigger.TriggerContext) -> ReducingState[int]:
        return ctx.get_partitioned_state(self._FIRE_TIME)

    @abstractmethod
    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Set a timer of the trigger's kind of time."""

    @abstractmethod
    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        """Take a timer back."""


@says_what_is_absent
class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires whenever the watermark passes a multiple of an interval, and at the window's last millisecond.

    The first multiple is the one after a window's first element; a watermark that passes several fires for each.
    Below zero the first firing comes one interval later than one would think, as in Flink, whose remainder of a
    negative time is negative.

    Raises:
        ProgramError: The interval is not positive.

    >>> ContinuousEventTimeTrigger.of(Time.seconds(10))
    ContinuousEventTimeTrigger(interval=10000)
    """

    def on_element(self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire if the watermark has passed the window already; else wait for its end and the next multiple."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self._wait_behind(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the window's last millisecond, and at the multiple that was waited for."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        return self._on_time(time, window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Take both timers back and forget the multiple."""
        ctx.delete_event_time_timer(window.max_timestamp())
        super().clear(window, ctx)

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_event_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(time)


@says_what_is_absent
class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires whenever the clock passes a multiple of an interval, and when it reaches the window's last millisecond.

    The first multiple is the one after the micro-batch of a window's first element; a clock that passes several between
    two micro-batches fires for each. A window of event time may lie in the clock's past: it fires once at the end of
    each micro-batch that brings it elements.

    Raises:
        ProgramError: The interval is not positive.

    >>> ContinuousProcessingTimeTrigger.of(Time.seconds(10))
    ContinuousProcessingTimeTrigger(interval=10000)
    """

    def on_element(self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the next multiple, unless one is waited for already."""
        self._wait_behind(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the multiple that was waited for."""
        return self._on_time(time, window, ctx)

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)
