"""Results of columnar windows: tables of keys and partial aggregates become elements of the result type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.time_window import TimeWindow
from eventide.common.typeinfo import TypeInformation
from eventide.runtime.columnar.aggregation import Aggregation
from eventide.runtime.columnar.layout import key_names
from eventide.runtime.elements.columns import Batch, Columns

_LAST_US = 2**63 // 1000 - 1


@dataclass(frozen=True, slots=True)
class ResultShape:
    """The fields of a result: the key's, the window where windows have times, and one for each aggregate."""

    type_info: TypeInformation
    keys: int
    has_window: bool
    aggregation: Aggregation

    def columns(self, partials: pa.Table, bounds: tuple[Any, Any] | None, timestamps: Any, sequence: int) -> Columns:
        """Results, one for each row of partial aggregates.

        Args:
            partials: keys and partial aggregates, of one key and window in each row.
            bounds: where the window of each row starts and ends, in milliseconds.
            timestamps: the event time of each result, in milliseconds.
            sequence: the number of the first result in the output of its task.
        """
        arrays = [partials.column(name).combine_chunks() for name in key_names(self.keys)]
        if bounds is not None:
            arrays.append(window_array(*bounds))
        arrays += self.aggregation.finish(partials)
        fields = list(self.type_info.arrow_type())
        values = pa.StructArray.from_arrays(
            [array.cast(field.type) for array, field in zip(arrays, fields, strict=True)], fields=fields
        )
        places = pa.array(np.arange(sequence, sequence + len(partials)))
        return Columns(self.type_info, values, pa.array(timestamps, pa.int64()), places)


def window_array(starts: Any, ends: Any) -> pa.Array:
    """Windows as structs of timestamps; a time beyond what microseconds can hold is given as the last that they can.

    >>> window_array(np.array([0]), np.array([5_000])).to_pylist()[0]["end"].isoformat()
    '1970-01-01T00:00:05+00:00'
    """
    kind = pa.timestamp("us", tz="UTC")
    arrays = [pa.array(np.clip(times, -_LAST_US, _LAST_US) * 1000).view(kind) for times in (starts, ends)]
    return pa.StructArray.from_arrays(arrays, names=["start", "end"])


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

    def take(self) -> dict[str | None, Batch]:
        """Give away what there is."""
        outputs: dict[str | None, Batch] = {tag: Columns.joined(parts) for tag, parts in self._sides.items()}
        if self._results:
            outputs[None] = Columns.joined(self._results)
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
