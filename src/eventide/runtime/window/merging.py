"""Which window holds which contents, when windows may merge."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from eventide.datastream.window import MergingWindowAssigner, Window
from eventide.runtime.state.keyed import KeyedState

OnMerge: TypeAlias = Callable[[Window, list[Window], Window, list[Window]], None]

_SET = "merging windows"
_START = attrgetter("start")


class Windows(Protocol):
    """Says under which window the contents of a window are stored."""

    def add(self, key: Any, window: Window, on_merge: OnMerge) -> Window:
        """Take a new window in, and give the window that it is now part of."""

    def state_window(self, key: Any, window: Window) -> Window | None:
        """The window under which the contents are stored; None if the window is not there (any more)."""

    def retire(self, key: Any, window: Window) -> None:
        """Forget a window."""


class SeparateWindows:
    """Windows that never merge: each stores its own contents."""

    def add(self, key: Any, window: Window, on_merge: OnMerge) -> Window:
        """The window itself."""
        return window

    def state_window(self, key: Any, window: Window) -> Window | None:
        """The window itself."""
        return window

    def retire(self, key: Any, window: Window) -> None:
        """Nothing is kept."""


class MergingWindows:
    """The windows of each key, and the one among those merged into each whose contents stay where they are.

    Contents are moved only from the windows that lose their place, never those of the window that keeps it.

    Flink: ``MergingWindowSet``.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], keyed: KeyedState) -> None:
        self._assigner = assigner
        self._keyed = keyed
        self._in_order: dict[Any, list[Any]] = {}

    def _mapping(self, key: Any) -> dict[Window, Window]:
        mapping: dict[Window, Window] | None = self._keyed.read(key, None, _SET)
        return {} if mapping is None else mapping

    def add(self, key: Any, window: Window, on_merge: OnMerge) -> Window:
        """Merge a window with those it touches.

        ``on_merge(result, merged, state_window, merged_state_windows)`` is called once for each merge that really
        joins windows which were there before.
        """
        mapping = self._mapping(key)
        others = self._neighbours(key, mapping, window) if self._assigner.merges_neighbours_only else [*mapping]
        actual = window
        if others:
            merges: list[tuple[Window, list[Window]]] = []
            self._assigner.merge_windows(list(dict.fromkeys([*others, window])), _Collect(merges))
            for result, merged in merges:
                if window in merged:
                    actual = result
                before = [w for w in dict.fromkeys(merged) if w in mapping]
                if not before:
                    continue
                state_windows = [mapping.pop(w) for w in before]
                mapping[result] = state_windows[0]
                self._replace(key, before, result)
                if before != [result]:
                    on_merge(result, before, state_windows[0], state_windows[1:])
        if actual not in mapping:
            mapping[actual] = actual
            self._replace(key, [], actual)
        self._keyed.write(key, None, _SET, mapping)
        return actual

    def _neighbours(self, key: Any, mapping: dict[Window, Window], window: Any) -> list[Any]:
        """The windows that a new one overlaps or touches, in the order of time; none of them touches another."""
        windows = self._in_order.get(key)
        if windows is None:
            windows = self._in_order[key] = sorted(mapping, key=_START)
        behind = bisect_right(windows, window.end, key=_START)
        first = behind
        while first and windows[first - 1].end >= window.start:
            first -= 1
        return windows[first:behind]

    def _replace(self, key: Any, gone: Iterable[Window], by: Window | None) -> None:
        """Keep the windows of a key in order, where they are kept so."""
        windows = self._in_order.get(key)
        if windows is not None:
            for window in gone:
                del windows[bisect_left(windows, _START(window), key=_START)]
            if by is not None:
                insort(windows, by, key=_START)

    def state_window(self, key: Any, window: Window) -> Window | None:
        """Where the contents of a window are."""
        return self._mapping(key).get(window)

    def retire(self, key: Any, window: Window) -> None:
        """Forget a window."""
        mapping = self._mapping(key)
        if mapping.pop(window, None) is not None:
            self._replace(key, [window], None)
        if mapping:
            self._keyed.write(key, None, _SET, mapping)
        else:
            self._keyed.take(key, None, _SET)


class _Collect(MergingWindowAssigner.MergeCallback[Window]):
    def __init__(self, merges: list[tuple[Window, list[Window]]]) -> None:
        self._merges = merges

    def merge(self, to_be_merged: Any, merge_result: Window) -> None:
        self._merges.append((merge_result, list(to_be_merged)))
