"""Elements reduced by key and pane, in a task that sends them on."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import Any

import numpy as np

from eventide.runtime.elements.bare import is_bare
from eventide.runtime.elements.ownership import own_unless
from eventide.runtime.window.contents import AtElement, Reduced
from eventide.runtime.window.grouping import Indices

_NO_TIMES = np.empty(0, np.int64)


class ByPane:
    """Reduces by pane and key where each pane is a window by itself, so that panes need not be told apart in time."""

    def __init__(self, reduced: Reduced) -> None:
        self._reduced = reduced
        self._kept: defaultdict[int, dict[Any, Any]] = defaultdict(dict)

    @property
    def size(self) -> int:
        """How many values there are."""
        return sum(map(len, self._kept.values()))

    def add(self, groups: list[tuple[int, Indices | None]], keys: list[Any], values: list[Any]) -> None:
        """Take elements, whose indices are grouped by pane.

        Raises:
            AtElement: if the reduce function raised.
        """
        for pane, indices in groups:
            if indices is None:
                self._reduced.add_each(self._kept[pane], keys, values, _NO_TIMES)
            else:
                at = indices.tolist()
                some_keys, some_values = [keys[i] for i in at], [values[i] for i in at]
                self._reduced.add_each(self._kept[pane], some_keys, some_values, _NO_TIMES)

    def taken(self) -> tuple[list[Any], list[Any], list[int]]:
        """Keys, values and panes, which are forgotten here."""
        keys: list[Any] = []
        values: list[Any] = []
        panes: list[int] = []
        for pane, kept in self._kept.items():
            keys += kept
            values += [value for (value,) in kept.values()]
            panes += [pane] * len(kept)
        self._kept.clear()
        return keys, values, panes


class InRuns:
    """Reduces what a key has of one pane in a row.

    A window that has several panes wants the elements of a key in the order of their arrival: so a run ends where the
    next element of its key is of another pane.
    """

    def __init__(self, reduced: Reduced) -> None:
        self._reduced = reduced
        self._open: dict[Any, list[Any]] = {}
        self._ended: list[tuple[Any, Any, int]] = []

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self._ended) + len(self._open)

    def add(self, groups: list[tuple[int, Indices | None]], keys: list[Any], values: list[Any]) -> None:
        """Take elements, whose indices are grouped by pane.

        Raises:
            AtElement: if the reduce function raised.
        """
        reduce, running = self._reduced.function.reduce, self._open
        keeps = not is_bare(reduce)
        key = value = None
        try:
            for key, value, pane in zip(keys, values, _pane_of_each(groups, len(keys)), strict=True):
                run = running.get(key)
                if run is None:
                    running[key] = [value, pane]
                elif run[1] == pane:
                    before = run[0]
                    result = value if before is None else reduce(before, value)
                    run[0] = own_unless(result, before) if keeps else result
                else:
                    self._ended.append((key, *run))
                    running[key] = [value, pane]
        except Exception as error:
            raise AtElement(error, key, value) from error

    def taken(self) -> tuple[list[Any], list[Any], list[int]]:
        """Keys, values and panes, which are forgotten here; those of one key in their order."""
        runs = [*self._ended, *((key, value, pane) for key, (value, pane) in self._open.items())]
        self._ended, self._open = [], {}
        keys, values, panes = (list(map(itemgetter(i), runs)) for i in range(3))
        return keys, values, panes


def _pane_of_each(groups: list[tuple[int, Indices | None]], count: int) -> list[int]:
    """The pane of each of `count` elements."""
    panes = np.empty(count, np.int64)
    for pane, indices in groups:
        panes[slice(None) if indices is None else indices] = pane
    numbers: list[int] = panes.tolist()
    return numbers
