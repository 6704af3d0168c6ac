"""The window operator: elements go into windows, triggers say when they fire, time says when they go.

Windows that merge share the contents of one of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from eventide.api.windows import Evictor, MergingWindowAssigner, TimestampedValue, TriggerResult, Window, WindowAssigner
from eventide.common.ms import MIN_MS
from eventide.common.windows import TimeWindow
from eventide.errors import DEAD_LETTER_ADVICE, ProgramError
from eventide.runtime.chain.chained_operators import HANDLING
from eventide.runtime.chain.outputs import Collector, DeadLetterOutput
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.ownership import own, own_each
from eventide.runtime.eventtime.rules import (
    cleanup_time,
    is_cleanup_time,
    is_element_late,
    is_window_late,
    latest_late_time,
)
from eventide.runtime.invoke import no_timestamp, results_of, user_function_error
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, WITHOUT_WINDOW
from eventide.runtime.process.operator import KeyedOperator
from eventide.runtime.state.key_context import is_rich
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import Timers
from eventide.runtime.tasks.operator import OperatorContext, Receive
from eventide.runtime.window.functions import (
    TRIGGER_STATE,
    WINDOW_STATE,
    AssignerView,
    EvictorView,
    FiringContext,
    TriggerView,
    WindowMoment,
    WindowSpec,
)

OnMerge: TypeAlias = Callable[[Window, list[Window], Window, list[Window]], None]

_SET = "windows"


class Windows:
    """Says under which window the contents of a window are stored: under itself, where windows never merge."""

    def add(self, key: object, window: Window, on_merge: OnMerge) -> Window:
        """Take a new window in, and give the window that it is now part of.

        ``on_merge(result, merged, state_window, merged_state_windows)`` is called once for each merge that really
        joins windows which were there before.
        """
        return window

    def touched(self, key: object, window: Any) -> tuple[TimeWindow, ...]:
        """The windows that would become one with a window."""
        return ()

    def state_window(self, key: object, window: Window) -> Window | None:
        """The window under which the contents are stored; None if the window is not there (any more)."""
        return window

    def retire(self, key: object, window: Window) -> None:
        """Forget a window."""


class Sessions(Windows):
    """The windows of each key that merge with those they overlap or touch, as plain numbers in the order of time.

    Stored of a key are the starts and the ends of its windows. No two windows touch, so those that a new one touches
    stand side by side. Contents go along with their window: that costs nothing, since all of a key is one stored value.
    """

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed

    def add(self, key: object, window: Any, on_merge: OnMerge) -> TimeWindow:
        start, end = window.start, window.end
        stored = self._keyed.read(key, None, _SET)
        if stored is None:
            self._keyed.write(key, None, _SET, ([start], [end]))
            return TimeWindow(start, end)
        starts, ends = stored
        touched = _touched(stored, window)
        before: list[Window] = list(map(TimeWindow, starts[touched], ends[touched]))
        if before:
            start, end = min(start, starts[touched.start]), max(end, ends[touched.stop - 1])
        result = TimeWindow(start, end)
        if before != [result]:
            starts[touched], ends[touched] = [start], [end]
            if before:
                on_merge(result, before, result, before)
        return result

    def touched(self, key: object, window: Any) -> tuple[TimeWindow, ...]:
        stored = self._keyed.read(key, None, _SET)
        if stored is None:
            return ()
        touched = _touched(stored, window)
        return tuple(map(TimeWindow, stored[0][touched], stored[1][touched]))

    def state_window(self, key: object, window: Any) -> Window | None:
        return window if self._place(key, window) is not None else None

    def retire(self, key: object, window: object) -> None:
        at = self._place(key, window)
        if at is None:
            return
        starts, ends = self._keyed.read(key, None, _SET)
        del starts[at], ends[at]
        if not starts:
            self._keyed.take(key, None, _SET)

    def _place(self, key: object, window: Any) -> int | None:
        stored = self._keyed.read(key, None, _SET)
        if stored is None:
            return None
        starts, ends = stored
        at = bisect_left(starts, window.start)
        return at if at < len(starts) and starts[at] == window.start and ends[at] == window.end else None


def _touched(stored: tuple[list[int], list[int]], window: TimeWindow) -> slice:
    """Which windows a window overlaps or touches, of those of a key, given their starts and their ends."""
    starts, ends = stored
    return slice(bisect_left(ends, window.start), bisect_right(starts, window.end))


class MergingWindows(Windows):
    """The windows of each key, and the one among those merged into each whose contents stay where they are.

    Contents are moved only from the windows that lose their place, never those of the window that keeps it.

    Flink: ``MergingWindowSet``.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], keyed: KeyedState) -> None:
        self._assigner = assigner
        self._keyed = keyed

    def _mapping(self, key: object) -> dict[Window, Window]:
        mapping: dict[Window, Window] | None = self._keyed.read(key, None, _SET)
        return {} if mapping is None else mapping

    def add(self, key: object, window: Window, on_merge: OnMerge) -> Window:
        mapping = self._mapping(key)
        actual = window
        merges: list[tuple[Window, list[Window]]] = []
        if mapping:
            self._assigner.merge_windows(list(dict.fromkeys([*mapping, window])), _Collect(merges))
        for result, merged in merges:
            if window in merged:
                actual = result
            before = [w for w in dict.fromkeys(merged) if w in mapping]
            if not before:
                continue
            state_windows = [mapping.pop(w) for w in before]
            mapping[result] = state_windows[0]
            if before != [result]:
                on_merge(result, before, state_windows[0], state_windows[1:])
        mapping.setdefault(actual, actual)
        self._keyed.write(key, None, _SET, mapping)
        return actual

    def state_window(self, key: object, window: Window) -> Window | None:
        return self._mapping(key).get(window)

    def retire(self, key: object, window: Window) -> None:
        mapping = self._mapping(key)
        mapping.pop(window, None)
        if mapping:
            self._keyed.write(key, None, _SET, mapping)
        else:
            self._keyed.take(key, None, _SET)


class _Collect(MergingWindowAssigner.MergeCallback[Window]):
    def __init__(self, merges: list[tuple[Window, list[Window]]]) -> None:
        self._merges = merges

    def merge(self, to_be_merged: Any, merge_result: Window) -> None:
        self._merges.append((merge_result, list(to_be_merged)))


def windows_of(assigner: WindowAssigner[Any, Any], keyed: KeyedState) -> Windows:
    """How the windows of an assigner are kept."""
    if not isinstance(assigner, MergingWindowAssigner):
        return Windows()
    return Sessions(keyed) if assigner.merges_neighbours_only else MergingWindows(assigner, keyed)


CONTENTS = "contents"
"""The name under which what a window keeps is stored."""

FIRING = "when a window fired"

OnTime: TypeAlias = Callable[[int, Window, TriggerView], TriggerResult]
"""The method of a trigger for a due timer: its ``on_event_time`` or ``on_processing_time``."""

Fire: TypeAlias = Callable[[Window | None, bool], object]
"""Fires the current window, given where its contents are, and whether they stay."""


class WindowOperator(KeyedOperator):
    """One window operator in one subtask.

    Elements are handled one by one under the watermark that is current when they arrive; :meth:`advance` moves the
    watermark and fires what it passes, in the order of time over all keys, and :meth:`advance_clock` does so with the
    timers of processing time. Results carry the last millisecond of their window as their event time. Outputs gather,
    by side output, until :meth:`take_outputs`.

    The assigner says which kind of time drops a window: event time, at the end of its allowed lateness, or processing
    time, at its last millisecond.

    Flink: ``WindowOperator`` and ``EvictingWindowOperator``; merging and not merging windows take one path here.
    """

    def __init__(self, spec: WindowSpec, keyed: KeyedState, context: OperatorContext) -> None:
        self._spec = spec
        self._keyed = keyed
        self._metrics = context.metrics
        self._windows = windows_of(spec.assigner, keyed)
        self._moment = moment = WindowMoment(context.watermark_ms, context.clock_ms)
        follows_event_time = spec.assigner.is_event_time()
        self._cleanup_timers = keyed.event_timers if follows_event_time else keyed.processing_timers
        self._lateness_ms = spec.lateness_ms if follows_event_time else 0
        self._trigger_view = TriggerView(moment, keyed)
        self._assigner_view = AssignerView(moment, keyed, context.runtime)
        self._evictor_view = EvictorView(moment)
        self._firing = FiringContext(moment, keyed, spec.assigner.is_merging, spec.key_context)
        self._at = spec.key_context
        self._at.begin(keyed, context.clock_ms)
        self._is_rich = is_rich(spec.function.user_function)
        self._out = Collector(spec.name, spec.output_type)
        self._handle: Callable[[Any, Any, int | None], None] = context.metrics.watched(
            spec.name, HANDLING, self._process_one, element=1, may_leave_out=spec.dead_letters is None
        )
        self._fire_within: Fire = self._fire
        self._fire_timer: Callable[[OnTime, int, bool], object] = self._ask
        self._clean_up: Callable[[Window], None] = self._drop
        if spec.dead_letters is not None:
            self._have_dead_letters(DeadLetterOutput(spec.name, spec.dead_letters, self._out, context.metrics, keyed))

    @property
    def inputs(self) -> Sequence[Receive]:
        return (self.process,)

    def process(self, parts: list[Elements]) -> None:
        """Handle elements of one or several channels in their one order, all under the current watermark.

        Raises:
            DataError: for an element without a timestamp where windows are made of event time.
            UserFunctionError: if a function, trigger, assigner or evictor raised.
        """
        elements = interleave(parts)
        self._keyed.open_all(elements.keys)
        self._take_each(elements.rows())

    @property
    def late_until(self) -> int:
        """The last time at which an element without an open window is late; without event time, no element is late."""
        if not self._spec.assigner.is_event_time():
            return MIN_MS
        return latest_late_time(self._lateness_ms, self._moment.watermark)

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: a timer may be due at any time, and functions may look at the watermark."""
        return True

    def advance(self, watermark_ms: int) -> None:
        self._moment.watermark = watermark_ms
        self._fire_timers(self._keyed.event_timers, watermark_ms, self._spec.trigger.on_event_time)

    def advance_clock(self, clock_ms: int) -> None:
        """Fire all timers of processing time that are set for a time or before; it stays that of the micro-batch."""
        self._fire_timers(self._keyed.processing_timers, clock_ms, self._spec.trigger.on_processing_time)

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        """All that is kept, by key and window (None: the key as a whole): for harnesses."""
        return self._keyed.all_entries()

    def all_timers(self) -> list[tuple[int, Any, Hashable]]:
        """When event time has something to do for which key and window, in order of time: for harnesses."""
        return self._keyed.event_timers.all()

    def all_processing_timers(self) -> list[tuple[int, Any, Hashable]]:
        """Return all timers of processing time, with their keys and windows."""
        return self._keyed.processing_timers.all()

    def _have_dead_letters(self, letters: DeadLetterOutput) -> None:
        """Let the job go on where a function raises: of an element, or of a firing, all stands or nothing.

        An element that cannot be handled is as if it had never come: in none of its windows. A window that cannot fire
        has no result, and does not make the element bad that set it off. It goes when its time is over, as any other
        window, though its function may not have cleared its state.
        """
        moment, process_one, fire, ask, drop = self._moment, self._handle, self._fire, self._ask, self._drop

        def handle(key: Any, value: object, timestamp: int | None) -> None:
            letters.call(process_one, (key, value, timestamp), HANDLING, timestamp, key, element=own(value))

        def attempt(act: Callable[..., None], *args: object) -> bool:
            window = moment.window
            return letters.call(act, args, FIRING, window.max_timestamp(), moment.key, window=window)

        def clean_up(window: Window) -> None:
            if not attempt(drop, window):
                self._forget(window)

        self._handle = handle
        self._fire_within = partial(attempt, fire)
        self._fire_timer = partial(attempt, ask)
        self._clean_up = clean_up

    def _take_each(self, rows: Iterable[tuple[Any, Any, int | None]]) -> None:
        """Handle elements one by one, each with its key and its timestamp."""
        handle, key, value = self._handle, None, None
        try:
            for key, value, timestamp in rows:
                handle(key, value, timestamp)
        except Exception as error:
            raise self._failed_at(error, key, value) from error

    def _process_one(self, key: object, value: object, timestamp: int | None) -> None:
        spec = self._spec
        moment = self._moment
        if timestamp is None and spec.assigner.is_event_time():
            raise no_timestamp()
        moment.key = key
        accepted = False
        time_ms = MIN_MS if timestamp is None else timestamp
        shown = own(value)
        windows = [*spec.assigner.assign_windows(shown, time_ms, self._assigner_view)]
        can_change = shown is not value
        for window in windows:
            actual = self._windows.add(key, window, self._on_merge)
            if self._is_late(actual):
                self._windows.retire(key, actual)
                continue
            accepted = True
            mine = own(value) if can_change and len(windows) > 1 else value
            self._take_in(actual, mine, own(value) if can_change else value, timestamp)
        if not accepted:
            self._on_unaccepted(value, timestamp)

    def _take_in(self, window: Window, value: object, shown: object, timestamp: int | None) -> None:
        """Add an element to a window that is not late, and do what the trigger says, which is shown a copy."""
        self._moment.window = window
        self._add(window, value, timestamp)
        self._tell_trigger(window, shown, MIN_MS if timestamp is None else timestamp)

    def _tell_trigger(self, window: Window, shown: object, time_ms: int) -> None:
        """Show the trigger an element that came into the current window, and do what it says."""
        result = self._spec.trigger.on_element(shown, time_ms, window, self._trigger_view)
        if result is not TriggerResult.CONTINUE:
            self._react(result, self._fire_within)
        cleanup = self._cleanup_time(window)
        if cleanup is not None:
            self._cleanup_timers.register(cleanup, self._moment.key, window)

    def _is_late(self, window: Window) -> bool:
        spec = self._spec
        return spec.assigner.is_event_time() and is_window_late(
            window.max_timestamp(), spec.lateness_ms, self._moment.watermark
        )

    def _on_unaccepted(self, value: object, timestamp: int | None) -> None:
        spec = self._spec
        if (
            timestamp is None
            or not spec.assigner.is_event_time()
            or not is_element_late(timestamp, spec.lateness_ms, self._moment.watermark)
        ):
            self._metrics.count(spec.name, WITHOUT_WINDOW)
        elif spec.late_tag is None:
            self._metrics.count_late(spec.name, LATE_DROPPED, [timestamp], self._moment.watermark)
        else:
            self._metrics.count_late(spec.name, LATE_TO_SIDE_OUTPUT, [timestamp], self._moment.watermark)
            self._out.put_beside(spec.late_tag, value, timestamp)

    def _add(self, window: Window, value: object, timestamp: int | None) -> None:
        key = self._moment.key
        state_window = self._windows.state_window(key, window)
        kept = self._keyed.read(key, state_window, CONTENTS)
        self._keyed.write(key, state_window, CONTENTS, self._spec.contents.add(kept, value, timestamp))

    def _on_merge(self, result: Window, merged: list[Window], state_window: Window, others: list[Window]) -> None:
        spec, keyed, moment = self._spec, self._keyed, self._moment
        if self._is_late(result):
            raise ProgramError(
                f"the assigner {spec.assigner!r} merged {merged!r} into {result!r}, which the watermark "
                f"{moment.watermark} has passed already; a merged window must not end before the windows it merges"
            )
        moment.window, moment.merged = result, merged
        spec.trigger.on_merge(result, self._trigger_view)
        moment.merged = ()
        for window in merged:  # the result too, if it was there before
            moment.window = window
            spec.trigger.clear(window, self._trigger_view)
            keyed.take_all(moment.key, window, TRIGGER_STATE)
            if (cleanup := self._cleanup_time(window)) is not None:
                self._cleanup_timers.delete(cleanup, moment.key, window)
        for other in others:
            moved = keyed.take(moment.key, other, CONTENTS)
            if moved is not None:
                kept = keyed.read(moment.key, state_window, CONTENTS)
                joined = moved if kept is None else spec.contents.merge(kept, moved)
                keyed.write(moment.key, state_window, CONTENTS, joined)

    def _fire_timers(self, timers: Timers, until_ms: int, on_time: OnTime) -> None:
        """Ask the trigger about each timer that is due, and drop the windows whose time has come."""
        moment = self._moment
        try:
            for time_ms, moment.key, moment.window in timers.due(until_ms):
                window = moment.window
                if self._windows.state_window(moment.key, window) is None:
                    continue
                is_over = is_cleanup_time(time_ms, window.max_timestamp(), self._lateness_ms)
                drops = is_over and timers is self._cleanup_timers
                self._fire_timer(on_time, time_ms, drops)
                if drops:
                    self._clean_up(window)
        except Exception as error:
            raise self._failed_to_fire(error) from error

    def _failed_at(self, error: Exception, key: object, element: object) -> Exception:
        """Return the error for an element that could not be handled."""
        return user_function_error(
            self._spec.name, error, during=HANDLING, advice=DEAD_LETTER_ADVICE, key=key, element=element
        )

    def _failed_to_fire(self, error: Exception) -> Exception:
        """Return the error for the current window, which could not fire."""
        at = self._moment
        return user_function_error(
            self._spec.name, error, during=FIRING, advice=DEAD_LETTER_ADVICE, key=at.key, window=at.window
        )

    def _ask(self, on_time: OnTime, time_ms: int, drops: bool) -> None:
        """Do what the trigger says of the current window when a timer is due; it is dropped afterwards, or not."""
        result = on_time(time_ms, self._moment.window, self._trigger_view)
        if result is not TriggerResult.CONTINUE:
            self._react(result, self._fire, drops=drops)

    def _react(self, result: TriggerResult, fire: Fire, *, drops: bool = False) -> None:
        """Fire and purge the current window, as a trigger says."""
        if not isinstance(result, TriggerResult):
            raise ProgramError(
                f"{type(self._spec.trigger).__name__} returned {result!r}; a trigger returns a TriggerResult"
            )
        state_window = self._windows.state_window(self._moment.key, self._moment.window)
        if result.is_fire():
            fire(state_window, not (drops or result.is_purge()))
        if result.is_purge():
            self._keyed.take(self._moment.key, state_window, CONTENTS)

    def _fire(self, state_window: Window | None, stays: bool) -> None:
        """Call the window function with the contents of the current window, which may stay as they are."""
        spec, moment = self._spec, self._moment
        kept = self._keyed.read(moment.key, state_window, CONTENTS)
        if kept is None:
            return
        window, evictor = moment.window, spec.evictor
        if evictor is not None:
            kept = _what_stays(evictor, evictor.evict_before(kept, len(kept), window, self._evictor_view))
        self._show(kept, stays=stays or evictor is not None)
        if evictor is not None:
            kept = _what_stays(evictor, evictor.evict_after(kept, len(kept), window, self._evictor_view))
            if kept:
                apart = [TimestampedValue(own(element.value), element.timestamp) for element in kept]
                self._keyed.write(moment.key, state_window, CONTENTS, apart)
            else:
                self._keyed.take(moment.key, state_window, CONTENTS)

    def _enter(self) -> None:
        """Load the key for a window function that may use its own state: it was opened, or may have kept it."""
        if self._is_rich or self._at.is_kept:
            self._firing.enter()

    def _show(self, kept: object, *, stays: bool) -> None:
        """Call the window function with the content of the current window, unless there is none to show.

        What stays in the window is shown as copies.
        """
        seen, moment = self._spec.contents.view(kept), self._moment
        if seen is not None:
            seen = own_each([*seen]) if stays else seen
            self._enter()
            results = self._spec.function.fire(moment.key, seen, self._firing)
            self._out.put_results(results_of(results), moment.window.max_timestamp())

    def _drop(self, window: Window) -> None:
        """Drop a window, after its trigger and its function have cleared what they keep for it."""
        spec = self._spec
        spec.trigger.clear(window, self._trigger_view)
        if spec.function.has_clear:
            self._enter()
            spec.function.clear(self._firing)
        self._forget(window)

    def _forget(self, window: Window) -> None:
        """Drop a window with all that functions keep for it, without calling any."""
        key = self._moment.key
        self._keyed.take(key, self._windows.state_window(key, window), CONTENTS)
        for prefix in (TRIGGER_STATE, WINDOW_STATE):
            self._keyed.take_all(key, window, prefix)
        self._windows.retire(key, window)

    def _cleanup_time(self, window: Window) -> int | None:
        return cleanup_time(window.max_timestamp(), self._lateness_ms)


def _what_stays(evictor: Evictor[Any, Any], elements: Iterable[Any] | None) -> list[Any]:
    if elements is None:
        raise ProgramError(f"{type(evictor).__name__} returned None; an evictor returns the list of elements that stay")
    return list(elements)
