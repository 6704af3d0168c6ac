"""Sessions, and windows of processing time, whose function is a fold: columns are added by key and window at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import EventTimeSessionWindows, ProcessingTimeSessionWindows
from eventide.common.ms import MIN_MS
from eventide.common.windows import TimeWindow
from eventide.runtime.chain.timestamps import times_of
from eventide.runtime.columnar.gaps import DYNAMIC, DynamicGapSessions, traced_gaps
from eventide.runtime.columnar.keyed_operators import sessions_of
from eventide.runtime.columnar.panes import later
from eventide.runtime.elements.elements import Elements, Numbers, interleave
from eventide.runtime.elements.keys import first_rows, numbers_of_columns
from eventide.runtime.elements.ordering import are_first, highest_so_far, order_by
from eventide.runtime.eventtime.rules import has_passed
from eventide.runtime.tracing.admission import NotTraceable, says_in_python
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of
from eventide.runtime.window.contents import TimeArray
from eventide.runtime.window.operator import CONTENTS, WindowOperator
from eventide.runtime.window.reducing_columns import added_by_key, fold_from_left, folded

_ONE_GAP = (EventTimeSessionWindows, ProcessingTimeSessionWindows)

_WORTH_COLUMNS = 256
"""With fewer elements, calling the function is quicker than columns."""

_FEWEST_BY_GROUP = 2
"""As long as groups have fewer elements at the mean, calling the function is quicker."""


@dataclass(frozen=True, slots=True)
class Group:
    """The elements of a key that are in one window.

    Attributes:
        number: that of the group.
        key: the key.
        window: the window that these elements make by themselves.
        before: the windows of the key that become one with it.
        at: the index of the element after which the window is what it becomes.
    """

    number: int
    key: Any
    window: TimeWindow
    before: tuple[TimeWindow, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Intervals:
    """Sessions of elements alone, in the order of their first elements.

    Attributes:
        number: the session of each element.
        keys: the key of each session, by its number.
        starts: when each begins, in milliseconds.
        ends: when each ends (exclusive).
        firsts: the index of the first element of each.
        lowest_at: the index of the element that made each begin where it does.
        highest_at: the index of the element that made each end where it does.
        is_bridged: whether each consisted of several for a while, until an element between them came.
    """

    number: Numbers
    keys: Numbers
    starts: TimeArray
    ends: TimeArray
    firsts: Numbers
    lowest_at: Numbers
    highest_at: Numbers
    is_bridged: np.ndarray[Any, np.dtype[np.bool_]]


def intervals_of(keys: Numbers, starts: TimeArray, ends: TimeArray) -> Intervals:
    """The sessions of some elements, which are in the order of their arrival.

    Args:
        keys: the key of each element, as a number from 0; each number up to the highest occurs.
        starts: its timestamp, in milliseconds.
        ends: that plus its gap.

    >>> times = np.array([5, 20, 0, 7])
    >>> found = intervals_of(np.array([0, 0, 0, 1]), times, times + 10)
    >>> found.number.tolist(), found.starts.tolist(), found.ends.tolist(), found.lowest_at.tolist()
    ([0, 1, 0, 2], [0, 20, 7], [15, 30, 17], [2, 1, 3])
    """
    number = numbers_of_columns([pa.array(sessions_of(keys, starts, ends).number)])
    order = order_by(number)
    groups, starts, ends = number[order], starts[order], ends[order]
    highest, lowest = highest_so_far(groups, ends), ~highest_so_far(groups, ~starts)
    begins = are_first(groups)
    before_highest, before_lowest = np.roll(highest, 1), np.roll(lowest, 1)
    firsts = first_rows(number)
    lowest_at, highest_at, is_bridged = firsts.copy(), firsts.copy(), np.zeros(len(firsts), bool)
    is_bridged[groups[((starts > before_highest) | (ends < before_lowest)) & ~begins]] = True
    for at, moves in ((lowest_at, starts < before_lowest), (highest_at, ends > before_highest)):
        moved = moves & ~begins
        at[groups[moved]] = order[moved]  # of several, the last one stays
    last = np.append(np.flatnonzero(begins)[1:], len(order)) - 1
    return Intervals(number, keys[firsts], lowest[last], highest[last], firsts, lowest_at, highest_at, is_bridged)


class FoldingWindowOperator(WindowOperator):
    """The window operator of sessions and of windows of processing time whose function may be a fold that is known.

    Of each micro-batch, the elements of a key that are in one window are added at once, from left to right, on columns.
    What is kept, and which timers are set in which order, is the same as if they were handled one by one. The elements
    of a key are handled one by one where that could differ: if the watermark has passed the window of one of them by
    itself, if two windows that were there become one, or if one of the elements joins others.
    """

    def process(self, parts: list[Elements]) -> None:
        elements = interleave(parts)
        self._keyed.open_all(elements.keys)
        added = self._added(elements)
        if added is None:
            self._take_each(elements.rows())
            return
        contents, rest = added
        begin = 0
        for group, kept in contents:
            if begin < len(rest) and rest[begin] < group.at:
                end = int(np.searchsorted(rest, group.at))
                self._take_each(elements.at(rest[begin:end]).rows())
                begin = end
            self._put(group, kept)
        self._take_each(elements.at(rest[begin:]).rows())

    def _added(self, elements: Elements) -> tuple[list[tuple[Group, list[Any]]], Numbers] | None:
        """The content of each window after the elements of a group were added, and the indices of all other elements.

        None if all elements have to be handled one by one.
        """
        columns = elements.columns
        if columns is None or not elements.is_unread or len(elements) < _WORTH_COLUMNS:
            return None
        keys = elements.keys or [None] * len(elements)
        numbers: dict[Any, int] = {}
        codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(keys))
        try:
            fold_from_left(self._spec.contents, columns.type_info)  # raises early
            of_elements, rounds = self._groups(elements, codes, [*numbers])
            if not any(rounds):
                return None
            fold, values = folded(self._spec.contents, columns)
            is_alone = np.ones(int(of_elements.max()) + 1, bool)
            is_alone[[group.number for group in rounds[0]]] = False
            together, rest = (np.flatnonzero(is_alone[of_elements] == alone) for alone in (False, True))
            mine = values.take(pa.array(together)) if len(rest) else values
            added = []
            for groups in rounds:
                kept = {group.number: held for group in groups if (held := self._kept(group)) is not None}
                changed = added_by_key(fold, of_elements[together].tolist(), mine, kept)
                added += [(group, changed[group.number]) for group in groups]
        except NotTraceable:
            return None
        except (Guard, pa.ArrowException) as error:
            self._metrics.count_in_python(self._spec.name, reason_of(error))
            return None
        return sorted(added, key=lambda each: each[0].at), rest

    def _kept(self, group: Group) -> list[Any] | None:
        """The content of the window that becomes one with that of a group."""
        kept: list[Any] | None = None
        for window in group.before:
            kept = self._keyed.read(group.key, window, CONTENTS)
        return kept

    def _groups(self, elements: Elements, codes: Numbers, keys: list[Any]) -> tuple[Numbers, list[list[Group]]]:
        """The number of the group of each element, and the groups of those keys that are not handled one by one.

        There are none if they would have too few elements each. Where elements are in several windows, there is a list
        for each of them.
        """
        assigner, passed = self._spec.assigner, np.zeros(len(codes), bool)
        if not isinstance(assigner, (*_ONE_GAP, *DYNAMIC)):
            return self._groups_by_clock(codes, keys)
        starts = np.full(len(codes), self._moment.processing_time)
        if assigner.is_event_time():
            starts = _times_of(elements)
        gaps = assigner.session_gap if isinstance(assigner, _ONE_GAP) else _gaps_of(assigner, elements)
        ends = later(starts, gaps)
        if assigner.is_event_time():
            passed = has_passed(ends - 1, self._moment.watermark)
        found = intervals_of(codes, starts, ends)
        if len(found.starts) * _FEWEST_BY_GROUP > len(codes):
            return found.number, [[]]
        one_by_one = {*codes[passed].tolist(), *found.keys[found.is_bridged].tolist()}
        firsts = list(map(TimeWindow, starts[found.firsts].tolist(), ends[found.firsts].tolist()))
        groups = list(self._sessions(found, firsts, keys, one_by_one))
        return found.number, [[group for code, group in groups if code not in one_by_one]]

    def _groups_by_clock(self, codes: Numbers, keys: list[Any]) -> tuple[Numbers, list[list[Group]]]:
        """As :meth:`_groups`, where all elements are in the windows of this moment."""
        if len(keys) * _FEWEST_BY_GROUP > len(codes):
            return codes, [[]]
        firsts = first_rows(codes).tolist()
        windows = self._spec.assigner.assign_windows(None, MIN_MS, self._assigner_view)
        of_keys = [*enumerate(zip(keys, firsts, strict=True))]
        return codes, [[Group(number, key, one, (one,), at) for number, (key, at) in of_keys] for one in windows]

    def _sessions(
        self, found: Intervals, firsts: list[TimeWindow], keys: list[Any], one_by_one: set[int]
    ) -> Iterator[tuple[int, Group]]:
        """Give the sessions of elements with their keys, by number; put keys that they do not fit into a set."""
        seen: set[tuple[int, TimeWindow]] = set()
        columns = (found.keys, found.starts, found.ends, found.firsts, found.lowest_at, found.highest_at)
        of_groups = zip(*(column.tolist() for column in columns), strict=True)
        for number, (code, start, end, first, lowest_at, highest_at) in enumerate(of_groups):
            if code in one_by_one:
                continue
            window, key = TimeWindow(start, end), keys[code]
            before = self._windows.touched(key, window)
            at = max(lowest_at, highest_at)
            if before:
                there = before[0]
                if len(before) > 1 or (code, there) in seen or not there.intersects(firsts[number]):
                    one_by_one.add(code)
                    continue
                seen.add((code, there))
                at = max(lowest_at if start < there.start else first, highest_at if end > there.end else first)
            yield code, Group(number, key, window, before, at)

    def _put(self, group: Group, kept: list[Any]) -> None:
        """Let a window have a new content, and its trigger know."""
        moment = self._moment
        moment.key = group.key
        window = self._windows.add(group.key, group.window, self._on_merge)
        moment.window = window
        self._keyed.write(group.key, self._windows.state_window(group.key, window), CONTENTS, kept)
        self._tell_trigger(window, None, MIN_MS)


def _times_of(elements: Elements) -> TimeArray:
    try:
        times: TimeArray = times_of(elements)
    except (TypeError, pa.ArrowInvalid):
        raise Guard("an element without a timestamp") from None
    return times


def _gaps_of(assigner: DynamicGapSessions, elements: Elements) -> TimeArray:
    if elements.columns is None or says_in_python(assigner.session_window_time_gap_extractor):
        raise NotTraceable("the program says in_python of the gap extractor")
    gaps: TimeArray = traced_gaps(assigner, elements.columns).to_numpy()
    return gaps
