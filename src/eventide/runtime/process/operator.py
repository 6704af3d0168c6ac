"""The operator that hands each element, and each timer, to a user function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from eventide.api.functions.timers import TimeDomain
from eventide.common.ms import MIN_MS
from eventide.errors import DEAD_LETTER_ADVICE
from eventide.runtime.chain.chained_operators import HANDLING, ElementContext, Moment
from eventide.runtime.chain.outputs import Collector, DeadLetterOutput
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import user_function_error
from eventide.runtime.process.functions import Handle, KeyedElementContext, ProcessSpec
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers
from eventide.runtime.tasks.operator import HoldsNothing, Operator, OperatorContext, Receive, WithoutClock

ON_TIMER = "when a timer fired"


class KeyedOperator(Operator):
    """The part of an operator that keeps its state by key: ``_at`` is the current key, and ``_out`` has its results."""

    _keyed: KeyedState
    _at: KeyContext
    _out: Collector

    @property
    def next_clock_ms(self) -> int | None:
        return self._keyed.processing_timers.next_ms()

    def timers_left(self) -> int:
        return 0 if self.next_clock_ms is None else len(self._keyed.processing_timers.all())

    def take_outputs(self) -> Mapping[str | None, Elements]:
        return self._out.take()

    def flush(self) -> None:
        self._at.leave()
        self._keyed.expire(self._at.clock_ms)
        self._keyed.flush()

    def held(self) -> dict[str, int]:
        return self._keyed.held()


class _ProcessOperatorBase(Operator):
    """Base of process operators: elements go to the function one by one, in their one order.

    Results have the time of their element. ``advice`` is what an error says of bad data.
    """

    advice: ClassVar[str] = DEAD_LETTER_ADVICE
    inputs: Sequence[Receive] = ()
    _context: ElementContext

    def __init__(self, spec: ProcessSpec, context: OperatorContext, keyed: KeyedState | None = None) -> None:
        self._spec = spec
        self._at: KeyContext = spec.key_context
        self._moment = self._at.lasting(Moment)
        self._moment.watermark, self._moment.processing_time = context.watermark_ms, context.clock_ms
        copies = spec.processing.user_function is not None
        self._out = Collector(spec.name, spec.output_type, copies=copies, advice=self.advice)
        if spec.processing.late is not None:
            spec.processing.late.count = partial(context.metrics.count_late, spec.name)
        self._letters: DeadLetterOutput | None = None
        if spec.dead_letters is not None:
            self._letters = DeadLetterOutput(spec.name, spec.dead_letters, self._out, context.metrics, keyed)
        watched = partial(context.metrics.watched, spec.name, HANDLING, may_leave_out=self._letters is None)
        self.inputs = tuple(
            partial(self._receive, self._guarded(watched(on_element))) for on_element in spec.processing.on_element
        )

    def take_outputs(self) -> Mapping[str | None, Elements]:
        return self._out.take()

    @property
    def late_until(self) -> int:
        """``MIN_MS``: the function takes all elements."""
        return MIN_MS

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: the function may look at the watermark."""
        return True

    def _guarded(self, on_element: Handle) -> Handle:
        """A function on elements; with dead letters, its results are emitted as a whole, or not at all."""
        letters, at = self._letters, self._at
        if letters is None:
            return on_element

        def handle(value: object, context: Any) -> None:
            letters.call(on_element, (value, context), HANDLING, context.time_ms, at.key, element=own(value))

        return handle

    def _receive(self, on_element: Handle, parts: list[Elements]) -> None:
        """Handle elements of one input, all under the current watermark."""
        self.handle_each(interleave(parts), on_element, self._context)

    def handle_each(self, elements: Elements, on_element: Handle, context: Any, during: str = HANDLING) -> None:
        """Hand each element to a function, with the context that the function sees, and emit what it returns."""
        at, put = self._at, self._out.put_results
        value = None
        try:
            for at.key, value, context.time_ms in elements.rows():
                results = on_element(value, context)
                if results is not None:
                    put(results, context.time_ms)
        except Exception as error:
            of = {"key": at.key} if elements.keys else {}
            raise user_function_error(
                self._spec.name, error, during=during, advice=self.advice, **of, element=value
            ) from error


class ProcessOperator(WithoutClock, HoldsNothing, _ProcessOperatorBase):
    """The operator without keys: it has neither state nor timers. Flink: ``ProcessOperator``, ``CoProcessOperator``."""

    def __init__(self, spec: ProcessSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._context = self._at.lasting(ElementContext, self._moment)

    def advance(self, watermark_ms: int) -> None:
        self._moment.watermark = watermark_ms

    def flush(self) -> None:
        """Nothing: without keys there is no state to store."""


class KeyedProcessOperator(KeyedOperator, _ProcessOperatorBase):
    """The operator with keys: the function has state and timers for each.

    Results of an event-time timer have its time as timestamp; results of a processing-time timer have none.
    Flink: ``KeyedProcessOperator``, ``KeyedCoProcessOperator``.
    """

    _context: KeyedElementContext

    def __init__(self, spec: ProcessSpec, keyed: KeyedState, context: OperatorContext) -> None:
        super().__init__(spec, context, keyed)
        self._keyed = keyed
        self._at.begin(keyed, context.clock_ms)
        self._context = self._at.lasting(KeyedElementContext, self._moment, self._at)
        self._context.in_batch = context.in_batch
        on_timer = spec.processing.on_timer
        watched = partial(context.metrics.watched, spec.name, ON_TIMER, may_leave_out=self._letters is None)
        self._on_timer = None if on_timer is None else self._guarded_timer(watched(on_timer))

    def advance(self, watermark_ms: int) -> None:
        self._moment.watermark = watermark_ms
        self._fire(self._keyed.event_timers, watermark_ms, TimeDomain.EVENT_TIME)

    def advance_clock(self, clock_ms: int) -> None:
        """Fire the timers of processing time that are set for a time or before."""
        self._fire(self._keyed.processing_timers, clock_ms, TimeDomain.PROCESSING_TIME)

    def _guarded_timer(self, on_timer: Handle) -> Handle:
        """A function on timers; with dead letters, its results are emitted as a whole, or not at all."""
        letters, at = self._letters, self._at
        if letters is None:
            return on_timer

        def handle(timer_ms: int, context: Any) -> None:
            time_ms = timer_ms if context.domain is TimeDomain.EVENT_TIME else None
            letters.call(on_timer, (timer_ms, context), ON_TIMER, time_ms, at.key)

        return handle

    def _receive(self, on_element: Handle, parts: list[Elements]) -> None:
        elements = interleave(parts)
        self._keyed.open_all(elements.keys)
        self._at.values = self._keyed.values
        self._context.domain = None
        self.handle_each(elements, on_element, self._context)

    def _fire(self, timers: Timers, until_ms: int, domain: TimeDomain) -> None:
        at, context = self._at, self._context
        at.values = self._keyed.values
        context.domain = domain
        has_time = domain is TimeDomain.EVENT_TIME
        try:
            for context.time_ms, at.key, _ in timers.due(until_ms):
                if self._on_timer is None:
                    continue
                results = self._on_timer(context.time_ms, context)
                if results is not None:
                    self._out.put_results(results, context.time_ms if has_time else None)
        except Exception as error:
            raise user_function_error(
                self._spec.name, error, during=ON_TIMER, advice=self.advice, key=at.key, time=context.time_ms
            ) from error
