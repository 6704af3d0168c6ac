"""The value of the earliest or the latest row by event time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Later

TIMESTAMP = "__timestamp"


@dataclass(frozen=True)
class ValueByTime:
    """The value of the row with the smallest or the largest time, and that time.

    Among equal times the smallest is that of the row that came first, the largest that of the row that came last.
    Where nulls are passed over and there is nothing else, value and time are null.
    """

    column: str
    type: pa.DataType
    function: Literal["min", "max"]
    ignore_nulls: bool

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The value, and its time in milliseconds."""
        return (self.type, pa.int64())

    def partial(self, grouping: Grouping) -> Later:
        """Find the row of each group."""
        values, times = grouping.column(self.column), grouping.column(TIMESTAMP)
        if self.ignore_nulls and values.null_count:
            known = pc.if_else(pc.is_valid(values), times, pa.scalar(None, pa.int64()))
            return self._found(grouping, f"time of {self.column}", values, known)
        return self._found(grouping, TIMESTAMP, values, times)

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Find the row among those of the parts."""
        values, times = (grouping.column(name) for name in names)
        return self._found(grouping, names[1], values, times)

    def _found(self, grouping: Grouping, name: str, values: pa.ChunkedArray, times: pa.ChunkedArray) -> Later:
        grouping.ask_rows()
        wanted = grouping.ask(name, times, self.function)

        def columns(groups: Groups) -> list[pa.Array]:
            time = groups.answer(wanted)
            hits = times.fill_null(0).to_numpy() == time.fill_null(0).to_numpy()[groups.ids]
            if times.null_count:
                hits &= times.is_valid().to_numpy()
            rows = np.flatnonzero(hits)
            if self.function == "min":
                rows = rows[::-1]  # of equal indices numpy keeps the last that is assigned
            place = np.full(groups.size, -1)
            place[groups.ids[rows]] = rows
            return [values.take(pa.array(place, mask=place < 0)).combine_chunks(), time]

        return columns
