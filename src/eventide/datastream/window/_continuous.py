"""The trigger that fires again and again while its window is open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from eventide.common._ms import add_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.typeinfo import Types
from eventide.datastream.state import ReducingState, ReducingStateDescriptor
from eventide.datastream.window._triggers import Trigger, TriggerResult


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(Trigger[Any, Any]):
    """Fires whenever the watermark passes a multiple of an interval, and at the window's last millisecond.

    The first multiple is the one after a window's first element; a watermark that passes several fires for each.
    Below zero the first firing comes one interval later than one would think, as in Flink, whose remainder of a
    negative time is negative.

    Raises:
        ProgramError: The interval is not positive.

    >>> ContinuousEventTimeTrigger.of(Time.seconds(10))
    ContinuousEventTimeTrigger(interval=10000)
    """

    interval: int

    _FIRE_TIME: ClassVar[ReducingStateDescriptor] = ReducingStateDescriptor("fire-time", min, Types.LONG())

    def __post_init__(self) -> None:
        to_positive_ms(self.interval, "trigger interval")

    @staticmethod
    def of(interval: Duration | Time | int) -> ContinuousEventTimeTrigger:
        """Return a trigger that fires at every multiple of `interval`."""
        return ContinuousEventTimeTrigger(to_positive_ms(interval, "trigger interval"))

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire if the watermark has passed the window already; else wait for its end and the next multiple."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        fire_time: ReducingState[int] = ctx.get_partitioned_state(self._FIRE_TIME)
        if fire_time.get() is None:
            self._wait_from(timestamp - self._remainder(timestamp), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Do nothing."""
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the window's last millisecond, and at the multiple that was waited for."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time: ReducingState[int] = ctx.get_partitioned_state(self._FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self._wait_from(time, window, ctx)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        """True."""
        return True

    def on_merge(self, window: Any, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the earliest of the multiples that the merged windows waited for."""
        ctx.merge_partitioned_state(self._FIRE_TIME)
        fire_time = ctx.get_partitioned_state(self._FIRE_TIME).get()
        if fire_time is not None:
            ctx.register_event_time_timer(fire_time)

    def clear(self, window: Any, ctx: Trigger.TriggerContext) -> None:
        """Take both timers back and forget the multiple."""
        ctx.delete_event_time_timer(window.max_timestamp())
        fire_time: ReducingState[int] = ctx.get_partitioned_state(self._FIRE_TIME)
        pending = fire_time.get()
        if pending is not None:
            ctx.delete_event_time_timer(pending)
            fire_time.clear()

    def _wait_from(self, time: int, window: Any, ctx: Trigger.TriggerContext) -> None:
        following = min(add_ms(time, self.interval), window.max_timestamp())
        ctx.get_partitioned_state(self._FIRE_TIME).add(following)
        ctx.register_event_time_timer(following)

    def _remainder(self, timestamp: int) -> int:
        """Return the remainder as Java's ``%`` has it, with the sign of `timestamp`."""
        remainder = abs(timestamp) % self.interval
        return remainder if timestamp >= 0 else -remainder
