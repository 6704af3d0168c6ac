"""The window operator whose functions may raise: what they cannot handle becomes a dead letter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from eventide.datastream.window import Window
from eventide.runtime.chain.collector import Mark
from eventide.runtime.chain.letters import Letters
from eventide.runtime.chain.steps import HANDLING
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.ownership import own
from eventide.runtime.invoke import shown
from eventide.runtime.state.attempt import Attempt, HasTimers, UndoableState
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window.contents import AllElements
from eventide.runtime.window.contexts import TRIGGER_STATE, WINDOW_STATE
from eventide.runtime.window.operator import CONTENTS, OnTime, WindowOperator

if TYPE_CHECKING:
    from eventide.runtime.window.spec import WindowSpec


class GuardedWindowOperator(WindowOperator):
    """All windows, element by element: of an element, or of a firing, all stands or nothing.

    An element that cannot be handled is as if it had never come: in none of its windows. A window that cannot fire has
    no result; it goes when its time is over, as any other, though its function may not have cleared what it kept.
    """

    def __init__(self, spec: WindowSpec, backend: StateBackend, context: OperatorContext) -> None:
        growing = frozenset({CONTENTS} if isinstance(spec.contents, AllElements) else ())
        self._handles_element = False
        self._touched = UndoableState(backend, context.max_parallelism, growing, in_batch=context.in_batch)
        super().__init__(spec, self._touched, context)
        self._letters = Letters(spec.name, spec.dead_letters, self._out, context.metrics)

    def _timers_of(self, keyed: KeyedState) -> HasTimers:
        self._attempt = Attempt(keyed)
        return self._attempt

    def process(self, parts: list[Elements]) -> None:
        """Handle elements of one or several channels in their one order, all under the current watermark."""
        elements = interleave(parts)
        self._keyed.open_all(elements.keys)
        attempt, out = self._attempt, self._out
        for key, value, timestamp in elements.rows():
            self._begin(key)
            before, element, self._handles_element = out.mark(), own(value), True
            try:
                self._process_one(key, value, timestamp)
                out.check_from(before)
            except Exception as error:
                self._undo()
                self._letters.put(before, HANDLING, error, timestamp, key=key, element=element)
            else:
                attempt.keep()
        self._handles_element = False

    def _fire_timers(self, timers: Timers, until_ms: int, on_time: OnTime) -> None:
        moment = self._moment
        for time_ms, moment.key, moment.window in timers.due(until_ms):
            window = moment.window
            if self._windows.state_window(moment.key, window) is None:
                continue
            self._try(partial(self._ask, on_time, time_ms))
            if self._is_cleanup(timers, time_ms) and not self._try(partial(self._drop, window)):
                self._forget(window)

    def _fire(self, state_window: Window | None, *, stays: bool) -> None:
        """Fire the window at hand; one that cannot fire does not make a bad one of the element that set it off."""
        if not self._handles_element:
            super()._fire(state_window, stays=stays)
            return
        before = self._out.mark()
        for one in (self._attempt, self._touched):
            one.begin_within()
        try:
            super()._fire(state_window, stays=stays)
            self._out.check_from(before)
        except Exception as error:
            self._undo()
            self._put_letter_of_window(before, error)
        else:
            for one in (self._attempt, self._touched):
                one.keep_within()

    def _is_cleanup(self, timers: Timers, time_ms: int) -> bool:
        """Whether a timer of the window at hand says that its time is over."""
        keyed = self._keyed
        cleanup_timers = keyed.event_timers if self._spec.assigner.is_event_time() else keyed.processing_timers
        return timers is cleanup_timers and time_ms == self._cleanup_time(self._moment.window)

    def _ask(self, on_time: OnTime, time_ms: int) -> None:
        """Do what the trigger says of the window at hand."""
        self._react(on_time(time_ms, self._moment.window, self._trigger_view))

    def _try(self, act: Callable[[], None]) -> bool:
        """Do something with the key and window at hand, as a whole; say whether it could be done."""
        out = self._out
        self._begin(self._moment.key)
        before = out.mark()
        try:
            act()
            out.check_from(before)
        except Exception as error:
            self._undo()
            self._put_letter_of_window(before, error)
            return False
        self._attempt.keep()
        return True

    def _put_letter_of_window(self, before: Mark, error: Exception) -> None:
        window = self._moment.window
        during = f"when the window {shown(window)} fired"
        self._letters.put(before, during, error, window.max_timestamp(), key=self._moment.key)

    def _begin(self, key: Any) -> None:
        self._attempt.begin(key)
        self._touched.begin()

    def _undo(self) -> None:
        self._attempt.undo()
        self._touched.undo()

    def _forget(self, window: Window) -> None:
        """Drop a window, though a function could not clear what it kept for it: that goes, too."""
        key = self._moment.key
        self._keyed.take(key, self._windows.state_window(key, window), CONTENTS)
        for prefix in (TRIGGER_STATE, WINDOW_STATE):
            self._keyed.take_all(key, window, prefix)
        self._windows.retire(key, window)
