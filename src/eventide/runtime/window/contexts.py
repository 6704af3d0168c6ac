"""Contexts of triggers, evictors, assigners and window functions: their view of the operator that calls them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from eventide.api.functions import KeyedStateStore, ProcessAllWindowFunction
from eventide.api.state import StateDescriptor
from eventide.api.windows import Evictor, Trigger, Window, WindowAssigner
from eventide.common.ms import MIN_MS, whole_ms
from eventide.errors import ProgramError
from eventide.runtime.state.key_context import KeyContext, handles_under
from eventide.runtime.state.keyed import KeyedState

TRIGGER_STATE = "trigger:"
WINDOW_STATE = "window:"
ASSIGNER_STATE = "assigner:"


class WindowMoment:
    """Where the operator stands: the key and window at hand, the watermark, and the time of the micro-batch."""

    def __init__(self) -> None:
        self.key: Any = None
        self.window: Any = None
        self.merged: Sequence[Window] = ()
        self.watermark = MIN_MS
        self.processing_time = MIN_MS

    def window_scope(self) -> tuple[Any, Hashable]:
        """The key and window at hand: where the state of one window lives."""
        return self.key, self.window

    def key_scope(self) -> tuple[Any, Hashable]:
        """The key at hand: where the state of a key as a whole lives."""
        return self.key, None


class TriggerView(Trigger.OnMergeContext):
    """The operator as a trigger sees it; Flink's ``TriggerContext`` and ``OnMergeContext``."""

    def __init__(self, moment: WindowMoment, keyed: KeyedState) -> None:
        self._moment = moment
        self._timers = keyed
        self._states = handles_under(keyed, TRIGGER_STATE, moment.window_scope)

    def get_current_processing_time(self) -> int:
        """The time of the micro-batch, in milliseconds."""
        return self._moment.processing_time

    def get_current_watermark(self) -> int:
        """The operator's watermark, in milliseconds."""
        return self._moment.watermark

    def register_event_time_timer(self, time: int) -> None:
        """Have ``on_event_time`` called when the watermark reaches a time; in batch, not while timers fire."""
        self._timers.event_timers.register(whole_ms(time), self._moment.key, self._moment.window)

    def delete_event_time_timer(self, time: int) -> None:
        """Undo :meth:`register_event_time_timer`."""
        self._timers.event_timers.delete(whole_ms(time), self._moment.key, self._moment.window)

    def register_processing_time_timer(self, time: int) -> None:
        """Have ``on_processing_time`` called when the clock reaches a time; in batch, not while timers fire."""
        self._timers.processing_timers.register(whole_ms(time), self._moment.key, self._moment.window)

    def delete_processing_time_timer(self, time: int) -> None:
        """Undo :meth:`register_processing_time_timer`."""
        self._timers.processing_timers.delete(whole_ms(time), self._moment.key, self._moment.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        """The trigger's state for the key and window at hand."""
        return state_descriptor.bind(self._states)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        """Merge the trigger's state of the windows that are becoming one."""
        self._states.merge(state_descriptor, self._moment.merged)


class AssignerView(WindowAssigner.WindowAssignerContext):
    """The operator as a window assigner sees it."""

    def __init__(self, moment: WindowMoment, keyed: KeyedState) -> None:
        self._moment = moment
        self._states = handles_under(keyed, ASSIGNER_STATE, moment.key_scope)

    def get_runtime_context(self) -> KeyedStateStore:
        """The assigner's state for the key at hand."""
        return self._states

    def get_current_processing_time(self) -> int:
        """The time of the micro-batch, in milliseconds."""
        return self._moment.processing_time


class EvictorView(Evictor.EvictorContext):
    """The operator as an evictor sees it."""

    def __init__(self, moment: WindowMoment) -> None:
        self._moment = moment

    def get_current_processing_time(self) -> int:
        """The time of the micro-batch, in milliseconds."""
        return self._moment.processing_time

    def get_current_watermark(self) -> int:
        """The operator's watermark, in milliseconds."""
        return self._moment.watermark


class FiringContext(ProcessAllWindowFunction.Context[Any]):
    """The operator as a window function sees it."""

    def __init__(self, moment: WindowMoment, keyed: KeyedState, merging: bool, at: KeyContext) -> None:
        self._moment = moment
        self._keyed = keyed
        self._at = at
        self._merging = merging
        self.uses_window_state = False
        self._window_state = handles_under(keyed, WINDOW_STATE, moment.window_scope)

    def window(self) -> Any:
        """The window that fires."""
        return self._moment.window

    def current_processing_time(self) -> int:
        """The time of the micro-batch, in milliseconds."""
        return self._moment.processing_time

    def current_watermark(self) -> int:
        """The operator's watermark, in milliseconds."""
        return self._moment.watermark

    def window_state(self) -> KeyedStateStore:
        """State for the key and window; not for windows that merge, whose identity changes (as in Flink)."""
        if self._merging:
            raise ProgramError(
                "per-window state is not available with windows that merge, because their identity changes; "
                "use global_state()"
            )
        self.uses_window_state = True
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        """State for the key, shared by all its windows; that of the runtime context is the same."""
        self.enter()
        return self._at.store

    def enter(self) -> None:
        """Have the key of the window at hand."""
        self._at.key, self._at.values = self._moment.key, self._keyed.values
        if self._at.key not in self._keyed.index:
            self._keyed.open(self._at.key)
