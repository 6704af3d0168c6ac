"""Session windows, and windows of a number of elements, by column, in tables of rows by key."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP, Aggregation
from eventide.runtime.columnar.layout import (
    END,
    GAP,
    PANE,
    START,
    WINDOW,
    Array,
    TablePayload,
    key_numbers,
    numbered_together,
    numbers_in,
)
from eventide.runtime.columnar.operator import ColumnarOperator, ColumnarWindow
from eventide.runtime.columnar.panes import Panes, RegularPanes, later
from eventide.runtime.columnar.stores import KeyedTable
from eventide.runtime.elements.keys import first_rows
from eventide.runtime.elements.ordering import highest_so_far, order_by, spread
from eventide.runtime.eventtime.rules import has_passed, is_window_late, latest_late_time, passes
from eventide.runtime.metrics import KEYS, OPEN_SESSIONS
from eventide.runtime.state.backend import Backend
from eventide.runtime.tasks.operator import OperatorContext

_SESSION = "__session"


class KeyedTableOperator(ColumnarOperator):
    """Keeps what is open of each key as rows of a table."""

    def __init__(self, spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._schema = spec.stored_schema("")
        self._open = KeyedTable(backend, self._schema, self.keys)

    def flush(self) -> None:
        """Store the state."""
        self._open.flush(self._due(self._open.table))

    @abstractmethod
    def _due(self, opened: pa.Table) -> Array:
        """When something is due of each row."""


class SessionOperator(KeyedTableOperator):
    """Keeps the open sessions of each key with their partial aggregates, and merges them by sorting.

    An element that is late by itself is taken if it touches a session that is still open when it arrives, as in Flink;
    so elements come here in their order, and are not aggregated before the shuffle.
    """

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements to the sessions of their keys."""
        rows = self.rows(parts)
        self._open.read_keys_of(rows)
        late = self._late(rows)
        self.report_late(rows, late)
        if late.any():
            rows = rows.filter(pa.array(~late))
        if len(rows):
            self._take(rows)

    @property
    def late_until(self) -> int:
        """The last time whose session, of one element, is late; open sessions may take it in all the same."""
        return add_ms(self._last_late(), 0 if self.spec.gap_ms is None else 1 - self.spec.gap_ms)

    def advance(self, watermark_ms: int) -> None:
        """Fire the sessions that the watermark passes, in the order of time, and drop those that are late."""
        before, self.watermark = self.watermark, watermark_ms
        self._open.read_due(watermark_ms)
        sessions = self._open.table
        last = numbers_in(sessions, END) - 1
        self._emit(sessions.filter(pa.array(passes(last, before, watermark_ms))))
        self._drop_late()

    def held(self) -> dict[str, int]:
        """How many sessions are open, or may still be added to."""
        return {OPEN_SESSIONS: self._open.count}

    def _drop_late(self) -> None:
        stays = numbers_in(self._open.table, END) - 1 > self._last_late()
        self._open.table = self._open.table.filter(pa.array(stays))

    def _take(self, rows: pa.Table) -> None:
        """Add elements that are not late."""
        self._add(self._of_rows(rows))

    def _of_rows(self, rows: pa.Table) -> pa.Table:
        """New sessions, each of the elements of a key that are no further apart than the gap."""
        times = numbers_in(rows, TIMESTAMP)
        found = sessions_of(key_numbers(rows, self.keys), times, self._ends(rows))
        numbered = rows.append_column(_SESSION, pa.array(found.number))
        partials = self.spec.aggregation.partial(numbered, [_SESSION])
        return self._sessions(partials, rows, found)

    def _add(self, new: pa.Table) -> None:
        """Merge new sessions into the open ones; one that the watermark has passed already fires (again)."""
        before = self._open.table
        together = pa.concat_tables([before, new])
        found = sessions_of(key_numbers(together, self.keys), numbers_in(together, START), numbers_in(together, END))
        if len(found.first) == len(together):
            self._open.table = together.take(found.first)
        else:
            numbered = together.append_column(_SESSION, pa.array(found.number))
            partials = self.spec.aggregation.merge(numbered, [_SESSION])
            self._open.table = self._sessions(partials, together, found)
        touched = np.zeros(len(found.first), bool)
        touched[found.number[len(before) :]] = True
        self._emit(self._open.table.filter(pa.array(touched & has_passed(found.ends - 1, self.watermark))))

    def _sessions(self, partials: pa.Table, intervals: pa.Table, found: MergedIntervals) -> pa.Table:
        """A table with a row for each session, in the order of their numbers."""
        partials = partials.take(np.argsort(numbers_in(partials, _SESSION)))
        columns = {name: intervals.column(name).take(found.first) for name in self.keys}
        columns |= {START: pa.array(found.starts), END: pa.array(found.ends)}
        columns |= {field.name: partials.column(field.name) for field in self.spec.aggregation.partial_fields}
        return pa.table(columns, schema=self._schema)

    def _emit(self, sessions: pa.Table) -> None:
        if len(sessions):
            sessions = sessions.sort_by([(END, "ascending"), (START, "ascending")])
            starts, ends = numbers_in(sessions, START), numbers_in(sessions, END)
            self.outputs.add(sessions, (starts, ends), ends - 1)

    def _late(self, rows: pa.Table) -> Array:
        """Which rows come too late.

        A row that is late by itself is looked at one by one, with those rows of its key that could reach it.
        """
        times, window_ends, last_late = numbers_in(rows, TIMESTAMP), self._ends(rows), self._last_late()
        alone = window_ends - 1 <= last_late
        if not alone.any():
            return alone
        open_keys, row_keys = numbered_together(self._open.table, rows, self.keys)
        sessions: dict[int, list[tuple[int, int]]] = {}
        starts, ends = (numbers_in(self._open.table, name).tolist() for name in (START, END))
        for key, start, end in zip(open_keys.tolist(), starts, ends, strict=True):
            sessions.setdefault(key, []).append((start, end))
        near = np.isin(row_keys, row_keys[alone]) & (times <= add_ms(last_late, 1))
        late = np.zeros(len(rows), bool)
        for at in np.flatnonzero(near).tolist():
            of_key = sessions.setdefault(int(row_keys[at]), [])
            late[at] = not self._is_taken(of_key, int(times[at]), int(window_ends[at]))
        return late

    def _last_late(self) -> int:
        """The last time of sessions that are late."""
        return latest_late_time(self.spec.lateness_ms, self.watermark)

    def _ends(self, rows: pa.Table) -> Array:
        """Where the window of each row ends, by itself."""
        gaps = numbers_in(rows, GAP) if self.spec.gap_ms is None else self.spec.gap_ms
        return later(numbers_in(rows, TIMESTAMP), gaps)

    def _is_taken(self, sessions: list[tuple[int, int]], start: int, end: int) -> bool:
        """Whether the window of an element finds, or makes, a session that is not late, and is put there then."""
        apart = []
        for session in sessions:
            if session[0] <= end and session[1] >= start:
                start, end = min(start, session[0]), max(end, session[1])
            else:
                apart.append(session)
        if is_window_late(add_ms(end, -1), self.spec.lateness_ms, self.watermark):
            return False
        sessions[:] = [*apart, (start, end)]
        return True

    def _due(self, sessions: pa.Table) -> Array:
        """When something is due of each session: it fires, or has fired and is dropped."""
        last = numbers_in(sessions, END) - 1
        due: Array = np.where(has_passed(last, self.watermark), later(last, self.spec.lateness_ms), last)
        return due


@dataclass(frozen=True, slots=True)
class MergedIntervals:
    """Intervals put together: ``number`` is the session of each interval; the others have an entry for each session.

    ``first`` is an interval of each session, from which its key can be taken.
    """

    number: Array
    first: Array
    starts: Array
    ends: Array


def sessions_of(keys: Array, starts: Array, ends: Array) -> MergedIntervals:
    """Put intervals of one key that overlap or touch into one session.

    Intervals of a key that all have a moment in common are one session, without being sorted.

    Args:
        keys: the key of each interval, as a number from 0; each number up to the highest occurs.
        starts: when each begins, in milliseconds.
        ends: when each ends (exclusive), in milliseconds.

    >>> found = sessions_of(np.array([0, 0, 1, 0]), np.array([0, 10, 5, 21]), np.array([10, 20, 15, 31]))
    >>> found.number.tolist(), found.starts.tolist(), found.ends.tolist()
    ([1, 1, 0, 2], [5, 0, 21], [15, 20, 31])
    """
    first = first_rows(keys)
    last_start, first_end = starts[first], ends[first]
    np.maximum.at(last_start, keys, starts)
    np.minimum.at(first_end, keys, ends)
    is_one = last_start <= first_end
    if not is_one.any():
        return _sorted_sessions(keys, starts, ends)
    first_start, last_end = starts[first], ends[first]
    np.minimum.at(first_start, keys, starts)
    np.maximum.at(last_end, keys, ends)
    number = (np.cumsum(is_one) - 1)[keys]
    others = np.flatnonzero(~is_one[keys])
    found = _sorted_sessions(keys[others], starts[others], ends[others])
    number[others] = np.count_nonzero(is_one) + found.number
    return MergedIntervals(
        number,
        np.concatenate([first[is_one], others[found.first]]),
        np.concatenate([first_start[is_one], found.starts]),
        np.concatenate([last_end[is_one], found.ends]),
    )


def _sorted_sessions(keys: Array, starts: Array, ends: Array) -> MergedIntervals:
    order = order_by(keys, starts)
    sorted_keys, sorted_starts = keys[order], starts[order]
    reach = highest_so_far(sorted_keys, ends[order])
    is_first = np.ones(len(order), bool)
    is_first[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (sorted_starts[1:] > reach[:-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_first) - 1
    at = np.flatnonzero(is_first)
    last = np.append(at[1:], len(order)) - 1 if len(at) else at
    return MergedIntervals(number, order[at], sorted_starts[at], reach[last])


_PART = "__part"
_ROWS_AT_ONCE = 1 << 21


class CountOperator(KeyedTableOperator):
    """Fires a window of a key after every few of its elements, with all that it holds, which then stays or goes.

    Windows are those of time, or there is one for each key. What came of a key and window since the last firing, or
    between two of them, is a part. A part that is purged is a firing; where nothing is purged, a firing is all parts up
    to one.

    Windows of time go at the end of their allowed lateness, and do not fire then. Flink: ``CountTrigger``, alone or in
    a ``PurgingTrigger``.
    """

    def __init__(self, spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, backend, context)
        self._every = spec.counting.every
        self._purges = spec.counting.size is not None
        self._times = spec.panes
        self._window = [] if spec.panes is None else [WINDOW]

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements to their windows, in their order."""
        arrived, times = self.rows(parts), self._times
        for rows in [arrived] if times is None else self.in_windows(arrived, times, self._last_late(times)):
            self._open.read_keys_of(rows)
            self._add(rows)

    @property
    def late_until(self) -> int:
        """The last time whose windows can no longer be updated; ``MIN_MS`` if windows have no time."""
        return MIN_MS if self._times is None else self._times.last_time_of(self._last_late(self._times))

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether an element may be late once the watermark is there."""
        lateness_ms = self.spec.lateness_ms
        return self._times is not None and self._times.reacts_between(self.watermark, watermark_ms, lateness_ms)

    def advance(self, watermark_ms: int) -> None:
        """Drop windows of time that can no longer be updated; nothing fires."""
        self.watermark = watermark_ms
        if self._times is not None:
            self._open.read_due(watermark_ms)
            stays = numbers_in(self._open.table, WINDOW) > self._last_late(self._times)
            self._open.table = self._open.table.filter(pa.array(stays))

    def held(self) -> dict[str, int]:
        """How many keys have a window that holds something; not where a key may have several."""
        return {} if self._window else {KEYS: self._open.count}

    def _last_late(self, times: Panes) -> int:
        return times.last_late(self.spec.lateness_ms, self.watermark)

    def _due(self, opened: pa.Table) -> Array:
        """When each window is dropped."""
        if self._times is None:
            return np.full(len(opened), MAX_MS)
        return later(self._times.last_ms(numbers_in(opened, WINDOW)), self.spec.lateness_ms)

    def _add(self, rows: pa.Table) -> None:
        """Add each row to its window, and fire."""
        before = self._open.table
        place = self._places(before, rows)  # of each row in the parts of its window: the open part is number 0
        rows = rows.append_column(_PART, pa.array(place // self._every))
        by = [*self.keys, *self._window, _PART]
        partials = self.spec.aggregation.partial(rows, by)
        opened = before.append_column(_PART, pa.array(np.zeros(len(before), np.int64)))
        parts = self.merged(pa.concat_tables([opened.select(partials.column_names), partials]), *self._window, _PART)
        stays = np.ones(len(parts), bool)
        if not self._purges:
            windows, part = key_numbers(parts, by[:-1]), numbers_in(parts, _PART)
            order = np.lexsort((part, windows))
            parts, windows = parts.take(order), windows[order]
            sums = running(self.spec.aggregation, parts, windows)
            parts = pa.table({name: (parts if name in by else sums).column(name) for name in parts.column_names})
            stays[:-1] = windows[1:] != windows[:-1]
        firing = rows.filter(pa.array(place % self._every == self._every - 1)).select(by)
        of_parts, of_rows = numbered_together(parts, firing, by)
        fires = np.isin(of_parts, of_rows)
        if self._purges:
            stays = ~fires
        self._open.table = parts.filter(pa.array(stays)).select(self._schema.names)
        at = np.flatnonzero(fires)
        in_order = np.empty(len(at), np.int64)
        in_order[np.argsort(of_rows)] = at[np.argsort(of_parts[at])]
        fired = parts.take(in_order)
        if self._times is None:
            self.outputs.add(fired, None, np.full(len(fired), MAX_MS))
        else:
            self.emit(fired, self._times)

    def _places(self, opened: pa.Table, rows: pa.Table) -> Array:
        """How many elements of its window come before each row, among those that count, and in this micro-batch."""
        open_keys, row_keys = numbered_together(opened, rows, [*self.keys, *self._window])
        counts = np.zeros(int(max(open_keys.max(initial=0), row_keys.max(initial=0))) + 1, np.int64)
        np.maximum.at(counts, open_keys, self._ends(opened))
        order = np.argsort(row_keys, kind="stable")
        starts = np.searchsorted(row_keys[order], np.arange(len(counts)))
        places: Array = np.empty(len(rows), np.int64)
        places[order] = np.arange(len(rows)) - starts[row_keys[order]]
        places += counts[row_keys]
        return places

    def _ends(self, opened: pa.Table) -> Array:
        """How many elements since the last firing each row of the table has."""
        return numbers_in(opened, ROWS) % self._every


_PLACE = "__place"


def running(aggregation: Aggregation, partials: pa.Table, groups: Array) -> pa.Table:
    """Partial aggregates, each merged with all before it of its group, whose rows follow each other.

    Neighbours are merged to pairs, and the running aggregates of pairs are those of every second row; so each row is
    merged twice, whatever the length of a group.
    """
    partials = partials.select([field.name for field in aggregation.partial_fields])
    begins = np.append(True, groups[1:] != groups[:-1]) if len(groups) else np.zeros(0, bool)
    _, place = spread(np.diff(np.append(np.flatnonzero(begins), len(groups))))
    if not place.any():
        return partials
    is_second = place % 2 == 1
    pair = np.cumsum(~is_second) - 1
    of_pairs = _merged_by(aggregation, partials, pair)
    of_pairs = running(aggregation, of_pairs, groups[~is_second])
    later = np.flatnonzero(~is_second & (place > 0))
    third = pa.concat_tables([of_pairs.take(pair[later] - 1), partials.take(later)])
    third = _merged_by(aggregation, third, np.tile(np.arange(len(later)), 2))
    source = np.arange(len(groups))
    source[is_second] = len(groups) + pair[is_second]
    source[later] = len(groups) + len(of_pairs) + np.arange(len(later))
    return pa.concat_tables([partials, of_pairs, third]).take(source)


def _merged_by(aggregation: Aggregation, partials: pa.Table, groups: Array) -> pa.Table:
    """The partial aggregates of each group, numbered from 0, in the order of these numbers."""
    merged = aggregation.merge(partials.append_column(_PLACE, pa.array(groups)), [_PLACE])
    return merged.take(np.argsort(numbers_in(merged, _PLACE))).drop_columns([_PLACE])


class SlidingCountOperator(CountOperator):
    """Fires each key after every ``slide`` elements, with the last ``size`` of them, or all if there are fewer.

    Elements of a key have positions, from 0, which fall into panes as times do. The pane of the last element stays in
    any case: it says how many there were.
    """

    def __init__(self, spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, backend, context)
        self._size = size = spec.counting.size or spec.counting.every
        self._slide = slide = spec.counting.every
        self._panes = RegularPanes(size, slide, -size % slide)

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements to the panes of their keys, in their order, and fire with those that are due."""
        rows = self.rows(parts)
        self._open.read_keys_of(rows)
        before = self._open.table
        place = self._places(before, rows)
        paned = rows.append_column(PANE, pa.array(self._panes.start_of(place)))
        partials = self.spec.aggregation.partial(paned, [*self.keys, PANE])
        panes = self.merged(pa.concat_tables([before.select(partials.column_names), partials]), PANE)
        firing = (place + 1) % self._slide == 0
        self._fire(panes, rows.filter(pa.array(firing)), place[firing] + 1)
        self._open.table = panes.filter(pa.array(self._needed(panes))).select(self._schema.names)

    def held(self) -> dict[str, int]:
        """Nothing: keys have several rows."""
        return {}

    def _ends(self, opened: pa.Table) -> Array:
        return numbers_in(opened, PANE) + numbers_in(opened, ROWS)

    def _needed(self, panes: pa.Table) -> Array:
        """Which panes a window that has not fired has, or hold the last element of their key."""
        keys = key_numbers(panes, self.keys)
        counts = np.zeros(keys.max(initial=-1) + 1, np.int64)
        np.maximum.at(counts, keys, self._ends(panes))
        count = counts[keys]
        next_end = (count // self._slide + 1) * self._slide
        needed: Array = (numbers_in(panes, PANE) >= next_end - self._size) | (self._ends(panes) == count)
        return needed

    def _fire(self, panes: pa.Table, rows: pa.Table, ends: Array) -> None:
        """Emit the windows that end with some elements, at these positions, in the order of the elements."""
        keys, firing = numbered_together(panes, rows, self.keys)
        starts = numbers_in(panes, PANE)
        first = np.full(max(keys.max(initial=-1), firing.max(initial=-1)) + 1, MAX_MS)
        np.minimum.at(first, keys, starts)
        span = int((ends - first[firing]).max(initial=0)) + int((starts - first[keys]).max(initial=0)) + 1
        places = keys * span + starts - first[keys]
        order = np.argsort(places)
        low = np.maximum(ends - self._size - first[firing], 0)
        begin = np.searchsorted(places[order], firing * span + low)
        counts = np.searchsorted(places[order], firing * span + ends - first[firing]) - begin
        bounds = np.cumsum(counts)
        for some in np.split(np.arange(len(ends)), np.flatnonzero(np.diff(bounds // _ROWS_AT_ONCE)) + 1):
            at, within = spread(counts[some])
            window = some[at]
            taken = panes.take(order[begin[window] + within]).drop_columns([PANE])
            merged = self.merged(taken.append_column(WINDOW, pa.array(window)), WINDOW)
            merged = merged.take(np.argsort(numbers_in(merged, WINDOW)))
            self.outputs.add(merged, None, np.full(len(merged), MAX_MS))
