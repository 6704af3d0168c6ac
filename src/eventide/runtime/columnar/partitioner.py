"""The way to operators on columns: rows leave as tables, and may be aggregated before they leave.

Where late elements are wanted as they are, those that may be late leave whole. The others are aggregated first, if the
task knows how far the operator had come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import TypeInformation
from eventide.errors import DataError
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.computed_keys import ComputedKey
from eventide.runtime.columnar.gaps import Gaps
from eventide.runtime.columnar.layout import GAP, SEQUENCE, VALUE, TableCodec, constant, key_names
from eventide.runtime.columnar.panes import PaneAggregation
from eventide.runtime.elements.elements import Columns, Elements, frame_slices
from eventide.runtime.elements.keys import key_column, owners
from eventide.runtime.exchange.dividing import DividingPartitioner, DividingWriter
from eventide.runtime.exchange.selected_keys import extracted_keys, selectors
from eventide.runtime.invoke import calling
from eventide.runtime.tracing.reasons import BatchInPython

_ROWS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class ColumnPartitioner(DividingPartitioner):
    """Elements leave as tables for an operator on columns.

    With a ``first`` step of aggregation, one row leaves for each key and pane, whatever the number of elements.
    Without one, rows leave: their key, the ``columns`` that are used, and time; or ``whole`` elements where late ones
    are wanted. With both, elements leave whole until the ``watermark`` of the operator is known: then those that cannot
    be late with it, and a lateness of ``lateness_ms``, are aggregated.

    Where it is not ``timed``, elements need no timestamps; to be ``sorted_by_time``, those without one come
    first. Where it is ``clocked``, the operator knows the time, and all elements go into one pane until then. Elements
    that are None are shown to ``select``, the selector of their keys, which raises; it is None if there are no keys.
    With ``gaps``, each row has one. The columns of a ``computed`` key always leave, and have the names ``keys``.
    """

    value_type: TypeInformation
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    max_parallelism: int
    select: Callable[[Any], Any] | None
    first: PaneAggregation | None = None
    whole: bool = False
    timed: bool = True
    clocked: bool = False
    sorted_by_time: bool = False
    gaps: Gaps | None = None
    computed: ComputedKey | None = None
    lateness_ms: int = 0
    watermark: int | None = None
    codec: TableCodec = field(default_factory=TableCodec)

    @property
    def divides(self) -> bool:
        """Whether some elements leave whole, and others are aggregated."""
        return self.whole and self.first is not None

    @property
    def mixes_splits(self) -> bool:
        """Partial aggregates have no order, so that all splits of a task share them."""
        return self.first is not None and (not self.whole or self.watermark is not None)

    @property
    def late_until(self) -> int | None:
        """The last event time of which an element may be late; None if that is not known."""
        if self.first is None or self.watermark is None:
            return None
        return self.first.panes.last_time_of(self.first.panes.last_late(self.lateness_ms, self.watermark))

    def knowing(self, watermark_ms: int) -> ColumnPartitioner:
        """Return a copy for an operator that stands at a watermark."""
        return replace(self, watermark=watermark_ms)

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        dealt = f"by column {', '.join(self.keys)}" if self.keys else "all together"
        if self.computed is not None:
            dealt = self.computed.describe()
        says = [dealt]
        if self.first is not None:
            says.append("aggregated before the shuffle to one row for each key and pane")
        if self.divides:
            says.append(
                "or, where they may be late, as columns of whole elements, because late ones go to a side output"
            )
        elif self.whole:
            says.append("as columns of whole elements, because late ones go to a side output")
        elif self.first is None:
            says.append("as columns")
        return ", ".join(says)

    def user_functions(self) -> list[tuple[str, Any]]:
        """The key selector, if it computes keys and is an object."""
        return [] if self.computed is None else selectors(self.computed.select)

    def open(self, producer: str, slot: int, subtasks: int) -> _TableWriter:
        """An empty writer of the task with a slot."""
        if self.divides and self.mixes_splits:
            return _InTimeWriter(self, producer, subtasks)
        return _TableWriter(self, producer, subtasks, whole=self.whole)

    def columns_of(self, columns: Columns, *, whole: bool) -> dict[str, pa.Array]:
        """The columns of elements that leave, or that are aggregated first."""
        if self.timed and (columns.timestamps is None or columns.timestamps.null_count):
            raise DataError(
                "an element has no timestamp; give the stream one with assign_timestamps_and_watermarks and a "
                "strategy with a timestamp assigner"
            )
        values = columns.values
        by_field = () if self.computed is not None else self.keys
        content = {VALUE: values} if whole else value_columns(values, by_field, self.columns)
        time = {}
        if self.timed or self.sorted_by_time:
            times = columns.timestamps_or_nulls()
            time[TIMESTAMP] = times.fill_null(MIN_MS) if times.null_count else times
        elif self.clocked:
            time[TIMESTAMP] = constant(0, len(columns))
        return {**content, **time, SEQUENCE: columns.sequence}


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


class _TableWriter:
    """Gathers elements that leave ``whole``, or what an operator needs of them, which may be aggregated first."""

    def __init__(self, partitioner: ColumnPartitioner, producer: str, subtasks: int, *, whole: bool) -> None:
        self._partitioner = partitioner
        self._producer = producer
        self._subtasks = subtasks
        self._whole = whole
        self._first = None if whole else partitioner.first
        self._rows: list[pa.Table] = []
        self._partials: list[pa.Table] = []
        self._sent = 0
        self.size = 0

    def add(self, batch: Elements) -> BatchInPython | None:
        partitioner, in_python = self._partitioner, None
        columns = batch.as_columns(partitioner.value_type)
        if partitioner.select is not None and columns.values.null_count:
            extracted_keys(partitioner.select, batch)
        beside: dict[str, pa.Array] = {}
        if partitioner.computed is not None:
            keys, reason = partitioner.computed.columns(columns)
            beside.update(zip(partitioner.keys, keys, strict=True))
            in_python = None if reason is None else BatchInPython(self._producer, reason)
        if partitioner.gaps is not None:
            beside[GAP], of_gaps = partitioner.gaps.column(columns)
            in_python = in_python or of_gaps
        with calling(self._producer, during="when its elements were sent on"):
            self._take(columns, beside)
        return in_python

    def append(self, rows: pa.Table) -> None:
        """Take rows with the columns that leave, or that are aggregated."""
        self._rows.append(rows)
        self.size += len(rows)
        if self.size >= _ROWS_AT_ONCE:
            self._aggregate()

    def _take(self, columns: Columns, beside: Mapping[str, pa.Array]) -> None:
        self.append(pa.table({**self._partitioner.columns_of(columns, whole=self._whole), **beside}))

    def _aggregate(self) -> None:
        if self._first is not None and self._rows:
            self._partials.append(self._first.partial(pa.concat_tables(self._rows)))
            self._rows, self.size = [], 0

    def take(self) -> Iterator[tuple[int, bytes]]:
        self._aggregate()
        waiting = self._partials or self._rows
        self._rows, self._partials, self.size = [], [], 0
        if not waiting:
            return
        table = pa.concat_tables(waiting)
        if self._first is not None and len(waiting) > 1:
            table = self._first.merge(table)
        for subtask, part in self._dealt_out(table):
            for start, rows in frame_slices(part):
                self._sent += 1
                yield subtask, self._partitioner.codec.encode(part.slice(start, rows), self._sent)

    def _dealt_out(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        partitioner = self._partitioner
        by: Mapping[str, pa.ChunkedArray] | pa.Table = table
        if self._whole and partitioner.computed is None:
            by = value_columns(table.column(VALUE).combine_chunks(), partitioner.keys, ())
        columns = [by[name] for name in key_names(len(partitioner.keys))]
        owner = owners(columns, partitioner.max_parallelism, self._subtasks)
        if owner is None:
            yield 0, table
            return
        for subtask in range(self._subtasks):
            yield subtask, table.filter(pa.array(owner == subtask))


class _InTimeWriter(_TableWriter, DividingWriter):
    """Gathers the elements of all splits of a task that cannot be late, of which partial aggregates leave."""

    def __init__(self, partitioner: ColumnPartitioner, producer: str, subtasks: int) -> None:
        super().__init__(partitioner, producer, subtasks, whole=False)

    def apart(self) -> _TableWriter:
        """A writer of a split: what may be late waits in it, and what cannot be, here."""
        return _MaybeLateWriter(self, self._partitioner, self._producer, self._subtasks)


class _MaybeLateWriter(_TableWriter):
    def __init__(self, in_time: _TableWriter, partitioner: ColumnPartitioner, producer: str, subtasks: int) -> None:
        super().__init__(partitioner, producer, subtasks, whole=True)
        self._in_time = in_time
        self._late_until = partitioner.late_until

    def _take(self, columns: Columns, beside: Mapping[str, pa.Array]) -> None:
        rows = pa.table({**self._partitioner.columns_of(columns, whole=False), **beside})
        is_in_time = pc.greater(rows.column(TIMESTAMP), self._late_until)
        if pc.all(is_in_time, min_count=0).as_py():
            self._in_time.append(rows)
            return
        self._in_time.append(rows.filter(is_in_time))
        whole = pa.table({**self._partitioner.columns_of(columns, whole=True), **beside})
        self.append(whole.filter(pc.invert(is_in_time)))
