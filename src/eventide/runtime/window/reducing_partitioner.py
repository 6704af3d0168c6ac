"""The way to windows that reduce: elements are reduced by key and pane before they leave the task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eventide.api.dead_letters import ADVICE
from eventide.runtime.chain.chained_operators import HANDLING
from eventide.runtime.columnar.panes import Panes
from eventide.runtime.elements.bare import only_looks
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ownership import own_each
from eventide.runtime.exchange.partitioners import SubtasksOfKeys, extracted_keys, selectors
from eventide.runtime.invoke import no_timestamp, user_function_error
from eventide.runtime.window.contents import AtElement, Reduced, Times
from eventide.runtime.window.grouping import Indices, by_pane
from eventide.runtime.window.partials import Partials, PartialsCodec
from eventide.runtime.window.reducing import ByPane, InRuns

_VALUES_AT_ONCE = 1 << 17
_VALUES_OF_A_FRAME = 1 << 12


@dataclass(frozen=True, slots=True)
class ReducingPartitioner:
    """Elements leave reduced, whatever their number: one value for each key and pane, or few.

    The reduce function is associative, so that it may work on parts: of each key and pane, the elements of a task are
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
        return f"{dealt}, {self.codec.value_type} reduced before the shuffle to one for each key and pane"

    def user_functions(self) -> list[tuple[str, Any]]:
        """The key selector, and the reduce function, which is opened and closed in the tasks that send too."""
        return [*selectors(self.select), (self.operator, self.reduced.user_function)]

    def open(self, producer: str, slot: int, subtasks: int) -> _RecordWriter:
        """An empty writer of the task with a slot."""
        return _RecordWriter(self, subtasks)


class _RecordWriter:
    def __init__(self, partitioner: ReducingPartitioner, subtasks: int) -> None:
        self._partitioner = partitioner
        self._subtask_of = SubtasksOfKeys(partitioner.max_parallelism, subtasks)
        self._values = (ByPane if partitioner.panes.slide == partitioner.panes.size else InRuns)(partitioner.reduced)
        self._only_looks = only_looks(partitioner.reduced.function.reduce)
        self._counts: Counter[int] = Counter()
        self._packed: list[tuple[int, bytes]] = []
        self._sent = 0
        self.size = 0

    def add(self, batch: Elements) -> None:
        # The function may change what it reduces, and these elements may be on other ways, too.
        may_share = self._only_looks or batch.is_unread
        for elements in batch.pieces():
            values = self._as_declared(elements)
            self._add(elements, values if may_share else own_each(values))
            self.size += len(elements)
            if self._values.size >= _VALUES_AT_ONCE:
                self._packed += self._pack()

    def take(self) -> Iterator[tuple[int, bytes]]:
        packed = [*self._packed, *self._pack()]
        self._packed, self.size = [], 0
        yield from packed

    def _add(self, elements: Elements, values: list[Any]) -> None:
        partitioner = self._partitioner
        timestamps = self._timestamps(elements)
        keys = [None] * len(values) if partitioner.select is None else extracted_keys(partitioner.select, elements)
        keys = keys if self._only_looks else own_each(keys)
        groups = by_pane(partitioner.panes, timestamps)
        for pane, indices in groups:
            self._counts[pane] += len(values) if indices is None else len(indices)
        try:
            self._values.add(groups, keys, values)
        except AtElement as failed:
            self._subtask_of.check(failed.key, failed.element)
            raise self._failed(failed.error, key=failed.key, element=failed.element) from failed.error

    def _timestamps(self, elements: Elements) -> Times:
        columns = elements.columns
        if columns is not None and columns.timestamps is not None and not columns.timestamps.null_count:
            known: Times = columns.timestamps.to_numpy()
            return known
        try:
            return np.array(elements.timestamps, np.int64)
        except TypeError:
            element = elements.values[elements.timestamps.index(None)]
            raise self._failed(no_timestamp(), element=element) from None

    def _failed(self, error: Exception, **what: Any) -> Exception:
        """Return the error for an element that the windows cannot take."""
        return user_function_error(self._partitioner.operator, error, during=HANDLING, advice=ADVICE, **what)

    def _as_declared(self, elements: Elements) -> list[Any]:
        """The values as they would be after the shuffle: of their declared type."""
        kind = self._partitioner.codec.value_type
        if kind.is_pickled or elements.columns is not None:
            return elements.values
        return kind.as_declared(elements.values)

    def _pack(self) -> Iterator[tuple[int, bytes]]:
        """Give the reduced values of each subtask, in frames of a handy size."""
        keys, values, panes = self._values.taken()
        counts, self._counts = list(self._counts.items()), Counter()
        for subtask, indices in self._dealt_out(keys, values):
            all_of_it = range(len(keys)) if indices is None else indices.tolist()
            for start in range(0, len(all_of_it), _VALUES_OF_A_FRAME):
                some = all_of_it[start : start + _VALUES_OF_A_FRAME]
                self._sent += 1
                part = Partials(
                    [keys[i] for i in some], [values[i] for i in some], [panes[i] for i in some], counts, self._sent
                )
                counts = []  # the first frame tells them
                yield subtask, self._partitioner.codec.encode(part)

    def _dealt_out(self, keys: list[Any], values: list[Any]) -> Iterator[tuple[int, Indices | None]]:
        if self._partitioner.select is None or not keys:
            return iter([(0, None)])
        return self._subtask_of.dealt_out(keys, lambda: values)
