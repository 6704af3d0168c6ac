"""Tumbling and sliding windows of Python objects: what cannot be late is handled by key and window, not one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.common._ms import MIN_MS
from eventide.common.time_window import TimeWindow
from eventide.datastream.output_tag import OutputTag
from eventide.errors import ProgramError
from eventide.runtime.columnar.panes import panes_of
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.invoke import user_function_error
from eventide.runtime.metrics import LATE_DROPPED, Metrics
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.window.contents import AtElement, Times
from eventide.runtime.window.contexts import WINDOW_STATE
from eventide.runtime.window.grouping import Indices, by_pane
from eventide.runtime.window.operator import CONTENTS, WindowOperator
from eventide.runtime.window.partials import Partials
from eventide.runtime.window.rules import cleanup_time, has_passed, is_window_late

if TYPE_CHECKING:
    from eventide.runtime.window.spec import WindowSpec


class FixedWindowOperator(WindowOperator):
    """The window operator where time alone says which windows an element is in, and an ``EventTimeTrigger`` fires them.

    A window that the watermark has not reached takes all its elements of a micro-batch at once, in their order: they
    can neither be late nor fire, so nothing comes out between them, and each key's state and timers are touched once.
    The windows that the watermark has passed take theirs one by one, as in any other window operator. Elements that
    were reduced before the shuffle come as :class:`Partials`, and none of theirs has lateness or a side output.
    """

    def __init__(self, spec: WindowSpec, keyed: KeyedState, metrics: Metrics, watermark_ms: int, clock_ms: int) -> None:
        super().__init__(spec, keyed, metrics, watermark_ms, clock_ms)
        panes = panes_of(spec.assigner)
        if panes is None:
            raise ProgramError(f"the windows of {spec.assigner!r} are not fixed")
        self._panes = panes
        self._windows_of: dict[int, list[TimeWindow]] = {}

    def process(self, parts: Sequence[Any]) -> None:
        """Handle elements of one or several channels in their one order, all under the current watermark."""
        partials = [part for part in parts if isinstance(part, Partials)]
        if partials:
            self._take_partials(partials)
            return
        elements = interleave(parts)
        try:
            timestamps = np.array(elements.timestamps, np.int64)
        except (TypeError, OverflowError):
            timestamps = np.array([MIN_MS])
        if not len(timestamps) or timestamps.min() == MIN_MS:
            super().process([elements])  # which says what is wrong with the timestamp
            return
        self._take_many(elements, timestamps)

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether a window fires when the watermark gets there.

        With allowed lateness, late elements fire, and functions may look at the watermark then; in a gap between
        windows, an element may be late.
        """
        panes = self._panes
        may_be_seen = self._spec.lateness_ms > 0 or panes.slide > panes.size
        return may_be_seen or panes.is_boundary_between(self._moment.watermark, watermark_ms)

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and fire all windows that it passes, in the order of time."""
        moment = self._moment
        moment.watermark = watermark_ms
        try:
            for time_ms, moment.window, keys in self._keyed.event_timers.due_at_once(watermark_ms):
                self._on_timers(time_ms, moment.window, keys)
        except Exception as error:
            raise user_function_error(
                self._spec.name, error, during="when a window fired", key=moment.key, window=moment.window
            ) from error

    def _take_partials(self, parts: list[Partials]) -> None:
        for part in parts:
            late = [number for pane, number in part.counts if all(map(self._is_late, self._windows_at(pane)))]
            self._metrics.count(self._spec.name, LATE_DROPPED, sum(late))
            if part.keys:
                self._add_ahead(part.keys, part.values, np.array(part.panes, np.int64))

    def _take_many(self, elements: Elements, timestamps: Times) -> None:
        keys = elements.keys or [None] * len(elements)
        rest = self._add_ahead(keys, elements.values, timestamps)
        if rest:
            indices = _together(rest)
            self._take_one_by_one(elements if indices is None else elements.at(indices.tolist()))

    def _add_ahead(self, keys: list[Any], values: list[Any], timestamps: Times) -> list[Indices | None]:
        """Add elements to those of their windows that the watermark has not reached.

        Returns:
            The indices of the elements, pane by pane, that are in another window too, or in none.
        """
        ahead: defaultdict[TimeWindow, list[Indices | None]] = defaultdict(list)
        rest: list[Indices | None] = []
        for pane, indices in by_pane(self._panes, timestamps):
            windows = self._windows_at(pane)
            not_reached = [w for w in windows if not has_passed(w.max_timestamp(), self._moment.watermark)]
            for window in not_reached:
                ahead[window].append(indices)
            if len(not_reached) < max(1, len(windows)):
                rest.append(indices)
        for window, groups in ahead.items():
            together = _together(groups)
            if together is None:
                self._add_to(window, keys, values, timestamps)
            else:
                indices = together.tolist()
                some_keys, some_values = [keys[i] for i in indices], [values[i] for i in indices]
                self._add_to(window, some_keys, some_values, timestamps[together])
        return rest

    def _windows_at(self, pane: int) -> list[TimeWindow]:
        windows = self._windows_of.get(pane)
        if windows is None:
            windows = self._windows_of[pane] = self._panes.windows(pane)
        return windows

    def _add_to(self, window: TimeWindow, keys: list[Any], values: list[Any], timestamps: Times) -> None:
        """Add elements to a window that the watermark has not reached."""
        spec, keyed = self._spec, self._keyed
        distinct = dict.fromkeys(keys)
        try:
            spec.contents.add_each(keyed.table(distinct, window, CONTENTS), keys, values, timestamps)
        except AtElement as failed:
            raise user_function_error(
                spec.name, failed.error, during="while it handled an element", key=failed.key, element=failed.element
            ) from failed.error
        last_ms = window.max_timestamp()
        cleanup_ms = cleanup_time(last_ms, spec.lateness_ms)
        keyed.event_timers.register_all(last_ms, distinct, window)
        if cleanup_ms is not None and cleanup_ms != last_ms:
            keyed.event_timers.register_all(cleanup_ms, distinct, window)

    def _take_one_by_one(self, elements: Elements) -> None:
        """Add elements to those of their windows that the watermark has passed."""
        key = value = None
        try:
            for key, value, timestamp in elements.rows():
                self._moment.key = key
                self._take_late(value, MIN_MS if timestamp is None else timestamp)
        except Exception as error:
            raise user_function_error(
                self._spec.name, error, during="while it handled an element", key=key, element=value
            ) from error

    def _take_late(self, value: Any, timestamp: int) -> None:
        accepted = False
        for window in self._spec.assigner.assign_windows(value, timestamp, self._assigner_view):
            last_ms = window.max_timestamp()
            if not has_passed(last_ms, self._moment.watermark):
                accepted = True
            elif not is_window_late(last_ms, self._spec.lateness_ms, self._moment.watermark):
                accepted = True
                self._take_in(window, value, timestamp, timestamp)
        if not accepted:
            self._on_unaccepted(value, timestamp)

    def _on_timers(self, time_ms: int, window: TimeWindow, keys: list[Any]) -> None:
        """Fire, or drop, or both, a window of many keys."""
        spec, moment, keyed = self._spec, self._moment, self._keyed
        last_ms = window.max_timestamp()
        fires = spec.trigger.on_event_time(time_ms, window, self._trigger_view).is_fire()
        drops = time_ms == cleanup_time(last_ms, spec.lateness_ms)
        table = keyed.take_table(keys, window, CONTENTS) if drops else keyed.table(keys, window, CONTENTS)
        keeps_more = drops and spec.function.user_function is not None
        main: list[Any] = []
        for moment.key in keys:
            kept = table.get(moment.key)
            if fires and kept is not None:
                for result in spec.function.fire(moment.key, spec.contents.view(kept), self._firing) or ():
                    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                        self._emit_beside(result[0], result[1], last_ms)
                    else:
                        main.append(result)
            if keeps_more:
                spec.function.clear(self._firing)
                keyed.take_all(moment.key, window, WINDOW_STATE)
        if main:
            self._outputs[None].extend(main, last_ms)


def _together(groups: list[Indices | None]) -> Indices | None:
    """The indices of several panes in the order of arrival; None stands for all there are."""
    if len(groups) == 1:
        return groups[0]
    return np.sort(np.concatenate([group for group in groups if group is not None]))
