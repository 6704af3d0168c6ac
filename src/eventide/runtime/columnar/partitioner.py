"""The way to an operator on columns: rows are aggregated before they leave, and dealt out by the hash of their key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import SEQUENCE, VALUE, TableCodec, key_names
from eventide.runtime.columnar.panes import PaneAggregation
from eventide.runtime.elements.columns import Columns, frame_slices
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.key_columns import key_column, owners
from eventide.runtime.invoke import calling

_ROWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class ColumnPartitioner:
    """Elements leave as tables for an operator on columns.

    With a ``first`` step of aggregation, one row leaves for each key and pane, whatever the number of elements.
    Without one, rows leave: their key, the ``columns`` that are used, and time; or ``whole`` elements where late ones
    are wanted. Where it is not ``timed``, elements need no timestamps; to be ``sorted_by_time``, those without one come
    first.
    """

    value_type: TypeInformation
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    max_parallelism: int
    first: PaneAggregation | None = None
    whole: bool = False
    timed: bool = True
    sorted_by_time: bool = False
    codec: TableCodec = field(default_factory=TableCodec)

    @property
    def mixes_splits(self) -> bool:
        """Partial aggregates have no order, so that all splits of a task share them."""
        return self.first is not None

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        dealt = f"by column {', '.join(self.keys)}" if self.keys else "all together"
        if self.first is not None:
            return f"{dealt}, aggregated before the shuffle to one row for each key and pane"
        return f"{dealt}, as columns" + (" of whole elements, because late ones are wanted" if self.whole else "")

    def user_functions(self) -> list[tuple[str, Any]]:
        """None: nothing here is the user's own code."""
        return []

    def open(self, producer: str, slot: int, subtasks: int) -> _RecordWriter:
        """An empty writer of the task with a slot."""
        return _RecordWriter(self, producer, subtasks)

    def table(self, columns: Columns) -> pa.Table:
        """Elements as the table that leaves, or that is aggregated first."""
        if self.timed and (columns.timestamps is None or columns.timestamps.null_count):
            raise DataError(
                "an element has no timestamp; give the stream one with assign_timestamps_and_watermarks and a "
                "strategy with a timestamp assigner"
            )
        values = columns.values
        content = {VALUE: values} if self.whole else value_columns(values, self.keys, self.columns)
        time = {}
        if self.timed or self.sorted_by_time:
            times = columns.timestamps_or_nulls()
            time[TIMESTAMP] = times.fill_null(MIN_MS) if times.null_count else times
        return pa.table({**content, **time, SEQUENCE: columns.sequence})


def value_columns(values: pa.Array, keys: tuple[str, ...], columns: Iterable[str]) -> dict[str, pa.Array]:
    """The columns that an operator needs of elements: those of the key, renamed, and some more."""
    names = [field.name for field in values.type]
    fields = dict(zip(names, values.flatten(), strict=True))
    by = {name: key_column(fields[key]) for name, key in zip(key_names(len(keys)), keys, strict=True)}
    return by | {name: fields[name] for name in columns}


def unpacked(rows: pa.Table, keys: tuple[str, ...], columns: Iterable[str]) -> pa.Table:
    """Rows of whole elements with what an operator needs of them beside: columns of key and others."""
    beside = value_columns(rows.column(VALUE).combine_chunks(), keys, columns)
    return pa.table({**beside, **{name: rows.column(name) for name in rows.column_names}})


class _RecordWriter:
    def __init__(self, partitioner: ColumnPartitioner, producer: str, subtasks: int) -> None:
        self._partitioner = partitioner
        self._producer = producer
        self._subtasks = subtasks
        self._rows: list[pa.Table] = []
        self._partials: list[pa.Table] = []
        self._sent = 0
        self.size = 0

    def add(self, batch: Elements) -> None:
        partitioner = self._partitioner
        columns = batch.as_columns(partitioner.value_type)
        with calling(self._producer, during="when its elements were sent on"):
            self._rows.append(partitioner.table(columns))
            self.size += len(batch)
            if partitioner.first is not None and self.size >= _ROWS_AT_ONCE:
                self._aggregate(partitioner.first)

    def _aggregate(self, first: PaneAggregation) -> None:
        if self._rows:
            self._partials.append(first.partial(pa.concat_tables(self._rows)))
        self._rows, self.size = [], 0

    def take(self) -> Iterator[tuple[int, bytes]]:
        partitioner = self._partitioner
        if partitioner.first is not None:
            self._aggregate(partitioner.first)
        waiting = self._partials or self._rows
        self._rows, self._partials, self.size = [], [], 0
        if not waiting:
            return
        table = pa.concat_tables(waiting)
        if partitioner.first is not None and len(waiting) > 1:
            table = partitioner.first.merge(table)
        for subtask, part in self._dealt_out(table):
            for start, rows in frame_slices(len(part), part.nbytes):
                self._sent += 1
                yield subtask, partitioner.codec.encode(part.slice(start, rows), self._sent)

    def _dealt_out(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        partitioner = self._partitioner
        by: Mapping[str, pa.ChunkedArray] | pa.Table = table
        if partitioner.whole:
            by = value_columns(table.column(VALUE).combine_chunks(), partitioner.keys, ())
        columns = [by[name] for name in key_names(len(partitioner.keys))]
        owner = owners(columns, partitioner.max_parallelism, self._subtasks)
        if owner is None:
            yield 0, table
            return
        for subtask in range(self._subtasks):
            yield subtask, table.filter(pa.array(owner == subtask))
