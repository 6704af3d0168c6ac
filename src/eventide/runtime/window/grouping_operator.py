"""Sessions, windows of processing time and of counts: elements are added by key and window, and folds on columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import EventTimeSessionWindows, ProcessingTimeSessionWindows
from eventide.api.windows.triggers import COUNT
from eventide.common.ms import MIN_MS
from eventide.common.windows import TimeWindow
from eventide.runtime.chain.timestamps import times_of
from eventide.runtime.columnar.gaps import DYNAMIC, DynamicGapSessions, traced_gaps
from eventide.runtime.columnar.keyed_operators import sessions_of
from eventide.runtime.columnar.panes import later
from eventide.runtime.elements.elements import Elements, Numbers, interleave
from eventide.runtime.elements.keys import first_rows, numbers_of_columns
from eventide.runtime.elements.ordering import are_first, highest_so_far, order_by
from eventide.runtime.elements.ownership import all_fixed, own_each
from eventide.runtime.eventtime.rules import has_passed
from eventide.runtime.tracing.admission import NotTraceable, says_in_python
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import reason_of
from eventide.runtime.window.contents import AtElement, TimeArray
from eventide.runtime.window.operator import CONTENTS, WindowOperator
from eventide.runtime.window.reducing_columns import added_by_key, folded

_ONE_GAP = (EventTimeSessionWindows, ProcessingTimeSessionWindows)

_WORTH_IT = 256
"""With fewer elements, handling them one by one is quicker."""

_FEWEST_BY_GROUP = 2
"""As long as groups have fewer elements at the mean, handling them one by one is quicker."""


@dataclass(frozen=True, slots=True)
class Group:
    """The elements of a key that are in one window.

    Attributes:
        number: that of the group.
        key: the key.
        window: the window that these elements make by themselves.
        before: the windows of the key that become one with it.
        at: the index of the element after which the window is what it becomes.
        size: how many elements it has; 1 where the trigger does not count them.
    """

    number: int
    key: Any
    window: Any
    before: tuple[Any, ...]
    at: int
    size: int = 1


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


class GroupingWindowOperator(WindowOperator):
    """The window operator of sessions, and of windows of processing time and of counts, with built-in triggers.

    Of each micro-batch, the elements of a key that are in one window are added at once, from left to right: on columns,
    if the function is a fold that is known. What is kept, and which timers are set in which order, is the same as if
    they were handled one by one. The elements of a key are handled one by one where that could differ: if the watermark
    has passed the window of one of them by itself, if two windows that were there become one, or if one of the elements
    joins others; and all, where an element is searched for that ends the process.
    """

    def process(self, parts: list[Elements]) -> None:
        elements = interleave(parts)
        self._keyed.open_all(elements.keys)
        added = None if len(elements) < _WORTH_IT or self._metrics.is_watched else self._added(elements)
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
            try:
                self._put(group, kept)
            except Exception as error:
                raise self._failed_at(error, group.key, elements.at([group.at]).values[0]) from error
        self._take_each(elements.at(rest[begin:]).rows())

    def _added(self, elements: Elements) -> tuple[list[tuple[Group, Any]], Numbers] | None:
        """The content of each window after the elements of a group were added, and the indices of all other elements.

        None if all elements have to be handled one by one.
        """
        keys = elements.keys or [None] * len(elements)
        numbers: dict[Any, int] = {}
        codes = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(keys))
        try:
            of_elements, rounds = self._groups(elements, codes, [*numbers])
        except NotTraceable:
            return None
        except (Guard, pa.ArrowException) as error:
            self._metrics.count_in_python(self._spec.name, reason_of(error))
            return None
        if not any(rounds):
            return None
        is_alone = np.ones(int(of_elements.max()) + 1, bool)
        is_alone[[group.number for group in rounds[0]]] = False
        together, rest = (np.flatnonzero(is_alone[of_elements] == alone) for alone in (False, True))
        mine = elements.at(together) if len(rest) else elements
        contents = self._contents_of(mine, of_elements[together].tolist(), rounds)
        return sorted(contents, key=lambda each: each[0].at), rest

    def _contents_of(
        self, elements: Elements, numbers: list[int], rounds: list[list[Group]]
    ) -> list[tuple[Group, Any]]:
        """The content of the window of each group, given the numbers of the groups of elements."""
        kept = [
            {group.number: held for group in groups if (held := self._kept(group)) is not None} for groups in rounds
        ]
        contents = self._folded(elements, numbers, kept)
        if contents is None:
            contents = kept
            in_several = len(rounds) > 1 and not all_fixed(elements.values)
            for held in contents:
                values = own_each(elements.values) if in_several else elements.values
                self._add_each(held, numbers, values, {group.number: group.key for group in rounds[0]})
        return [(group, held[group.number]) for groups, held in zip(rounds, contents, strict=True) for group in groups]

    def _folded(
        self, elements: Elements, numbers: list[int], kept: list[dict[int, Any]]
    ) -> list[dict[int, Any]] | None:
        """The contents after columns were added to what is kept; None if Python has to be called with each element."""
        columns = elements.columns
        if columns is None or not elements.is_unread:
            return None
        try:
            fold, values = folded(self._spec.contents, columns)
            return [added_by_key(fold, numbers, values, held) for held in kept]
        except NotTraceable:
            return None
        except (Guard, pa.ArrowException) as error:
            self._metrics.count_in_python(self._spec.name, reason_of(error))
            return None

    def _add_each(self, kept: dict[int, Any], numbers: list[int], values: list[Any], keys: dict[int, Any]) -> None:
        """Add elements to what is kept of their groups; `keys` are those of the groups."""
        try:
            self._spec.contents.add_each(kept, numbers, values, np.zeros(len(values), np.int64))
        except AtElement as failed:
            key = keys[failed.key] if isinstance(failed.key, int) else None
            raise self._failed_at(failed.error, key, failed.element) from failed.error

    def _kept(self, group: Group) -> Any:
        """The content of the window that becomes one with that of a group; None if there is none."""
        kept = None
        for window in group.before:
            kept = self._keyed.read(group.key, window, CONTENTS)
        return kept

    def _groups(self, elements: Elements, codes: Numbers, keys: list[Any]) -> tuple[Numbers, list[list[Group]]]:
        """The number of the group of each element, and the groups of those keys that are not handled one by one.

        There are none if they would have too few elements each. Where elements are in several windows, there is a list
        for each of them.
        """
        assigner, passed = self._spec.assigner, np.zeros(len(codes), bool)
        if self._spec.begins_anew_after is not None:
            return self._groups_by_count(codes, keys, self._spec.begins_anew_after)
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

    def _groups_by_count(self, codes: Numbers, keys: list[Any], size: int) -> tuple[Numbers, list[list[Group]]]:
        """As :meth:`_groups`, where a window begins anew after `size` elements."""
        if (len(keys) + len(codes) // size) * _FEWEST_BY_GROUP > len(codes):
            return codes, [[]]
        (window,) = self._spec.assigner.assign_windows(None, MIN_MS, self._assigner_view)
        moment, before = self._moment, np.zeros(len(keys), np.int64)
        moment.window = window
        for code, moment.key in enumerate(keys):
            before[code] = self._trigger_view.get_partitioned_state(COUNT).get() or 0
        order = order_by(codes)
        of_key = np.empty(len(codes), np.int64)
        of_key[order] = np.arange(len(codes)) - np.flatnonzero(are_first(codes[order]))[codes[order]]
        turns = (before[codes] + of_key) // size
        numbers = numbers_of_columns([pa.array(codes), pa.array(turns)])
        lasts = np.empty(int(numbers.max()) + 1, np.int64)
        lasts[numbers] = np.arange(len(numbers))
        counts = np.bincount(numbers)
        columns = (codes[lasts], turns[lasts], lasts, counts)
        of_groups = enumerate(zip(*(column.tolist() for column in columns), strict=True))
        return numbers, [
            [
                Group(number, keys[code], window, () if turn else (window,), at, count)
                for number, (code, turn, at, count) in of_groups
            ]
        ]

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

    def _put(self, group: Group, kept: Any) -> None:
        """Let a window have a new content, and its trigger know."""
        moment = self._moment
        moment.key = group.key
        window = self._windows.add(group.key, group.window, self._on_merge)
        moment.window = window
        self._keyed.write(group.key, self._windows.state_window(group.key, window), CONTENTS, kept)
        if group.size > 1:
            self._trigger_view.get_partitioned_state(COUNT).add(group.size - 1)
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
