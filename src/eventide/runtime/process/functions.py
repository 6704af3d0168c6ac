"""How each kind of function is called with the elements of each input, and with timers.

``KeyedElementContext`` is its view of the operator that calls it, and ``ProcessSpec`` the operator's description.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from eventide.api.functions import (
    Function,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStateStore,
    RuntimeContext,
)
from eventide.api.functions.output_tag import OutputTag
from eventide.api.functions.timers import TimeDomain, TimerService
from eventide.api.state import MapStateDescriptor
from eventide.api.windows.triggers import Trigger
from eventide.common.code import argument, codes, keeps_methods, steps
from eventide.common.ms import whole_ms
from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError
from eventide.runtime.chain.chained_operators import ElementContext, Moment, Times
from eventide.runtime.chain.outputs import described
from eventide.runtime.elements.elements import in_time_order
from eventide.runtime.elements.ownership import own
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.tasks.operator import SortInputs
from eventide.runtime.tracing.reasons import place_of

_WITH_CONTEXT = {
    "process_element": 2,
    "process_element1": 2,
    "process_element2": 2,
    "process_broadcast_element": 2,
    "on_timer": 2,
    "process_batch": 2,
    "on_timers": 2,
}
_WITH_CONTEXT_OF_TRIGGER = {"on_element": 4, "on_event_time": 3, "on_processing_time": 3, "on_merge": 2, "clear": 2}
"""Methods that get a context with timers, and its place among their arguments."""

_OF_CLOCK = "processing_time_timer"
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")


def may_set_timers_of_clock(of_user: Function | Trigger[Any, Any]) -> bool:
    """Whether a function or a trigger may set timers of processing time, as far as its code shows.

    It sets none if all that its handlers do with their context, and with the timers that this has, is to call methods
    of them there and then: so no other code can set one.
    """
    is_trigger = isinstance(of_user, Trigger)
    handlers = _WITH_CONTEXT_OF_TRIGGER if is_trigger else _WITH_CONTEXT
    kind, names = type(of_user), frozenset(handlers)
    if names & getattr(of_user, "__dict__", {}).keys() or not keeps_methods(
        kind, names, Trigger if is_trigger else Function
    ):
        return True
    found = ((inspect.getattr_static(kind, name, None), place) for name, place in handlers.items())
    return any(method is not None and not _sets_none(method, place) for method, place in found)


def _sets_none(handler: object, place_of_context: int) -> bool:
    found = argument(handler, place_of_context)
    if found is None:
        return False
    code, context = found
    names = {name for part in codes(code) for name in part.co_names}
    if "__self__" in names or any(_OF_CLOCK in name for name in names):
        return False
    done = [*steps(code), ("", None)]
    timers: set[Any] = set()
    for place, (step, name) in enumerate(done):
        if name != context or step in _ATTRIBUTE:
            continue
        if step != "LOAD_FAST" or done[place + 1][0] not in _ATTRIBUTE:
            return False
        if done[place + 1][1] == "timer_service":
            called, taken = [one for one in done[place + 2 :] if one[0] != "PUSH_NULL"][:2]
            if called != ("CALL", 0):
                return False
            if taken[0] == "STORE_FAST":
                timers.add(taken[1])
            elif taken[0] not in (*_ATTRIBUTE, "POP_TOP"):
                return False
    return all(
        step in ("STORE_FAST", *_ATTRIBUTE) or (step == "LOAD_FAST" and after in _ATTRIBUTE)
        for (step, name), (after, _) in pairwise(done)
        if name in timers
    )


Results: TypeAlias = Iterable[Any] | None
"""Outputs of a function; None stands for nothing."""

Handle: TypeAlias = Callable[[Any, Any], Results]
"""Handles an element, or the time of a timer, in a context."""

_WITH_TIMERS = (KeyedProcessFunction, KeyedCoProcessFunction, KeyedBroadcastProcessFunction)


class LateElements:
    """Where a function's late elements go: to a side output, or nowhere (None); they are counted either way."""

    count: Callable[[str, Sequence[int], int], None]
    """Adds the times of some to a counter, under a watermark: the operator's, which it gives when it begins."""

    def __init__(self, tag: OutputTag | None) -> None:
        self._tag = tag

    @property
    def tag_id(self) -> str | None:
        """The name of the side output; None if there is none."""
        return None if self._tag is None else self._tag.tag_id

    def give(self, value: object, at: int, watermark_ms: int) -> Iterator[Any]:
        """Count one, and put it out where it is wanted."""
        self.count(LATE_DROPPED if self._tag is None else LATE_TO_SIDE_OUTPUT, [at], watermark_ms)
        if self._tag is not None:
            yield self._tag, value


class WaitingElements:
    """Elements of the current key that wait for a timer of their time.

    Those of one time are a list that grows in place: to have one more wait costs the same however many there are.
    """

    def __init__(self, runtime_context: RuntimeContext, name: str = "waiting") -> None:
        kinds = Types.LONG(), Types.LIST(Types.PICKLED_BYTE_ARRAY())
        self._by_time = runtime_context.get_map_state(MapStateDescriptor(name, *kinds))

    def add(self, value: object, at: int, timers: TimerService) -> None:
        """Keep an element until a time."""
        of_time = self._by_time.get(at)
        if of_time is None:
            self._by_time.put(at, [value])
            timers.register_event_time_timer(at)
        else:
            of_time.append(own(value))

    def take(self, at: int) -> list[Any]:
        """Take out the elements of a time, in the order of their arrival."""
        of_time = self._by_time.get(at) or []
        self._by_time.remove(at)
        return of_time


@dataclass(frozen=True, slots=True)
class Processing(ABC):
    """A user function, to be opened and closed, and how it is called; its kind is in words that stay."""

    user_function: Any
    kind: str = ""

    @property
    @abstractmethod
    def on_element(self) -> tuple[Handle, ...]:
        """The handlers of the elements of each input."""

    @property
    def on_timer(self) -> Handle | None:
        """The handler of timers; None if there are no timers."""
        return None

    @property
    def late(self) -> LateElements | None:
        """Where its late elements go; None for a user's function, which takes all."""
        return None

    @property
    def may_wait_for_clock(self) -> bool:
        """Whether the function may set timers of processing time: only the function itself knows which it sets."""
        return self.on_timer is not None

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain`` about the function."""
        return [("function", type(self.user_function).__name__)]


@dataclass(frozen=True, slots=True)
class ProcessEach(Processing):
    """A ``KeyedProcessFunction``."""

    kind: str = "keyed process"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        return (self.user_function.process_element,)

    @property
    def on_timer(self) -> Handle | None:
        """The function's ``on_timer``, where it has one, as a ``CoProcessFunction`` may."""
        on_timer: Handle | None = getattr(self.user_function, "on_timer", None)
        inherited = getattr(on_timer, "__func__", None)
        return None if any(inherited is kind.on_timer for kind in _WITH_TIMERS) else on_timer


@dataclass(frozen=True, slots=True)
class ProcessBoth(ProcessEach):
    """A ``CoProcessFunction`` or ``KeyedCoProcessFunction``."""

    kind: str = "process of two inputs"

    @property
    def on_element(self) -> tuple[Handle, ...]:
        return self.user_function.process_element1, self.user_function.process_element2


class InEventTime:
    """The part of a :class:`Processing` whose function is eventide's own: it has late elements, and no other timers."""

    __slots__ = ()

    user_function: Any

    @property
    def late(self) -> LateElements | None:
        """Where the function says."""
        late: LateElements = self.user_function.late
        return late

    @property
    def may_wait_for_clock(self) -> bool:
        """False: its timers are of event time."""
        return False

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain`` that the function gives."""
        lines: list[tuple[str, str]] = self.user_function.describe()
        return lines


@dataclass(frozen=True, slots=True)
class ElementFunction(Processing):
    """A function that is called with elements alone, and may use state where there are keys."""

    @property
    def on_element(self) -> tuple[Handle, ...]:
        return _HANDLERS[self.kind](self.user_function)


def _one(call: Callable[[Any], Any]) -> Handle:
    return lambda value, _: (call(value),)


def _one_or_none(call: Callable[[Any], Any]) -> Handle:
    return lambda value, _: None if (result := call(value)) is None else (result,)


def _any_number(call: Callable[[Any], Results]) -> Handle:
    return lambda value, _: call(value)


def _itself_or_nothing(call: Callable[[Any], Any]) -> Handle:
    return lambda value, _: (value,) if call(value) else None


_HANDLERS: dict[str, Callable[[Any], tuple[Handle, ...]]] = {
    "keyed map": lambda function: (_one(function.map),),
    "keyed flat_map": lambda function: (_any_number(function.flat_map),),
    "keyed filter": lambda function: (_itself_or_nothing(function.filter),),
    # As in PyFlink, None is no element.
    "map of two inputs": lambda function: (_one_or_none(function.map1), _one_or_none(function.map2)),
    "flat_map of two inputs": lambda function: (_any_number(function.flat_map1), _any_number(function.flat_map2)),
}


class _TimersOfKey(Times):
    """The times of an operator, and timers of the current key; in batch execution, none is set while others fire."""

    def __init__(self, moment: Moment, at: KeyContext) -> None:
        super().__init__(moment)
        self._at = at

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._at.processing_timers.register(whole_ms(timestamp), self._at.key, None)

    def register_event_time_timer(self, timestamp: int) -> None:
        at = self._at
        at.event_timers.register(whole_ms(timestamp), at.key, None)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._at.processing_timers.delete(whole_ms(timestamp), self._at.key, None)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._at.event_timers.delete(whole_ms(timestamp), self._at.key, None)


class KeyedElementContext(ElementContext, KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext):
    """The operator as a function with keys sees it.

    ``domain`` is that of the current timer; ``in_batch`` says that all input comes before any watermark.
    """

    def __init__(self, moment: Moment, at: KeyContext) -> None:
        super().__init__(moment)
        self.in_batch = False
        self.domain: TimeDomain | None = None
        self._at = at
        self._timers = _TimersOfKey(moment, at)

    def get_current_key(self) -> Any:
        return self._at.key

    def time_domain(self) -> TimeDomain:
        if self.domain is None:
            raise ProgramError("time_domain() is the domain of the timer that fires; no timer fires here")
        return self.domain


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """All that describes a process operator; picklable.

    ``dead_letters`` is the side output of elements and timers that its function cannot handle; None: they are errors.
    """

    name: str
    processing: Processing
    has_keys: bool
    output_type: TypeInformation = field(default_factory=Types.PICKLED_BYTE_ARRAY)
    dead_letters: str | None = None
    key_context: KeyContext = field(default_factory=KeyContext, compare=False, repr=False)

    @property
    def needs_clock(self) -> bool:
        """Whether the function may set timers by the clock."""
        return self.has_keys and self.processing.may_wait_for_clock

    @property
    def runs_without_data(self) -> bool:
        """Whether the code of the function does not rule that out."""
        return self.needs_clock and may_set_timers_of_clock(self.processing.user_function)

    @property
    def sort_inputs(self) -> SortInputs | None:
        """Sorts by timestamps across both inputs, if they have keys."""
        return in_time_order if self.has_keys else None

    @property
    def state_of_functions(self) -> KeyedStateStore | None:
        """Where its function finds its state; None if there are no keys."""
        return self.key_context.store if self.has_keys else None

    @property
    def speed(self) -> str:
        """How it runs, and why."""
        function = self.processing.user_function
        return f"element by element, because {type(function).__name__}{place_of(function)} is Python"

    def user_functions(self) -> list[Any]:
        """The function that the user wrote, to be opened and closed."""
        function = self.processing.user_function
        return [] if function is None else [function]

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        state = "per key, in rows that are read when their keys are touched" if self.has_keys else "none"
        timers = "by key" if self.has_keys and self.processing.on_timer is not None else "none"
        return [*self.processing.describe(), ("state", state), ("timers", timers), *described(self.dead_letters)]
