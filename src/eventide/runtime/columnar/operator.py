"""Base of columnar windows: where they stand, what is late, and how their tables become results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.time_window import TimeWindow
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import VALUE, ResultShape, TablePayload, joined_rows, key_names
from eventide.runtime.columnar.partitioner import unpacked
from eventide.runtime.columnar.spec import ColumnarWindow
from eventide.runtime.elements.columns import Columns
from eventide.runtime.elements.elements import Elements
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, Metrics
from eventide.runtime.tasks.operator import Receive, WithoutClock


class ColumnarOperator(WithoutClock, ABC):
    """The part of a columnar window operator that does not depend on the kind of window."""

    def __init__(self, spec: ColumnarWindow, metrics: Metrics, watermark_ms: int) -> None:
        self.spec = spec
        self.keys = key_names(len(spec.keys))
        self.watermark = watermark_ms
        self.outputs = Outputs(spec.shape)
        self._metrics = metrics

    @property
    def inputs(self) -> Sequence[Receive]:
        """Its one input."""
        return (self.process,)

    @property
    @abstractmethod
    def late_until(self) -> int:
        """The last event time of which an element may come too late now."""

    @abstractmethod
    def process(self, parts: list[TablePayload]) -> None:
        """Add elements, put in order, all under the current watermark."""

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: any watermark may change something."""
        return True

    def take_outputs(self) -> dict[str | None, Elements]:
        """Give away what came out since the last call, by side output (None: the main one)."""
        return self.outputs.take()

    def merged(self, partials: pa.Table, *by: str) -> pa.Table:
        """One row for each key, or for each key and what else is named."""
        return self.spec.aggregation.merge(partials, [*self.keys, *by])

    def rows(self, parts: list[TablePayload]) -> pa.Table:
        """The rows of several channels in their order, with the columns of key and aggregates."""
        rows = joined_rows(parts)
        return unpacked(rows, self.spec.keys, self.spec.aggregation.input_columns) if self.spec.ships_elements else rows

    def report_late(self, rows: pa.Table, late: np.ndarray[Any, Any]) -> None:
        """Count the late rows, and send them to the side output that wants them."""
        if not late.any():
            return
        self.count_late(rows.column(TIMESTAMP).to_numpy()[late])
        if self.spec.late_tag is not None:
            gone = whole_elements(rows.filter(pa.array(late)), self.spec.value_type)
            self.outputs.add_to_side(self.spec.late_tag, gone)

    def count_late(self, times: np.ndarray[Any, Any], counts: np.ndarray[Any, Any] | None = None) -> None:
        """Count late elements by their event times, or sums of several, each with its count."""
        kind = LATE_DROPPED if self.spec.late_tag is None else LATE_TO_SIDE_OUTPUT
        self._metrics.count_late(self.spec.name, kind, times, self.watermark, counts)

    def count(self, counter: str, rows: int) -> None:
        """Add to one of the operator's counters."""
        self._metrics.count(self.spec.name, counter, rows)


def whole_elements(rows: pa.Table, value_type: TypeInformation) -> Columns:
    """Rows of whole elements as the elements that they were."""
    values, timestamps = (rows.column(name).combine_chunks() for name in (VALUE, TIMESTAMP))
    return Columns(value_type, values, timestamps, pa.array(np.arange(len(rows))))


def only_keys_of(table: pa.Table, wanted: pa.Table, keys: list[str]) -> pa.Table:
    """The rows of a table, one for each key, whose key is in another table too."""
    if not keys:
        return table if len(wanted) else table.slice(0, 0)
    marked = [
        part.select(keys).append_column("wanted", pa.array(np.full(len(part), mark)))
        for part, mark in ((table, 0), (wanted, 1))
    ]
    # Groups come in the order in which their keys are first seen, so those of the table come as its rows do.
    groups = pa.concat_tables(marked).group_by(keys, use_threads=False).aggregate([("wanted", "max")])
    found = groups.column("wanted_max").to_numpy()[: len(table)]
    return table.filter(pa.array(found == 1))


class Gathered:
    """Gathers what an operator gives as columns, by side output (None: the main one)."""

    def __init__(self) -> None:
        self._results: list[Columns] = []
        self._sides: dict[str, list[Columns]] = {}
        self.count = 0

    def put(self, results: Columns) -> None:
        """Take results, in the order in which they are to come out, numbered from ``count`` on."""
        if len(results):
            self._results.append(results)
            self.count += len(results)

    def add_to_side(self, tag: str, columns: Columns) -> None:
        """Take elements for a side output."""
        self._sides.setdefault(tag, []).append(columns)

    def take(self) -> dict[str | None, Elements]:
        """Give away what there is."""
        outputs: dict[str | None, Elements] = {
            tag: Elements(columns=Columns.joined(parts)) for tag, parts in self._sides.items()
        }
        if self._results:
            outputs[None] = Elements(columns=Columns.joined(self._results))
        self._results, self._sides, self.count = [], {}, 0
        return outputs


class Outputs(Gathered):
    """Gathers what windows of aggregates give."""

    def __init__(self, shape: ResultShape) -> None:
        super().__init__()
        self._shape = shape

    def add(self, partials: pa.Table, bounds: tuple[Any, Any] | None, timestamps: Any) -> None:
        """Take results, in the order in which they are to come out."""
        if len(partials):
            self.put(self._shape.columns(partials, bounds, timestamps, self.count))

    def add_of_windows(self, partials: pa.Table, column: str, windows: Sequence[TimeWindow]) -> None:
        """Take results whose window is given by its number, in a column."""
        number = partials.column(column).to_numpy()
        bounds = np.array([(w.start, w.end, w.max_timestamp()) for w in windows], np.int64)[number]
        self.add(partials, (bounds[:, 0], bounds[:, 1]), bounds[:, 2])
