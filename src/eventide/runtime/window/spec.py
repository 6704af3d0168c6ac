"""Description of a window operator that works on Python objects, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eventide.api.functions import KeyedStateStore
from eventide.api.windows import (
    ContinuousEventTimeTrigger,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.common.typeinfo import TypeInformation, Types
from eventide.runtime.chain.outputs import described
from eventide.runtime.elements.elements import in_time_order
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.tasks.operator import SortInputs
from eventide.runtime.window.contents import Contents
from eventide.runtime.window.functions import FiringFunction

_WITHOUT_CLOCK = (EventTimeTrigger, ContinuousEventTimeTrigger, CountTrigger, NeverTrigger)
_TIMELESS = (GlobalWindows, CountTumblingWindowAssigner, CountSlidingWindowAssigner)


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """All that describes a window operator; picklable.

    ``output_type`` is what was declared for its results; those of side outputs have the type of their tag.
    ``dead_letters`` is the side output of what its functions cannot handle; None: that is an error.
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
    key_context: KeyContext = field(default_factory=KeyContext, compare=False, repr=False)

    @property
    def is_fixed(self) -> bool:
        """Whether time alone says which windows an element is in and when they fire, and no code looks at elements.

        Subclasses of the built-in assigners and triggers may do anything, so they do not count.
        """
        has_fixed_windows = type(self.assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)
        return has_fixed_windows and type(self.trigger) is EventTimeTrigger and self.evictor is None

    @property
    def needs_clock(self) -> bool:
        """Whether windows end by the clock, or a trigger may set timers by it; those of users may."""
        trigger = self.trigger
        while type(trigger) is PurgingTrigger:
            trigger = trigger.nested_trigger
        return not (
            type(trigger) in _WITHOUT_CLOCK and (self.assigner.is_event_time() or type(self.assigner) in _TIMELESS)
        )

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps; windows over all elements treat them as elements of one key."""
        return in_time_order

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        gone = "dropped and counted" if self.late_tag is None else f"to side output {self.late_tag!r}"
        late = f"allowed lateness {self.lateness_ms} ms, later than that {gone}"
        return [
            ("windows", repr(self.assigner)),
            ("trigger", f"{self.trigger!r}" + (f", evictor {self.evictor!r}" if self.evictor else "")),
            ("late", late if self.assigner.is_event_time() else "nothing: these windows do not follow event time"),
            ("state", f"{type(self.contents).__name__} per key and window"),
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
