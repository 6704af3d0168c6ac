"""Description of a columnar window operator, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.api.windows import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    Trigger,
    WindowAssigner,
)
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.columnar.aggregation import Aggregation
from eventide.runtime.columnar.layout import BOUNDS, FIRE, ResultShape, key_names, rows_in_time_order
from eventide.runtime.columnar.panes import PaneAggregation, Panes, panes_of
from eventide.runtime.columnar.partitioner import ColumnPartitioner
from eventide.runtime.tasks.operator import OnColumns, SortInputs


@dataclass(frozen=True, slots=True)
class ColumnarWindow(OnColumns):
    """All that describes a columnar window operator; picklable.

    ``value_type`` is the type of the elements, ``keys`` are the fields that they are keyed by (none for windows over
    all elements). ``one_by_one`` says that a watermark may come between any two elements, ``in_batch`` that elements
    are put into the order of their timestamps.
    """

    name: str
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    aggregation: Aggregation
    value_type: TypeInformation
    keys: tuple[str, ...]
    shape: ResultShape
    lateness_ms: int = 0
    late_tag: str | None = None
    one_by_one: bool = False
    in_batch: bool = False

    @property
    def ships_elements(self) -> bool:
        """Whether whole elements come, because late ones are wanted as they are."""
        return self.late_tag is not None

    @property
    def aggregates_first(self) -> bool:
        """Whether elements are aggregated before the shuffle.

        Not where the order of elements decides which are late (sessions), counts, or shows in a result, nor where some
        have no window.
        """
        has_gaps = isinstance(self.assigner, SlidingEventTimeWindows) and self.assigner.slide > self.assigner.size
        in_order = has_gaps or self.one_by_one or self.is_continuous or self.aggregation.keeps_order
        return self.panes is not None and not self.ships_elements and not in_order

    @property
    def is_continuous(self) -> bool:
        """Whether windows fire at intervals before their end."""
        return isinstance(self.trigger, ContinuousEventTimeTrigger)

    @property
    def panes(self) -> Panes | None:
        """How time falls into panes; None where windows do not consist of panes."""
        return panes_of(self.assigner)

    @property
    def key_fields(self) -> list[pa.Field]:
        """The columns of the key in tables."""
        fields = {field.name: field.type for field in self.value_type.arrow_type()}
        return [pa.field(name, fields[key]) for name, key in zip(key_names(len(self.keys)), self.keys, strict=True)]

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables that it keeps."""
        times: list[pa.Field] = []
        if isinstance(self.assigner, EventTimeSessionWindows):
            times = BOUNDS
        elif self.is_continuous:
            times = [pa.field(FIRE, pa.int64())]
        return pa.schema([*self.key_fields, *times, *self.aggregation.partial_fields])

    def partitioner(self, max_parallelism: int) -> ColumnPartitioner:
        """How elements get here."""
        first = self.pane_aggregation() if self.aggregates_first else None
        return ColumnPartitioner(
            self.value_type,
            self.keys,
            tuple(self.aggregation.input_columns),
            max_parallelism,
            first,
            whole=self.ships_elements,
            timed=self.assigner.is_event_time() or self.aggregation.uses_timestamps,
            sorted_by_time=self.in_batch,
        )

    def pane_aggregation(self) -> PaneAggregation:
        """How elements are aggregated by key and pane; for windows that consist of panes."""
        panes = self.panes
        if panes is None:
            raise TypeError(f"{self.assigner!r} has no panes")
        return PaneAggregation(panes, len(self.keys), self.aggregation)

    @property
    def sort_inputs(self) -> SortInputs:
        """Sorts by timestamps."""
        return rows_in_time_order

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        late = "dropped and counted" if self.late_tag is None else f"to side output {self.late_tag!r}"
        kept = "sessions" if isinstance(self.assigner, EventTimeSessionWindows) else "panes"
        return [
            ("windows", repr(self.assigner)),
            ("trigger", repr(self.trigger)),
            ("computes", ", ".join(self.aggregation.result_names)),
            ("late", f"allowed lateness {self.lateness_ms} ms, later than that {late}"),
            ("state", f"partial aggregates in Arrow columns, by key and {kept}"),
        ]
