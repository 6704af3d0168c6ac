"""How window functions are called when a window fires, and their view of the operator that calls them.

First the contexts of triggers, assigners, evictors and window functions; then the calls; last ``WindowSpec``, the
description of a window operator that works on Python objects, as plain data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eventide.api.functions import KeyedStateStore, ProcessAllWindowFunction, ProcessWindowFunction, RuntimeContext
from eventide.api.state import StateDescriptor
from eventide.api.windows import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingProcessingTimeWindows,
    Trigger,
    TumblingProcessingTimeWindows,
    Window,
    WindowAssigner,
)
from eventide.api.windows.triggers import unpurged
from eventide.common.ms import whole_ms
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError
from eventide.runtime.chain.chained_operators import Clock, Moment
from eventide.runtime.chain.outputs import described
from eventide.runtime.columnar.panes import WITH_PANES
from eventide.runtime.elements.elements import in_time_order
from eventide.runtime.process.functions import may_set_timers_of_clock
from eventide.runtime.state.key_context import KeyContext, handles_under
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import SortInputs
from eventide.runtime.window.contents import Contents
from eventide.runtime.window.element_store import AggregateTables, ElementTables

TRIGGER_STATE = "trigger:"
WINDOW_STATE = "window:"
ASSIGNER_STATE = "assigner:"


class WindowMoment(Moment):
    """Where the operator stands: the current key and window, beside the times."""

    key: object = None
    window: Any = None
    merged: Sequence[Window] = ()

    def window_scope(self) -> tuple[Any, Hashable]:
        """The current key and window: where the state of one window lives."""
        return self.key, self.window

    def key_scope(self) -> tuple[Any, Hashable]:
        """The current key: where the state of a key as a whole lives."""
        return self.key, None


class _WindowTimes:
    """The times of the operator, in milliseconds."""

    def __init__(self, moment: WindowMoment) -> None:
        self._moment = moment

    def get_current_processing_time(self) -> int:
        return self._moment.processing_time

    def get_current_watermark(self) -> int:
        return self._moment.watermark


class TriggerView(_WindowTimes, Trigger.OnMergeContext):
    """The operator as a trigger sees it. In batch execution, timers are not set while others fire."""

    def __init__(self, moment: WindowMoment, keyed: KeyedState) -> None:
        super().__init__(moment)
        self._timers = keyed
        self._states = handles_under(keyed, TRIGGER_STATE, moment.window_scope)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.event_timers.register(whole_ms(time), self._moment.key, self._moment.window)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.event_timers.delete(whole_ms(time), self._moment.key, self._moment.window)

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.processing_timers.register(whole_ms(time), self._moment.key, self._moment.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.processing_timers.delete(whole_ms(time), self._moment.key, self._moment.window)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return state_descriptor.bind(self._states)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        self._states.merge(state_descriptor, self._moment.merged)


class AssignerView(_WindowTimes, WindowAssigner.WindowAssignerContext):
    """The operator as a window assigner sees it."""

    def __init__(self, moment: WindowMoment, keyed: KeyedState, runtime: RuntimeContext) -> None:
        super().__init__(moment)
        self._runtime = replace(runtime, state=handles_under(keyed, ASSIGNER_STATE, moment.key_scope))

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime


class EvictorView(_WindowTimes, Evictor.EvictorContext):
    """The operator as an evictor sees it."""


class FiringContext(Clock, ProcessAllWindowFunction.Context[Any]):
    """The operator as a window function sees it.

    Attributes:
        keys: those whose windows fire one after the other, where they are known before.
    """

    _moment: WindowMoment

    def __init__(self, moment: WindowMoment, keyed: KeyedState, merging: bool, at: KeyContext) -> None:
        super().__init__(moment)
        self._keyed = keyed
        self._at = at
        self._merging = merging
        self.keys: Sequence[Any] = ()
        self.uses_window_state = False
        self._window_state = handles_under(keyed, WINDOW_STATE, moment.window_scope)

    def window(self) -> Any:
        return self._moment.window

    def window_state(self) -> KeyedStateStore:
        """State for the key and window; not for windows that merge, whose identity changes (as in Flink)."""
        if self._merging:
            raise ProgramError(
                "per-window state is not available with windows that merge, because their identity changes; "
                "use global_state()"
            )
        self.uses_window_state = True
        self.enter()
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        """State for the key, shared by all its windows; that of the runtime context is the same."""
        self._at.is_kept = True
        self.enter()
        return self._at.store

    def enter(self) -> None:
        """Make the key of the window the current one; load it with the keys of all windows that fire now."""
        self._at.key, self._at.values = self._moment.key, self._keyed.values
        if self._at.key not in self._keyed.index:
            self._keyed.open_all(self.keys or (self._at.key,))


@dataclass(frozen=True, slots=True)
class FiringFunction:
    """Makes the results of one firing. Without a function on top, what the window holds is the result."""

    user_function: Any = None

    def fire(self, key: object, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        """The results for one window."""
        return inputs

    @property
    def has_clear(self) -> bool:
        """Whether :meth:`clear` does anything."""
        return False

    def clear(self, context: FiringContext) -> None:
        """Clear what the function kept for a window, before the state of the window is dropped."""


@dataclass(frozen=True, slots=True)
class Apply(FiringFunction):
    """A ``WindowFunction``."""

    def fire(self, key: object, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.user_function.apply(key, context.window(), inputs)
        return results


@dataclass(frozen=True, slots=True)
class ApplyAll(FiringFunction):
    """An ``AllWindowFunction``."""

    def fire(self, key: object, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.user_function.apply(context.window(), inputs)
        return results


@dataclass(frozen=True, slots=True)
class WindowProcess(FiringFunction):
    """A ``ProcessWindowFunction``."""

    def fire(self, key: object, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.user_function.process(key, context, inputs)
        return results

    @property
    def has_clear(self) -> bool:
        """Whether the user has written it."""
        clears_nothing = (ProcessWindowFunction.clear, ProcessAllWindowFunction.clear)
        return type(self.user_function).clear not in clears_nothing

    def clear(self, context: FiringContext) -> None:
        self.user_function.clear(context)


@dataclass(frozen=True, slots=True)
class ProcessAll(WindowProcess):
    """A ``ProcessAllWindowFunction``."""

    def fire(self, key: object, inputs: Iterable[Any], context: FiringContext) -> Iterable[Any] | None:
        results: Iterable[Any] | None = self.user_function.process(context, inputs)
        return results


_WITHOUT_CLOCK = (EventTimeTrigger, ContinuousEventTimeTrigger, CountTrigger, NeverTrigger)
SESSIONS = (EventTimeSessionWindows, DynamicEventTimeSessionWindows)
"""The sessions of event time."""

_BY_CLOCK = (
    TumblingProcessingTimeWindows,
    SlidingProcessingTimeWindows,
    ProcessingTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)
_TIMELESS = (GlobalWindows, CountTumblingWindowAssigner, CountSlidingWindowAssigner)


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """All that describes a window operator; picklable.

    ``output_type`` is what was declared for its results; those of side outputs have the type of their tag.
    ``dead_letters`` is the side output of what its functions cannot handle; None: that is an error. ``tables`` says how
    elements are kept on columns until their window fires; None: they are kept as objects.
    """

    name: str
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: Contents
    function: FiringFunction
    evictor: Evictor[Any, Any] | None = None
    lateness_ms: int = 0
    late_tag: str | None = None
    output_type: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)
    dead_letters: str | None = None
    tables: ElementTables | None = None
    key_context: KeyContext = field(default_factory=KeyContext, compare=False, repr=False)

    @property
    def is_fixed(self) -> bool:
        """Whether time alone says which windows an element is in and when they fire, and no code looks at elements.

        Subclasses of the built-in assigners and triggers may do anything, so they do not count.
        """
        is_built_in = type(self.assigner) in WITH_PANES and type(self.trigger) is EventTimeTrigger
        return is_built_in and self.evictor is None

    @property
    def is_by_time(self) -> bool:
        """Whether time says which window of its key an element is in, and its trigger waits for the end of that.

        So it is for sessions and for windows of processing time; subclasses do not count.
        """
        waits = EventTimeTrigger if type(self.assigner) in SESSIONS else ProcessingTimeTrigger
        is_built_in = type(self.assigner) in (*SESSIONS, *_BY_CLOCK) and type(self.trigger) is waits
        return is_built_in and self.evictor is None and self.dead_letters is None

    @property
    def begins_anew_after(self) -> int | None:
        """The number of elements after which a window fires and begins anew; None if it does that by something else.

        Subclasses of the built-in assigners and triggers may do anything, so they do not count.
        """
        counting = unpurged(self.trigger)
        if type(self.trigger) is not PurgingTrigger or type(counting) is not CountTrigger:
            return None
        is_built_in = type(self.assigner) in (GlobalWindows, CountTumblingWindowAssigner)
        is_plain = is_built_in and self.evictor is None and self.dead_letters is None
        return counting.window_size if is_plain else None

    @property
    def needs_clock(self) -> bool:
        """Whether windows end by the clock, or a trigger may set timers by it; those of users may."""
        without_clock = self.assigner.is_event_time() or type(self.assigner) in _TIMELESS
        return not (without_clock and type(unpurged(self.trigger)) in _WITHOUT_CLOCK)

    @property
    def runs_without_data(self) -> bool:
        """Whether neither the assigner nor the code of a user's trigger rules that out."""
        without_clock = self.assigner.is_event_time() or type(self.assigner) in _TIMELESS
        return self.needs_clock and not (without_clock and not may_set_timers_of_clock(unpurged(self.trigger)))

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps; windows over all elements treat them as elements of one key."""
        return in_time_order

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        gone = "dropped and counted" if self.late_tag is None else f"to side output {self.late_tag!r}"
        late = f"allowed lateness {self.lateness_ms} ms, later than that {gone}"
        kept = "partial aggregates" if isinstance(self.tables, AggregateTables) else type(self.contents).__name__
        form = "" if self.tables is None else " in Arrow columns"
        return [
            ("windows", repr(self.assigner)),
            ("trigger", f"{self.trigger!r}" + (f", evictor {self.evictor!r}" if self.evictor else "")),
            ("late", late if self.assigner.is_event_time() else "nothing: these windows do not follow event time"),
            ("state", f"{kept}{form} per key and window"),
            *described(self.dead_letters),
        ]

    @property
    def state_of_functions(self) -> KeyedStateStore:
        """Where its window function finds the state of a key, which all windows of the key share."""
        return self.key_context.store

    def user_functions(self) -> list[Any]:
        """The functions that the user wrote, to be opened and closed."""
        functions = [self.contents.user_function, self.function.user_function]
        return [function for function in functions if function is not None]
