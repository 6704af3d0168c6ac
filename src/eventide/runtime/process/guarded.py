"""Process operators whose function may raise: what it cannot handle becomes a dead letter, as if it had never come.

Of an element or a timer, all stands or nothing: what came out, what was kept, which timers were set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from eventide.datastream.time_domain import TimeDomain
from eventide.runtime.chain.letters import Letters
from eventide.runtime.chain.steps import HANDLING
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.ownership import own
from eventide.runtime.process.functions import Results
from eventide.runtime.process.operator import ON_TIMER, KeyedProcessOperator, ProcessOperator
from eventide.runtime.state.attempt import Attempt, HasTimers
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers
from eventide.runtime.tasks.operator import OperatorContext

if TYPE_CHECKING:
    from eventide.runtime.process.spec import ProcessSpec


class GuardedOperator(ProcessOperator):
    """The operator without keys."""

    def __init__(self, spec: ProcessSpec, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._letters = Letters(spec.name, spec.dead_letters, self._out, context.metrics)

    def _receive(self, on_element: Any, parts: list[Elements]) -> None:
        context, out = self._context, self._out
        for _, value, context.time_ms in interleave(parts).rows():
            before, element = out.mark(), own(value)
            try:
                out.put_results(_listed(on_element(value, context)), context.time_ms)
                out.check_from(before)
            except Exception as error:
                self._letters.put(before, HANDLING, error, context.time_ms, element=element)


class GuardedKeyedOperator(KeyedProcessOperator):
    """The operator with keys."""

    def __init__(self, spec: ProcessSpec, keyed: KeyedState, context: OperatorContext) -> None:
        super().__init__(spec, keyed, context)
        self._letters = Letters(spec.name, spec.dead_letters, self._out, context.metrics)

    def _timers_of(self, keyed: KeyedState) -> HasTimers:
        self._attempt = Attempt(keyed)
        return self._attempt

    def _receive(self, on_element: Any, parts: list[Elements]) -> None:
        elements = interleave(parts)
        at, context, out, attempt = self._at, self._context, self._out, self._attempt
        self._keyed.open_all(elements.keys)
        at.values = self._keyed.values
        context.domain = None
        for at.key, value, context.time_ms in elements.rows():
            attempt.begin(at.key)
            before, element = out.mark(), own(value)
            try:
                out.put_results(_listed(on_element(value, context)), context.time_ms)
                out.check_from(before)
            except Exception as error:
                attempt.undo()
                self._letters.put(before, HANDLING, error, context.time_ms, key=at.key, element=element)
            else:
                attempt.keep()

    def _fire(self, timers: Timers, until_ms: int, domain: TimeDomain) -> None:
        at, context, out, attempt = self._at, self._context, self._out, self._attempt
        at.values = self._keyed.values
        context.domain = domain
        for context.time_ms, at.key, _ in timers.due(until_ms):
            if self._on_timer is None:
                continue
            attempt.begin(at.key)
            before = out.mark()
            time_ms = context.time_ms if domain is TimeDomain.EVENT_TIME else None
            try:
                out.put_results(_listed(self._on_timer(context.time_ms, context)), time_ms)
                out.check_from(before)
            except Exception as error:
                attempt.undo()
                self._letters.put(before, ON_TIMER, error, time_ms, key=at.key)
            else:
                attempt.keep()


def _listed(results: Results) -> Iterable[Any]:
    return () if results is None else results
