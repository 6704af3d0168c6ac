"""Base of joins on columns: rows of two sides come in, pairs of them go out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.typeinfo import TypeInformation
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import TablePayload, joined_rows, key_names
from eventide.runtime.columnar.operator import Gathered, whole_elements
from eventide.runtime.columnar.partitioner import ColumnPartitioner, unpacked
from eventide.runtime.elements.columns import Columns
from eventide.runtime.elements.elements import Elements
from eventide.runtime.joins.matching import Array
from eventide.runtime.joins.selection import Selection
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT
from eventide.runtime.tasks.operator import OperatorContext, OperatorInput, WithoutClock


@dataclass(frozen=True, slots=True)
class Side:
    """One of two streams: the type of its elements, the fields of its key and those that come out.

    Late elements go to the side output ``late_tag``, or are dropped (None).
    """

    value_type: TypeInformation
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    late_tag: str | None = None

    def partitioner(self, max_parallelism: int) -> ColumnPartitioner:
        """How its elements get to the join."""
        whole = self.late_tag is not None
        return ColumnPartitioner(self.value_type, self.keys, self.columns, max_parallelism, whole=whole)

    @property
    def used_fields(self) -> frozenset[str] | None:
        """The fields that are looked at; None for all of them."""
        return None if self.late_tag is not None else frozenset({*self.keys, *self.columns})

    @property
    def schema(self) -> pa.Schema:
        """The schema of kept rows: the key and the fields that come out."""
        types = {field.name: field.type for field in self.value_type.arrow_type()}
        keys = [pa.field(name, types[key]) for name, key in zip(key_names(len(self.keys)), self.keys, strict=True)]
        fields = [pa.field(name, types[name]) for name in self.columns]
        return pa.schema([*keys, *fields])


def sides_of(
    inputs: Sequence[OperatorInput], selection: Selection, late_tags: Sequence[str | None] = (None, None)
) -> tuple[Side, Side]:
    """The two streams of a join that are keyed by fields."""
    first, second = (
        Side(source.value_type, source.key.columns if source.key else (), selection.of_side(number), late_tags[number])
        for number, source in enumerate(inputs)
    )
    return first, second


class ColumnJoinOperator(WithoutClock, ABC):
    """The part of a join on columns that does not depend on what makes rows meet."""

    def __init__(self, name: str, sides: tuple[Side, Side], selection: Selection, context: OperatorContext) -> None:
        self.inputs = tuple(partial(self._receive, number) for number in (0, 1))
        self.sides = sides
        self.keys = key_names(len(sides[0].keys))
        self.watermark = context.watermark_ms
        self._name = name
        self._selection = selection
        self._metrics = context.metrics
        self._outputs = Gathered()

    @abstractmethod
    def take(self, number: int, rows: pa.Table) -> None:
        """Take rows of one side, put in order, all under the current watermark; late ones are told by their time."""

    def take_outputs(self) -> Mapping[str | None, Elements]:
        """Give away what came out since the last call, by side output (None: the main one)."""
        return self._outputs.take()

    def report_late(self, number: int, rows: pa.Table, late: Array) -> pa.Table:
        """Count the late rows of a side, send them to the side output that wants them, and give the others."""
        side, count = self.sides[number], int(late.sum())
        if not count:
            return rows
        self.count_late(LATE_DROPPED if side.late_tag is None else LATE_TO_SIDE_OUTPUT, times_of(rows)[late])
        if side.late_tag is not None:
            self._outputs.add_to_side(side.late_tag, whole_elements(rows.filter(pa.array(late)), side.value_type))
        return rows.filter(pa.array(~late))

    def count(self, counter: str, rows: int) -> None:
        """Add to one of the operator's counters."""
        self._metrics.count(self._name, counter, rows)

    def count_late(self, counter: str, times: Array) -> None:
        """Count late rows, by their event times."""
        self._metrics.count_late(self._name, counter, times, self.watermark)

    def put(self, tables: Sequence[pa.Table], pairs: Sequence[Array], times: Any, windows: pa.Array | None) -> None:
        """Give pairs of rows, by their indices in the tables of both sides; -1 is no row."""
        if not len(pairs[0]):
            return
        at = [pa.array(rows, mask=rows < 0) for rows in pairs]
        values = self._selection.array(tables, at, windows)
        places = pa.array(np.arange(self._outputs.count, self._outputs.count + len(values)))
        self._outputs.put(Columns(self._selection.type_info, values, pa.array(times, pa.int64()), places))

    def _receive(self, number: int, parts: list[TablePayload]) -> None:
        rows = joined_rows(parts)
        side = self.sides[number]
        self.take(number, rows if side.late_tag is None else unpacked(rows, side.keys, side.columns))


def times_of(rows: pa.Table) -> Array:
    """The time of each row, in milliseconds."""
    times: Array = rows.column(TIMESTAMP).to_numpy()
    return times
