"""Triggers, which decide when a window fires: the base class, and the triggers of Flink."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Generic, Self

from eventide._absent import says_what_is_absent
from eventide.api.state import ReducingState, ReducingStateDescriptor, StateDescriptor
from eventide.common.ms import add_ms, to_positive_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import S, T_contra, W_contra
from eventide.common.typeinfo import Types
from eventide.common.windows import Window
from eventide.errors import ProgramError


class TriggerResult(Enum):
    """Decision of a trigger about a window: FIRE calls the window function, PURGE empties the window, in this order."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Say whether the window function is called."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Say whether the elements of the window are dropped."""
        return self.value[1]


class Trigger(ABC, Generic[T_contra, W_contra]):
    """Decides when the window of a key fires.

    One object serves all keys and windows, so a trigger keeps nothing in itself: its memory goes into the
    state of its context, which belongs to one key and window. A trigger pickles. With windows that merge,
    `can_merge` must be true and `on_merge` must carry state and timers over.
    """

    @says_what_is_absent
    class TriggerContext(ABC):
        """Timers and state of one key and window. All times are milliseconds since the epoch (UTC)."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the time of the current micro-batch."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the current watermark of the operator; the smallest 64-bit integer before the first."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `Trigger.on_processing_time` once the processing time has reached `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `Trigger.on_event_time` once the watermark has reached `time`, however often it is registered."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Delete a processing-time timer; no effect if it is not set."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Delete an event-time timer; no effect if it is not set."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor[S]) -> S:
            """Return the state that `state_descriptor` describes, of this key and window."""

    class OnMergeContext(TriggerContext):
        """The context of `Trigger.on_merge`, for the merged window, which can take over older state."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Move the state of all windows that were merged into that of the merged window."""

    @abstractmethod
    def on_element(
        self, element: T_contra, timestamp: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        """Decide after `element`, with its `timestamp` in milliseconds, was added to `window`."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W_contra, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide when a processing-time timer that was set for `time` is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W_contra, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Decide when an event-time timer that was set for `time` is due; the watermark is the new one already."""

    def can_merge(self) -> bool:
        """Say whether the trigger works with windows that merge."""
        return False

    def on_merge(self, window: W_contra, ctx: Trigger.OnMergeContext) -> None:
        """Carry state and timers over to `window`, which several windows have become.

        Raises:
            ProgramError: This trigger cannot merge.
        """
        raise ProgramError(f"{type(self).__name__} cannot be used with windows that merge")

    @abstractmethod
    def clear(self, window: W_contra, ctx: Trigger.TriggerContext) -> None:
        """Delete all state and timers of `window`, which was closed, or merged into another."""


class _BuiltInTrigger(Trigger[object, Window]):
    """A trigger for any elements and windows that does not fire by itself."""

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE


@dataclass(frozen=True)
class EventTimeTrigger(_BuiltInTrigger):
    """Fires when the watermark reaches the window's last millisecond, and then with each late element.

    The default of event-time windows.
    """

    @staticmethod
    def create() -> EventTimeTrigger:
        """Return the trigger."""
        return EventTimeTrigger()

    def on_element(self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire if the watermark has passed the window already; else wait for it."""
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the window's last millisecond."""
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the merged window, unless the watermark has passed it."""
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


@dataclass(frozen=True)
class ProcessingTimeTrigger(_BuiltInTrigger):
    """Fires when the clock, which is the time of the micro-batch, reaches the window's last millisecond.

    The default of processing-time windows.
    """

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """Return the trigger."""
        return ProcessingTimeTrigger()

    def on_element(self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Wait for the end of the window."""
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the end of the merged window, unless the clock has reached it."""
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


COUNT: ReducingStateDescriptor[int] = ReducingStateDescriptor("count", operator.add, Types.LONG())
"""The state in which a `CountTrigger` counts the elements of a key and window."""


@dataclass(frozen=True)
class CountTrigger(_BuiltInTrigger):
    """Fires each time a number of elements has arrived. The elements stay: see `PurgingTrigger`.

    Raises:
        ProgramError: The count is not a positive integer.

    >>> CountTrigger.of(0)
    Traceback (most recent call last):
    eventide.errors.ProgramError: count trigger: expected a positive int, got 0
    """

    window_size: int

    def __post_init__(self) -> None:
        check_count(self.window_size, "count trigger")

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Return a trigger that fires with every `window_size` elements of a key and window."""
        return CountTrigger(window_size)

    def on_element(self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Count the element; fire and start over when there are enough."""
        count = ctx.get_partitioned_state(COUNT)
        count.add(1)
        if (count.get() or 0) < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Add the counts up; the next element decides."""
        ctx.merge_partitioned_state(COUNT)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(COUNT).clear()


@dataclass(frozen=True)
class PurgingTrigger(Trigger[T_contra, W_contra]):
    """Does what another trigger does, and empties the window with every firing.

    Raises:
        ProgramError: The argument is not a trigger.
    """

    nested_trigger: Trigger[T_contra, W_contra]

    def __post_init__(self) -> None:
        if not isinstance(self.nested_trigger, Trigger):
            raise ProgramError(f"purging trigger: expected a Trigger, got {self.nested_trigger!r}")

    @staticmethod
    def of(nested_trigger: Trigger[T_contra, W_contra]) -> PurgingTrigger[T_contra, W_contra]:
        """Return the purging version of `nested_trigger`."""
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: T_contra, timestamp: int, window: W_contra, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: W_contra, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: W_contra, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: W_contra, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: W_contra, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)


def unpurged(trigger: Trigger[T_contra, W_contra]) -> Trigger[T_contra, W_contra]:
    """Return the trigger that is in a `PurgingTrigger`, or in several; else the trigger itself.

    >>> unpurged(PurgingTrigger.of(EventTimeTrigger()))
    EventTimeTrigger()
    """
    while type(trigger) is PurgingTrigger:
        trigger = trigger.nested_trigger
    return trigger


@dataclass(frozen=True)
class NeverTrigger(_BuiltInTrigger):
    """Never fires. The default of `GlobalWindows`."""

    def on_element(self, element: object, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Do nothing: there is no state."""


def check_count(count: object, what: str) -> None:
    """Raise a `ProgramError` where a number of elements is not a positive integer."""
    if type(count) is not int or count <= 0:
        raise ProgramError(f"{what}: expected a positive int, got {count!r}")


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


@dataclass(frozen=True)
class _ContinuousTrigger(_BuiltInTrigger):
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
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        """Wait for the earliest of the multiples that the merged windows waited for."""
        ctx.merge_partitioned_state(self._FIRE_TIME)
        fire_time = self._fire_time(ctx).get()
        if fire_time is not None:
            self._register(fire_time, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete the timer and forget the multiple."""
        fire_time = self._fire_time(ctx)
        pending = fire_time.get()
        if pending is not None:
            self._delete(pending, ctx)
            fire_time.clear()

    def _wait_for_next(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> None:
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
        # The last millisecond has no successor: waiting for it again would fire for ever.
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
        """Delete a timer of the trigger's kind of time."""


@says_what_is_absent
class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires whenever the watermark passes a multiple of an interval, and at the window's last millisecond.

    The first multiple is the one after a window's first element; a watermark that passes several fires for each. Below
    zero the first firing comes one interval later than expected, as in Flink, whose remainder of a negative time is
    negative.

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
        self._wait_for_next(timestamp, window, ctx)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the window's last millisecond, and at the multiple that was waited for."""
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        return self._on_time(time, window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Delete both timers and forget the multiple."""
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
        self._wait_for_next(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Fire at the multiple that was waited for."""
        return self._on_time(time, window, ctx)

    def _register(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.register_processing_time_timer(time)

    def _delete(self, time: int, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(time)
