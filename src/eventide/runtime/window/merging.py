"""Which window holds which contents, when windows may merge."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, TypeAlias

from eventide.api.windows import MergingWindowAssigner, Window, WindowAssigner
from eventide.common.windows import TimeWindow
from eventide.runtime.state.keyed import KeyedState

OnMerge: TypeAlias = Callable[[Window, list[Window], Window, list[Window]], None]

_SET = "windows"


class Windows:
    """Says under which window the contents of a window are stored: under itself, where windows never merge."""

    def add(self, key: Any, window: Window, on_merge: OnMerge) -> Window:
        """Take a new window in, and give the window that it is now part of.

        ``on_merge(result, merged, state_window, merged_state_windows)`` is called once for each merge that really
        joins windows which were there before.
        """
        return window

    def state_window(self, key: Any, window: Window) -> Window | None:
        """The window under which the contents are stored; None if the window is not there (any more)."""
        return window

    def retire(self, key: Any, window: Window) -> None:
        """Forget a window."""


class Sessions(Windows):
    """The windows of each key that merge with those they overlap or touch, as plain numbers in the order of time.

    Stored of a key are the starts and the ends of its windows. No two windows touch, so those that a new one touches
    stand side by side. Contents go along with their window: that costs nothing, since all of a key is one stored value.
    """

    def __init__(self, keyed: KeyedState) -> None:
        self._keyed = keyed

    def add(self, key: Any, window: Any, on_merge: OnMerge) -> TimeWindow:
        start, end = window.start, window.end
        stored = self._keyed.read(key, None, _SET)
        if stored is None:
            self._keyed.write(key, None, _SET, ([start], [end]))
            return TimeWindow(start, end)
        starts, ends = stored
        first, behind = bisect_left(ends, start), bisect_right(starts, end)
        touched = slice(first, behind)
        before: list[Window] = list(map(TimeWindow, starts[touched], ends[touched]))
        if before:
            start, end = min(start, starts[first]), max(end, ends[behind - 1])
        result = TimeWindow(start, end)
        if before != [result]:
            starts[touched], ends[touched] = [start], [end]
            if before:
                on_merge(result, before, result, before)
        return result

    def state_window(self, key: Any, window: Any) -> Window | None:
        return window if self._place(key, window) is not None else None

    def retire(self, key: Any, window: Any) -> None:
        at = self._place(key, window)
        if at is None:
            return
        starts, ends = self._keyed.read(key, None, _SET)
        del starts[at], ends[at]
        if not starts:
            self._keyed.take(key, None, _SET)

    def _place(self, key: Any, window: Any) -> int | None:
        stored = self._keyed.read(key, None, _SET)
        if stored is None:
            return None
        starts, ends = stored
        at = bisect_left(starts, window.start)
        return at if at < len(starts) and starts[at] == window.start and ends[at] == window.end else None


class MergingWindows(Windows):
    """The windows of each key, and the one among those merged into each whose contents stay where they are.

    Contents are moved only from the windows that lose their place, never those of the window that keeps it.

    Flink: ``MergingWindowSet``.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], keyed: KeyedState) -> None:
        self._assigner = assigner
        self._keyed = keyed

    def _mapping(self, key: Any) -> dict[Window, Window]:
        mapping: dict[Window, Window] | None = self._keyed.read(key, None, _SET)
        return {} if mapping is None else mapping

    def add(self, key: Any, window: Window, on_merge: OnMerge) -> Window:
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

    def state_window(self, key: Any, window: Window) -> Window | None:
        return self._mapping(key).get(window)

    def retire(self, key: Any, window: Window) -> None:
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
