"""Windows of a number of elements, by column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.columnar.aggregation import ROWS
from eventide.runtime.columnar.keyed_table import KeyedTable
from eventide.runtime.columnar.layout import TablePayload, numbered_together
from eventide.runtime.columnar.operator import ColumnarOperator
from eventide.runtime.columnar.spec import ColumnarWindow
from eventide.runtime.metrics import KEYS, Metrics
from eventide.runtime.state.backend import Backend

_WINDOW = "__window"


class CountOperator(ColumnarOperator):
    """Keeps the window of each key that is not full yet; a full one fires with its last element, and is forgotten."""

    def __init__(
        self,
        spec: ColumnarWindow,
        size: int,
        backend: Backend,
        metrics: Metrics,
        watermark_ms: int,
    ) -> None:
        super().__init__(spec, metrics, watermark_ms)
        self._size = size
        self._schema = spec.stored_schema("")
        self._open = KeyedTable(backend, self._schema, self.keys)

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements to the windows of their keys, in their order."""
        rows = self.rows(parts)
        self._open.read_keys_of(rows)
        before = self._open.table
        place = self._places(before, rows)  # of each row in the windows of its key: the open window is number 0
        window = place // self._size
        partials = self.spec.aggregation.partial(rows.append_column(_WINDOW, pa.array(window)), [*self.keys, _WINDOW])
        opened = before.append_column(_WINDOW, pa.array(np.zeros(len(before), np.int64)))
        windows = self.merged(pa.concat_tables([opened.select(partials.column_names), partials]), _WINDOW)
        full = windows.column(ROWS).to_numpy() == self._size
        self._open.table = windows.filter(pa.array(~full)).select(self._schema.names)
        filling = place % self._size == self._size - 1
        by = [*self.keys, _WINDOW]
        filled = rows.append_column(_WINDOW, pa.array(window)).filter(pa.array(filling)).select(by)
        self._emit(windows.filter(pa.array(full)), filled)

    @property
    def late_until(self) -> int:
        """``MIN_MS``: these windows have no time."""
        return MIN_MS

    def reacts_to(self, watermark_ms: int) -> bool:
        """False: no watermark changes anything."""
        return False

    def advance(self, watermark_ms: int) -> None:
        """Nothing happens: these windows have no time."""
        self.watermark = watermark_ms

    def flush(self) -> None:
        """Store the state."""
        self._open.flush(lambda _: MAX_MS)

    def held(self) -> dict[str, int]:
        """How many keys have a window that is not full."""
        return {KEYS: self._open.count}

    def _places(self, opened: pa.Table, rows: pa.Table) -> np.ndarray[Any, Any]:
        """How many elements of its key come before each row, in the open window and in this micro-batch."""
        open_keys, row_keys = numbered_together(opened, rows, self.keys)
        counts = np.zeros(int(max(open_keys.max(initial=0), row_keys.max(initial=0))) + 1, np.int64)
        counts[open_keys] = opened.column(ROWS).to_numpy()
        order = np.argsort(row_keys, kind="stable")
        starts = np.searchsorted(row_keys[order], np.arange(len(counts)))
        places: np.ndarray[Any, Any] = np.empty(len(rows), np.int64)
        places[order] = np.arange(len(rows)) - starts[row_keys[order]]
        places += counts[row_keys]
        return places

    def _emit(self, windows: pa.Table, filled: pa.Table) -> None:
        """Emit full windows in the order of the elements that filled them, which are the same keys and windows."""
        if not len(windows):
            return
        of_windows, of_elements = numbered_together(windows, filled, [*self.keys, _WINDOW])
        order = np.empty(len(windows), np.int64)
        order[np.argsort(of_elements)] = np.argsort(of_windows)
        self.outputs.add(windows.take(order), None, np.full(len(windows), MAX_MS))
