"""Contexts of process functions with keys: their view of the operator that calls them."""

from __future__ import annotations

from typing import Any

from eventide.api.functions import KeyedCoProcessFunction, KeyedProcessFunction
from eventide.api.functions.time_domain import TimeDomain
from eventide.common.ms import whole_ms
from eventide.errors import ProgramError
from eventide.runtime.chain.chained_operators import ElementContext, Moment, Times
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.state.keyed import KeyedState


class _TimersOfKey(Times):
    """The times of an operator, and the timers of the key at hand."""

    def __init__(self, moment: Moment, at: KeyContext, keyed: KeyedState) -> None:
        super().__init__(moment)
        self._at = at
        self._event_timers = keyed.event_timers
        self._processing_timers = keyed.processing_timers

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Set a timer by the clock; in batch execution, not while timers fire."""
        self._processing_timers.register(whole_ms(timestamp), self._at.key, None)

    def register_event_time_timer(self, timestamp: int) -> None:
        """Set a timer of event time; in batch execution, not while timers fire."""
        self._event_timers.register(whole_ms(timestamp), self._at.key, None)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Take a timer by the clock back."""
        self._processing_timers.delete(whole_ms(timestamp), self._at.key, None)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Take a timer of event time back."""
        self._event_timers.delete(whole_ms(timestamp), self._at.key, None)


class KeyedElementContext(ElementContext, KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext):
    """The operator as a function with keys sees it.

    ``domain`` is that of the timer at hand; ``in_batch`` says that all input comes before any watermark.
    """

    def __init__(self, moment: Moment, at: KeyContext, keyed: KeyedState, *, in_batch: bool = False) -> None:
        super().__init__(moment)
        self.in_batch = in_batch
        self.domain: TimeDomain | None = None
        self._at = at
        self._timers = _TimersOfKey(moment, at, keyed)

    def get_current_key(self) -> Any:
        """The key at hand."""
        return self._at.key

    def time_domain(self) -> TimeDomain:
        """The kind of the timer at hand."""
        if self.domain is None:
            raise ProgramError("time_domain() tells of the timer that fires; no timer fires here")
        return self.domain
