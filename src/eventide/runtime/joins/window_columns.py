"""The window join on columns: rows are kept by pane, and meet when their window fires."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import (
    EventTimeTrigger,
    Evictor,
    SlidingEventTimeWindows,
    Trigger,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.runtime.columnar.layout import PANE, numbered_together, rows_in_time_order, slices_by, window_array
from eventide.runtime.columnar.panes import Panes, arrived
from eventide.runtime.elements.codec import decode_table, encode_table
from eventide.runtime.joins.columns import ColumnJoinOperator, Side, times_of
from eventide.runtime.joins.matching import equal
from eventide.runtime.joins.selection import KEEPS, Selection
from eventide.runtime.metrics import LATE_DROPPED, OPEN_WINDOWS, WITHOUT_WINDOW
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.state.chunks import ChunkStore
from eventide.runtime.tasks.operator import OnColumns, OperatorContext, SortInputs

_PARTS = ("first/", "second/")
"""Where the rows of each side lie."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Chunks are tables of rows; merged ones are joined."""

    patience: int = 8

    def size(self, chunk: pa.Table) -> int:
        """Its rows."""
        return len(chunk)

    def merged(self, chunks: list[pa.Table], *, from_base: bool) -> pa.Table:
        """All of them."""
        return pa.concat_tables(chunks)

    def encode(self, chunk: pa.Table) -> bytes:
        """An Arrow IPC stream."""
        return encode_table(chunk.combine_chunks())

    def decode(self, data: bytes) -> pa.Table:
        """The inverse of :meth:`encode`."""
        return decode_table(data)


class WindowColumnsOperator(ColumnJoinOperator):
    """Keeps the rows of each side by pane, without reading what is there; a window that fires reads its panes.

    An element that is late, but within the allowed lateness, has its windows fire again: once for each key, window and
    micro-batch.
    """

    def __init__(self, spec: WindowColumns, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec.name, spec.sides, spec.selection, context)
        self._panes = spec.panes
        self._lateness_ms = spec.lateness_ms
        self._keeps = KEEPS[spec.how]
        self._stores: list[ChunkStore[pa.Table]] = [ChunkStore(PartOfState(backend, part), _Rows()) for part in _PARTS]
        self._added: list[dict[int, list[pa.Table]]] = [{}, {}]

    @property
    def late_until(self) -> int:
        """The last time whose windows can no longer be updated."""
        return self._panes.last_time_of(self._last_late())

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether a window fires, or is dropped, when the watermark gets there; an element in a gap may be late."""
        return self._panes.reacts_between(self.watermark, watermark_ms, self._lateness_ms)

    def take(self, number: int, rows: pa.Table) -> None:
        """Add rows to their panes."""
        times = times_of(rows)
        come = arrived(self._panes, times, self._last_late(), self._lateness_ms, self.watermark)
        self.count(WITHOUT_WINDOW, int(come.without_window.sum()))
        rows = rows.select(self.sides[number].schema.names).append_column(PANE, pa.array(come.starts))
        accepted = ~come.late & ~come.without_window
        if not accepted.all():
            self.count_late(LATE_DROPPED, times[come.late])
            rows = rows.filter(pa.array(accepted))
        added = {self._panes.number_of(pane): part for pane, part in slices_by(rows, PANE)}
        for pane, part in added.items():
            self._added[number].setdefault(pane, []).append(part)
        self._fire_again(added)

    def advance(self, watermark_ms: int) -> None:
        """Fire the windows that the watermark passes, in the order of time, and drop what no window needs."""
        fired = self._last_fired()
        self.watermark = watermark_ms
        panes = sorted({*self._held(0), *self._held(1)})
        for window in self._panes.windows_with(panes, fired + 1, self._last_fired()):
            self._fire(window)
        needed = (self._last_late() + 1) * self._panes.per_slide
        for pane in panes[: bisect_left(panes, needed)]:
            for store, added in zip(self._stores, self._added, strict=True):
                store.drop(pane)
                added.pop(pane, None)

    def flush(self) -> None:
        """Store what was added."""
        for store, added in zip(self._stores, self._added, strict=True):
            for pane, tables in added.items():
                store.append(pane, pa.concat_tables(tables))
            store.flush()
            added.clear()

    def held(self) -> dict[str, int]:
        """How many windows wait for the watermark."""
        panes = sorted({*self._held(0), *self._held(1)})
        return {OPEN_WINDOWS: self._panes.count_windows_with(panes, self._last_fired() + 1)}

    def _held(self, number: int) -> list[int]:
        """The panes in which a side has rows."""
        return [*self._stores[number].rows(), *self._added[number]]

    def _last_fired(self) -> int:
        return self._panes.last_fired(self.watermark)

    def _last_late(self) -> int:
        return self._panes.last_late(self._lateness_ms, self.watermark)

    def _fire_again(self, added: dict[int, pa.Table]) -> None:
        """Fire windows that the watermark has passed already, for the keys that were added to."""
        for window in self._panes.windows_with(sorted(added), self._last_late() + 1, self._last_fired()):
            first = window * self._panes.per_slide
            touched = [added[pane] for pane in range(first, first + self._panes.per_window) if pane in added]
            self._fire(window, pa.concat_tables(touched).select(self.keys))

    def _fire(self, number: int, only: pa.Table | None = None) -> None:
        """Give the pairs of a window, of some keys only where it fires again."""
        tables = [self._rows_of(side, number) for side in (0, 1)]
        if only is not None:
            tables = [_with_keys_of(table, only, self.keys) for table in tables]
        pairs = equal(*numbered_together(tables[0], tables[1], self.keys), self._keeps)
        count = len(pairs[0])
        window = self._panes.window(number)
        bounds = window_array(np.full(count, window.start), np.full(count, window.end))
        self.put(tables, pairs, np.full(count, window.max_timestamp()), bounds)

    def _rows_of(self, side: int, window: int) -> pa.Table:
        """Return the rows of a side in a window, in the order of panes."""
        first = window * self._panes.per_slide
        tables = [self.sides[side].schema.empty_table()]
        for pane in range(first, first + self._panes.per_window):
            tables += self._stores[side].chunks(pane)
            tables += self._added[side].get(pane, [])
        return pa.concat_tables(tables).combine_chunks()


def _with_keys_of(table: pa.Table, wanted: pa.Table, keys: list[str]) -> pa.Table:
    """The rows of a table whose keys are in another one, too."""
    numbers, wanted_numbers = numbered_together(table, wanted, keys)
    return table.filter(pa.array(np.isin(numbers, wanted_numbers)))


@dataclass(frozen=True, slots=True)
class WindowColumns(OnColumns):
    """A window join on columns; picklable."""

    name: str
    assigner: WindowAssigner[Any, Any]
    panes: Panes
    lateness_ms: int
    how: str
    sides: tuple[Side, Side]
    selection: Selection

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables of a side."""
        return self.sides[_PARTS.index(part)].schema

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps, input by input: the order of rows does not affect which of them meet."""
        return rows_in_time_order

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            ("windows", repr(self.assigner)),
            ("join", self.how),
            ("gives", repr(self.selection)),
            ("late", f"allowed lateness {self.lateness_ms} ms, later than that dropped and counted"),
            ("state", "the fields that come out of each side, in Arrow columns by panes"),
        ]


def obstacle_of(
    assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None, evictor: Evictor[Any, Any] | None
) -> str | None:
    """Why the windows of a join cannot run on columns, and what to change; None if they can."""
    if type(assigner) not in (TumblingEventTimeWindows, SlidingEventTimeWindows):
        return f"the windows {assigner!r} need each element; use tumbling or sliding windows of event time"
    if trigger is not None and type(trigger) is not EventTimeTrigger:
        return f"the trigger {trigger!r} looks at single elements; leave trigger(...) out"
    if evictor is not None:
        return f"the evictor {evictor!r} looks at single elements"
    return None
