"""The interval join on columns: the same meaning as element by element, for all rows of a micro-batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.common.ms import add_ms
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.keyed_table import KeyedTable
from eventide.runtime.columnar.layout import numbered_together, rows_in_time_order
from eventide.runtime.joins.columns import ColumnJoinOperator, Side, times_of
from eventide.runtime.joins.interval import Bounds, described_bounds, described_late
from eventide.runtime.joins.matching import Array, in_time, later
from eventide.runtime.joins.selection import Selection
from eventide.runtime.metrics import ELEMENTS
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.tasks.operator import OnColumns, OperatorContext, SortInputs

_GOES = "__goes"
"""int64: the watermark at which nothing can meet a row any more, in milliseconds."""

_PARTS = ("left/", "right/")
"""Where the rows of each side lie."""

_TIMES = [pa.field(TIMESTAMP, pa.int64()), pa.field(_GOES, pa.int64())]


class IntervalColumnsOperator(ColumnJoinOperator):
    """Keeps the rows of each side by the hash of their key, and looks the new ones of the other side up in them.

    A row is gone, for all that comes, as soon as nothing can meet it any more; it leaves the state when its bucket is
    written next, or when half of its bucket is gone.
    """

    def __init__(self, spec: IntervalColumns, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec.name, spec.sides, spec.selection, context)
        self._bounds = spec.bounds
        self._tables = [
            KeyedTable(PartOfState(backend, prefix), spec.stored_schema(prefix), self.keys) for prefix in _PARTS
        ]

    @property
    def late_until(self) -> int:
        """The last time below the watermark."""
        return add_ms(self.watermark, -1)

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: it decides which elements are late."""
        return True

    def take(self, number: int, rows: pa.Table) -> None:
        """Join rows with what the other side has kept, and keep them."""
        rows = self.report_late(number, rows, times_of(rows) < self.watermark)
        if not len(rows):
            return
        own, other = self._tables[number], self._tables[1 - number]
        rows = rows.append_column(_GOES, pa.array(self._go(number, times_of(rows)))).select(own.table.column_names)
        own.read_keys_of(rows)
        other.read_keys_of(rows)
        self._meet(number, rows, self._without_gone(other))
        own.table = pa.concat_tables([own.table, rows]).combine_chunks()

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and read what is to be thrown away."""
        self.watermark = watermark_ms
        for table in self._tables:
            table.read_due(watermark_ms)

    def flush(self) -> None:
        """Store the state, without what is gone."""
        for table in self._tables:
            self._without_gone(table)
            table.flush(_half_gone)

    def held(self) -> dict[str, int]:
        """How many elements are stored; some may be gone for all that comes."""
        return {ELEMENTS: sum(table.count for table in self._tables)}

    def _meet(self, number: int, rows: pa.Table, others: pa.Table) -> None:
        """Give the pairs of new rows of one side with rows of the other."""
        keys, other_keys = numbered_together(rows, others, self.keys)
        times, other_times = times_of(rows), times_of(others)
        found = in_time(keys, times, other_keys, other_times, self._bounds.of_side(number))
        latest = np.maximum(times[found[0]], other_times[found[1]])
        left_first = 1 if number == 0 else -1
        self.put([rows, others][::left_first], found[::left_first], latest, None)

    def _go(self, number: int, times: Array) -> Array:
        """The watermark at which rows of a side are gone: one to come, as timers fire with watermarks to come."""
        goes = later(times, max(0, self._bounds.of_side(number)[1]))
        return np.maximum(goes, add_ms(self.watermark, 1))

    def _without_gone(self, table: KeyedTable) -> pa.Table:
        """Return the kept rows of a side, without those that nothing can meet any more."""
        gone = table.table.column(_GOES).to_numpy() <= self.watermark
        if gone.any():
            table.table = table.table.filter(pa.array(~gone))
        return table.table


def _half_gone(rows: pa.Table) -> int:
    """The watermark at which half of some rows will be gone."""
    goes = rows.column(_GOES).to_numpy()
    middle = len(goes) // 2
    return int(np.partition(goes, middle)[middle])


@dataclass(frozen=True, slots=True)
class IntervalColumns(OnColumns):
    """An interval join on columns; picklable."""

    name: str
    bounds: Bounds
    sides: tuple[Side, Side]
    selection: Selection

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables of a side."""
        return pa.schema([*self.sides[_PARTS.index(part)].schema, *_TIMES])

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps, input by input: the order of rows does not affect which of them meet."""
        return rows_in_time_order

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            ("interval join", described_bounds(self.bounds)),
            ("gives", repr(self.selection)),
            ("late", described_late((self.sides[0].late_tag, self.sides[1].late_tag))),
            ("state", "the fields that come out of each side, in Arrow columns by key, until nothing can meet them"),
        ]
