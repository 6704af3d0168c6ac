"""Windows of Python objects that time alone assigns; elements that cannot be late are handled by key and window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.common.windows import TimeWindow
from eventide.errors import DataError, EventideError, ProgramError, StateError, StorageError, UserFunctionError
from eventide.runtime.chain.timestamps import times_of
from eventide.runtime.columnar.aggregation import ROWS
from eventide.runtime.columnar.layout import PANE, TablePayload, slices_by
from eventide.runtime.columnar.panes import panes_of, windows_in_row
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.elements.keys import groups_of_hashes, hashes_of
from eventide.runtime.elements.ownership import all_fixed, own_each
from eventide.runtime.eventtime.rules import cleanup_time, has_passed
from eventide.runtime.invoke import results_of
from eventide.runtime.metrics import LATE_DROPPED, OPEN_WINDOWS
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of
from eventide.runtime.window.contents import AtElement, TimeArray
from eventide.runtime.window.element_store import ElementStore, RowsOfPanes
from eventide.runtime.window.functions import WINDOW_STATE, WindowSpec
from eventide.runtime.window.operator import CONTENTS, WindowOperator
from eventide.runtime.window.reducing import Indices, Partials, by_pane, together
from eventide.runtime.window.reducing_columns import added_by_key, folded
from eventide.runtime.window.thinning import Thinned
from eventide.runtime.window.window_store import WindowStore

_WINDOW_STATE = "window state"
"""The name that is there when functions have asked for state by window: most never do."""

_NO_LIMIT = 2 * MAX_MS

_ERRORS: dict[str, type[EventideError]] = {
    kind.__name__: kind for kind in (DataError, ProgramError, StateError, StorageError, UserFunctionError)
}
"""The errors that the task which called a function can have told."""

_WORTH_COLUMNS = 256
"""With fewer elements in a window, calling the function is quicker than columns."""


class FixedWindowOperator(WindowOperator):
    """The window operator where time alone says which windows an element is in, and an ``EventTimeTrigger`` fires them.

    A window that the watermark has not reached takes all its elements of a micro-batch at once, in their order: they
    can neither be late nor fire, so nothing is emitted between them. They are appended to what is stored, unread; it is
    read when the window fires. The windows that the watermark has passed take theirs one by one, as in any other window
    operator. Elements that were reduced before the shuffle come as :class:`Partials`, and of others only those may come
    that the function chooses, as :class:`Thinned`: none of these windows has lateness or a side output.

    There are no timers: windows have numbers, and which of them are due follows from the watermark. Windows fire, and
    are dropped, in the order of these times; at one time, the earlier window is first. The keys of a window come in the
    order of their key groups, and within a group in that of their first elements in the window. So it is the same
    order when a micro-batch is run again, after a restart, and however elements were cut into micro-batches.
    """

    def __init__(self, spec: WindowSpec, backend: Backend, keyed: KeyedState, context: OperatorContext) -> None:
        super().__init__(spec, keyed, context)
        panes = panes_of(spec.assigner)
        if panes is None:
            raise ProgramError(f"the windows of {spec.assigner!r} are not fixed")
        self._panes = panes
        self._backend = backend
        self._max_parallelism = context.max_parallelism
        self._store = (
            WindowStore(backend, spec.contents, windows_in_row(panes))
            if spec.tables is None
            else ElementStore(backend, spec.tables, context.max_parallelism)
        )
        self._windows_of: dict[int, range] = {}
        self._had_window_state = backend.get(_WINDOW_STATE) is not None
        self._firing.uses_window_state = self._had_window_state

    def process(self, parts: Sequence[Any]) -> None:
        partials = [part for part in parts if isinstance(part, Partials)]
        if partials:
            self._take_partials(partials)
            return
        tables = [part.table for part in parts if isinstance(part, TablePayload)]
        if tables:
            self._take_aggregated(pa.concat_tables(tables))
            return
        thinned = [part for part in parts if isinstance(part, Thinned)]
        for part in thinned:
            self._count_late_panes(part.left_out)
        elements = interleave([part.elements for part in thinned] or parts)
        try:
            timestamps = times_of(elements)
        except (TypeError, pa.ArrowInvalid):
            super().process([elements])  # which says that one has none
            return
        if len(timestamps):
            self._take_many(elements, timestamps)

    @property
    def late_until(self) -> int:
        """The last time whose windows can no longer be updated."""
        return self._panes.last_time_of(self._last_late())

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether a window fires when the watermark gets there.

        With allowed lateness, late elements fire, and functions may look at the watermark then; in a gap between
        windows, an element may be late.
        """
        panes = self._panes
        may_be_seen = self._spec.lateness_ms > 0 or panes.has_gaps
        return may_be_seen or panes.is_boundary_between(self._moment.watermark, watermark_ms)

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, fire all windows that it passes, and drop those whose time has come."""
        moment = self._moment
        fired, dropped = self._last_fired(), self._last_dropped()
        moment.watermark = watermark_ms
        now_fired, now_dropped = self._last_fired(), self._last_dropped()
        moment.key = None
        try:
            for number, fires, drops in self._due(fired, now_fired, dropped, now_dropped):
                moment.window = self._panes.window(number)
                self._fire_or_drop(number, fires=fires, drops=drops)
        except AtElement as failed:
            raise self._failed(failed) from failed.error
        except Exception as error:
            raise self._failed_to_fire(error) from error
        if now_dropped > dropped:
            self._store.drop_until(now_dropped)

    def flush(self) -> None:
        try:
            self._store.flush()
        except AtElement as failed:
            raise self._failed(failed) from failed.error
        if self._firing.uses_window_state and not self._had_window_state:
            self._backend.put(_WINDOW_STATE, b"")
            self._had_window_state = True
        super().flush()

    def held(self) -> dict[str, int]:
        """How many windows wait for the watermark, where each is stored by itself; and what functions keep by key."""
        count = self._store.count_from(self._last_fired() + 1)
        return {name: n for name, n in super().held().items() if n} | ({} if count is None else {OPEN_WINDOWS: count})

    def all_entries(self) -> dict[tuple[Any, Hashable], dict[str, Any]]:
        entries = super().all_entries()
        for number in self._store.windows(self._last_dropped() + 1, _NO_LIMIT):
            for key, kept in self._store.open(number).items():
                entries.setdefault((key, self._panes.window(number)), {})[CONTENTS] = kept
        return entries

    def all_timers(self) -> list[tuple[int, Any, Hashable]]:
        """When which window of which key fires, and when it is dropped, in order of time: for harnesses."""
        timers = super().all_timers()
        for key, window in self.all_entries():
            if isinstance(window, TimeWindow):
                last_ms = window.max_timestamp()
                times = {last_ms, cleanup_time(last_ms, self._spec.lateness_ms)}
                timers += [
                    (time_ms, key, window)
                    for time_ms in times
                    if time_ms is not None and not has_passed(time_ms, self._moment.watermark)
                ]
        return sorted(timers, key=itemgetter(0))

    def _last_fired(self) -> int:
        """The number of the last window that the watermark has reached."""
        return self._panes.last_fired(self._moment.watermark)

    def _last_late(self) -> int:
        """The number of the last window that can no longer be updated."""
        return self._panes.last_late(self._spec.lateness_ms, self._moment.watermark)

    def _last_dropped(self) -> int:
        """The number of the last window whose state is dropped."""
        return self._panes.last_cleaned_up(self._spec.lateness_ms, self._moment.watermark)

    def _due(self, fired: int, now_fired: int, dropped: int, now_dropped: int) -> list[tuple[int, bool, bool]]:
        """The windows that fire, and those that are dropped, in the order of time: number, whether, whether."""
        fire = self._store.windows(fired + 1, now_fired)
        if self._spec.lateness_ms == 0:
            return [(number, True, True) for number in fire]
        looks = self._looks_at_drops()
        events = [(self._last_ms(n), n, True, n <= now_dropped and not looks) for n in fire]
        if looks:
            drop = self._store.windows(dropped + 1, now_dropped)
            events += [(add_ms(self._last_ms(n), self._spec.lateness_ms), n, False, True) for n in drop]
        return [(number, fires, drops) for _, number, fires, drops in sorted(events)]

    def _last_ms(self, number: int) -> int:
        return self._panes.window(number).max_timestamp()

    def _looks_at_drops(self) -> bool:
        """Whether something has to be done for each key of a window that is dropped."""
        return self._spec.function.has_clear or self._firing.uses_window_state

    def _fire_or_drop(self, number: int, *, fires: bool, drops: bool) -> None:
        spec, moment, firing = self._spec, self._moment, self._firing
        table = self._store.take(number) if drops else self._store.open(number)
        fire, view = spec.function.fire, spec.contents.view
        last_ms, put = moment.window.max_timestamp(), self._out.put_results
        clears = self._spec.function.has_clear
        firing.keys = self._in_order(list(table))
        for moment.key in firing.keys:
            self._enter()
            if fires and (seen := view(table[moment.key])) is not None:
                results = fire(moment.key, seen if drops else own_each([*seen]), firing)
                put(results_of(results), last_ms)
            if drops and (clears or firing.uses_window_state):
                self._clear()
        firing.keys = ()

    def _clear(self) -> None:
        """Let the function clear what it keeps of the current key and window, which is dropped."""
        self._spec.function.clear(self._firing)
        if self._firing.uses_window_state:
            self._keyed.take_all(self._moment.key, self._moment.window, WINDOW_STATE)

    def _in_order(self, keys: list[Any]) -> list[Any]:
        """Keys by key group; those of a group stay in their order."""
        groups = groups_of_hashes(hashes_of(keys), self._max_parallelism)
        return [keys[i] for i in np.argsort(groups, kind="stable").tolist()]

    def _failed(self, failed: AtElement) -> Exception:
        """Return the error for an element that the user's function could not handle."""
        return self._failed_at(failed.error, failed.key, failed.element)

    def _take_partials(self, parts: list[Partials]) -> None:
        for part in parts:
            for pane, kind, said in part.failures:
                if not self._is_late_pane(pane):
                    raise _ERRORS.get(kind, UserFunctionError)(said)
        for part in parts:
            self._count_late_panes(part.counts)
            if part.keys:
                self._add_objects(part.keys, part.values, np.array(part.panes, np.int64))

    def _is_late_pane(self, pane: int) -> bool:
        """Whether no window of a pane can be updated any more."""
        return self._windows_at(pane).stop - 1 <= self._last_late()

    def _take_aggregated(self, partials: pa.Table) -> None:
        """Take what was aggregated before the shuffle, by key and pane; no window of theirs has lateness."""
        if not isinstance(self._store, ElementStore):
            raise TypeError("aggregates are kept on columns")
        first_ahead, late = self._last_fired() + 1, []
        for pane, table in slices_by(partials, PANE):
            windows = self._windows_at(pane)
            if windows.stop <= first_ahead:
                late.append((pane, int(pc.sum(table.column(ROWS)).as_py())))
            else:
                self._store.add([(range(max(windows.start, first_ahead), windows.stop), None)], table)
        self._count_late(late)

    def _count_late_panes(self, counts: Sequence[tuple[int, int]]) -> None:
        """Count the elements of panes that are late, given the start of each pane and the number of its elements."""
        self._count_late([each for each in counts if self._is_late_pane(each[0])])

    def _count_late(self, late: list[tuple[int, int]]) -> None:
        """Count late elements, given as the start of a pane and the number of its elements."""
        if late:
            starts, counts = np.array(late, np.int64).T
            last, watermark_ms = self._panes.last_of(starts), self._moment.watermark
            self._metrics.count_late(self._spec.name, LATE_DROPPED, last, watermark_ms, counts)

    def _take_many(self, elements: Elements, timestamps: TimeArray) -> None:
        if isinstance(self._store, ElementStore):
            ahead, rest = self._ahead(timestamps)
            self._store.add(ahead, self._store.tables.of(elements))
        elif (folded := self._fold(elements, timestamps, self._store)) is not None:
            rest = folded
        else:
            rest = self._add_objects(elements.keys or [None] * len(elements), elements.values, timestamps)
        if rest:
            indices = together(rest)
            self._take_one_by_one(elements if indices is None else elements.at(indices))

    def _fold(self, elements: Elements, timestamps: TimeArray, store: WindowStore) -> list[Indices | None] | None:
        """Add columns to their windows that the watermark has not reached, if the function is a fold that is known.

        Returns:
            As :meth:`_add_objects`; None if nothing was added, because Python has to be called with each element.
        """
        columns = elements.columns
        if columns is None or not elements.is_unread or len(elements) < _WORTH_COLUMNS:
            return None
        ahead, rest = self._ahead(timestamps)
        by_window = _by_window(ahead)
        if len(elements) < _WORTH_COLUMNS * len(by_window):
            return None
        keys, changes = elements.keys or [None] * len(elements), []
        try:
            fold, values = folded(self._spec.contents, columns)
            for window, groups in by_window.items():
                at = together(groups)
                kept = store.kept(window, len(elements) if at is None else len(at))
                if kept is None:
                    return None
                of = (keys, values) if at is None else ([keys[i] for i in at.tolist()], values.take(pa.array(at)))
                changes.append((kept, added_by_key(fold, *of, kept)))
        except NotTraceable:
            return None
        except (Guard, pa.ArrowException) as error:
            self._metrics.count_in_python(self._spec.name, reason_of(error))
            return None
        except AtElement as failed:
            raise self._failed(failed) from failed.error
        for kept, added in changes:
            kept.update(added)
        return rest

    def _ahead(self, timestamps: TimeArray) -> tuple[list[tuple[range, Indices | None]], list[Indices | None]]:
        """The windows of each pane that the watermark has not reached, with the indices of its elements.

        Beside them, the indices of the elements, pane by pane, that are in another window too, or in none.
        """
        ahead: list[tuple[range, Indices | None]] = []
        rest: list[Indices | None] = []
        first_ahead = self._last_fired() + 1
        for pane, indices in by_pane(self._panes, timestamps):
            windows = self._windows_at(pane)
            not_reached = range(max(windows.start, first_ahead), windows.stop)
            if not_reached:
                ahead.append((not_reached, indices))
            if len(not_reached) < max(1, len(windows)):
                rest.append(indices)
        return ahead, rest

    def _add_objects(self, keys: list[Any], values: list[Any], timestamps: TimeArray) -> list[Indices | None]:
        """Add objects to those of their windows that the watermark has not reached.

        Returns:
            The indices of those, pane by pane, that are in another window too, or in none.
        """
        store = self._store
        if isinstance(store, ElementStore):
            raise TypeError("elements that are kept on columns are not reduced")
        ahead, rest = self._ahead(timestamps)
        by_window = _by_window(ahead)
        is_in_several = self._panes.per_window > 1 and not all_fixed(values)
        try:
            for window, groups in by_window.items():
                at = together(groups)
                if at is None:
                    store.add(window, keys, own_each(values) if is_in_several else values, timestamps)
                else:
                    some_keys, some_values = [keys[i] for i in at.tolist()], [values[i] for i in at.tolist()]
                    some_values = own_each(some_values) if is_in_several else some_values
                    store.add(window, some_keys, some_values, timestamps[at])
        except AtElement as failed:
            raise self._failed(failed) from failed.error
        return rest

    def _windows_at(self, pane: int) -> range:
        windows = self._windows_of.get(pane)
        if windows is None:
            windows = self._windows_of[pane] = self._panes.windows_at(self._panes.number_of(pane))
        return windows

    def _take_one_by_one(self, elements: Elements) -> None:
        """Add elements to those of their windows that the watermark has passed."""
        key = value = None
        try:
            for key, value, timestamp in elements.rows():
                self._moment.key = key
                self._take_late(value, MIN_MS if timestamp is None else timestamp)
        except AtElement as failed:
            raise self._failed(failed) from failed.error
        except Exception as error:
            raise self._failed_at(error, key, value) from error

    def _take_late(self, value: object, timestamp: int) -> None:
        panes, moment = self._panes, self._moment
        late_until = self._last_late()
        windows = self._windows_at(int(panes.start_of(np.array([timestamp]))[0]))
        if windows.stop - 1 <= late_until or not windows:
            self._on_unaccepted(value, timestamp)
        passed = range(max(windows.start, late_until + 1), min(windows.stop, self._last_fired() + 1))
        for number in reversed(passed):  # as assigners give them
            moment.window = panes.window(number)
            kept = self._store.add_late(number, moment.key, value, timestamp)
            self._show(kept, stays=True)


def _by_window(ahead: RowsOfPanes) -> dict[int, list[Indices | None]]:
    """The indices of the elements of each window, pane by pane."""
    by_window: defaultdict[int, list[Indices | None]] = defaultdict(list)
    for windows, indices in ahead:
        for window in windows:
            by_window[window].append(indices)
    return by_window
