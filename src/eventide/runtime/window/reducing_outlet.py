"""The way to windows that reduce: elements are reduced by key and window before they leave the task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eventide.common.time_window import TimeWindow
from eventide.errors import DataError
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.columns import Batch, pieces
from eventide.runtime.events import Elements
from eventide.runtime.invoke import no_timestamp, user_function_error
from eventide.runtime.outlets import SubtasksOfKeys, extracted_keys
from eventide.runtime.window.contents import AtElement, Reduced, Times
from eventide.runtime.window.grouping import by_pane
from eventide.runtime.window.partials import Partials, PartialsCodec, Share

_VALUES_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
class ReducingOutlet:
    """Elements leave reduced, one value for each key and window, whatever their number.

    The reduce function is associative, so that it may work on parts: of each key and window, the elements of a task are
    reduced in their order of arrival, and then what the tasks have made. For windows that take late elements, or give
    them to a side output, or that leave gaps, elements have to travel themselves.

    ``operator`` is the window operator that the reduce function belongs to, ``select`` finds the key (None: there are
    no keys).
    """

    operator: str
    reduced: Reduced
    panes: Panes
    codec: PartialsCodec
    select: Callable[[Any], Any] | None
    max_parallelism: int = 1
    mixes_splits: bool = True

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        dealt = "all together" if self.select is None else f"by key ({self.codec.key_type})"
        return f"{dealt}, {self.codec.value_type} reduced before the shuffle to one for each key and window"

    def user_functions(self) -> list[Any]:
        """The reduce function, to be opened and closed in the tasks that send."""
        return [self.reduced.user_function]

    def open(self, producer: str, place: int, subtasks: int) -> _Outbox:
        """An empty outbox of the task at ``place``."""
        return _Outbox(self, producer, subtasks)


class _Outbox:
    """Reduces by window and key as elements come.

    Elements of one pane in a row are reduced once for all windows of the pane, and that goes into each window when the
    pane changes: their order in each window stays that of their arrival.
    """

    def __init__(self, outlet: ReducingOutlet, producer: str, subtasks: int) -> None:
        self._outlet = outlet
        self._producer = producer
        self._subtask_of = SubtasksOfKeys(outlet.max_parallelism, subtasks)
        self._windows_of: dict[int, list[TimeWindow]] = {}
        self._reduced: defaultdict[TimeWindow, dict[Any, Any]] = defaultdict(dict)
        self._elements: defaultdict[TimeWindow, int] = defaultdict(int)
        self._run_pane: int | None = None
        self._run: dict[Any, Any] = {}
        self._packed: list[tuple[int, bytes]] = []
        self._sent = 0
        self.size = 0

    def add(self, batch: Batch) -> None:
        for elements in pieces(batch):
            self._add(elements)
            self.size += len(elements)
            if sum(map(len, self._reduced.values())) + len(self._run) >= _VALUES_AT_ONCE:
                self._packed += self._pack()

    def take(self) -> Iterator[tuple[int, bytes]]:
        packed = [*self._packed, *self._pack()]
        self._packed, self.size = [], 0
        yield from packed

    def _add(self, elements: Elements) -> None:
        outlet = self._outlet
        timestamps = self._timestamps(elements)
        values = self._as_declared(elements)
        if outlet.select is None:
            keys = [None] * len(values)
        else:
            keys = extracted_keys(outlet.select, elements, self._producer)
        groups = by_pane(outlet.panes, timestamps)
        for pane, places in groups:
            windows = self._windows(pane)
            self._elements[windows[-1]] += len(values) if places is None else len(places)
        if len(groups) == 1:
            self._add_run(groups[0][0], keys, values)
            return
        self._end_run()
        ahead: defaultdict[TimeWindow, list[Any]] = defaultdict(list)
        for pane, places in groups:
            for window in self._windows(pane):
                ahead[window].append(places)
        for window, parts in ahead.items():
            places = (parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))).tolist()
            self._reduce(self._reduced[window], [keys[i] for i in places], [values[i] for i in places])

    def _add_run(self, pane: int, keys: list[Any], values: list[Any]) -> None:
        """Add elements of one pane; those of a pane with one window need no detour."""
        windows = self._windows(pane)
        if len(windows) == 1:
            self._reduce(self._reduced[windows[0]], keys, values)
            return
        if pane != self._run_pane:
            self._end_run()
            self._run_pane = pane
        self._reduce(self._run, keys, values)

    def _end_run(self) -> None:
        if self._run_pane is None:
            return
        keys, values = list(self._run), [value for (value,) in self._run.values()]
        for window in self._windows(self._run_pane):
            self._reduce(self._reduced[window], keys, values)
        self._run_pane, self._run = None, {}

    def _reduce(self, kept: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
        try:
            self._outlet.reduced.add_each(kept, keys, values, _NO_TIMES)
        except AtElement as failed:
            self._subtask_of.check(failed.key, failed.element, self._producer)
            raise user_function_error(
                self._outlet.operator,
                failed.error,
                during="while it handled an element",
                key=failed.key,
                element=failed.element,
            ) from failed.error

    def _windows(self, pane: int) -> list[TimeWindow]:
        windows = self._windows_of.get(pane)
        if windows is None:
            windows = self._windows_of[pane] = self._outlet.panes.windows(pane)
        return windows

    def _timestamps(self, elements: Elements) -> Times:
        columns = elements.columns
        if columns is not None and columns.timestamps is not None and not columns.timestamps.null_count:
            return columns.timestamps.to_numpy()
        try:
            return np.array(elements.timestamps, np.int64)
        except TypeError:
            at = elements.timestamps.index(None)
            raise user_function_error(
                self._outlet.operator,
                no_timestamp(),
                during="while it handled an element",
                element=elements.values[at],
            ) from None

    def _as_declared(self, elements: Elements) -> list[Any]:
        """The values as they would be behind the shuffle: of their declared type."""
        kind = self._outlet.codec.value_type
        if kind.is_pickled or elements.columns is not None:
            return elements.values
        try:
            column = kind.to_arrow(elements.values)
        except DataError as error:
            raise user_function_error(self._producer, error, during="when its elements were sent on") from error
        return elements.values if kind.keeps(elements.values) else kind.from_arrow(column)

    def _pack(self) -> Iterator[tuple[int, bytes]]:
        """What was reduced, for each subtask."""
        self._end_run()
        partials: dict[int, Partials] = {}
        for window, kept in self._reduced.items():
            elements = self._elements[window]
            for subtask, keys, values in self._dealt_out(kept):
                part = partials.get(subtask)
                if part is None:
                    part = partials[subtask] = Partials([], [], [], self._sent)
                part.shares.append(Share(window.start, window.end, len(keys), elements))
                part.keys.extend(keys)
                part.values.extend(values)
                elements = 0  # the first of the subtasks counts them
        self._reduced.clear()
        self._elements.clear()
        self._sent += 1
        for subtask in sorted(partials):
            yield subtask, self._outlet.codec.encode(partials[subtask])

    def _dealt_out(self, kept: dict[Any, Any]) -> Iterator[tuple[int, list[Any], list[Any]]]:
        keys, values = list(kept), [value for (value,) in kept.values()]
        if self._outlet.select is None:
            yield 0, keys, values
            return
        for subtask, at in self._subtask_of.dealt_out(keys, values, self._producer):
            if at is None:
                yield subtask, keys, values
            else:
                places = at.tolist()
                yield subtask, [keys[i] for i in places], [values[i] for i in places]


_NO_TIMES = np.empty(0, np.int64)
