"""Tumbling and sliding windows by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.time_window import TimeWindow
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import PANE, TablePayload, constant, slices_by
from eventide.runtime.columnar.operator import ColumnarOperator, only_keys_of, rows_in
from eventide.runtime.columnar.pane_aggregation import PaneAggregation
from eventide.runtime.columnar.pane_store import PaneStore
from eventide.runtime.metrics import WITHOUT_WINDOW, Metrics
from eventide.runtime.state.backend import StateBackend
from eventide.runtime.window.rules import has_passed, is_window_late, latest_late_time, passes

if TYPE_CHECKING:
    from eventide.runtime.columnar.spec import ColumnarWindow

_WINDOW = "window"
_ROWS_AT_ONCE = 1 << 21


class PaneOperator(ColumnarOperator):
    """Keeps partial aggregates by pane and key, and puts windows together from panes when they fire.

    An element that is late, but within the allowed lateness, fires its windows again: once for each key, window and
    micro-batch, with the final value.
    """

    def __init__(
        self, spec: ColumnarWindow, first: PaneAggregation, backend: StateBackend, metrics: Metrics, watermark_ms: int
    ) -> None:
        super().__init__(spec, metrics, watermark_ms)
        self.first = first
        self.store = PaneStore(backend, self.merged)
        self._windows: dict[int, list[TimeWindow]] = {}

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements, or partial aggregates of them, to their panes."""
        partials = self._of_partials(parts) if self.spec.aggregates_first else self._of_rows(parts)
        added = dict(slices_by(partials, PANE))
        for pane, table in added.items():
            self.store.add(pane, table, merged=len(parts) == 1 or not self.spec.aggregates_first)
        self._fire_again(added)

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether a window fires, or is dropped, when the watermark gets there; an element in a gap may be late."""
        panes = self.first.panes
        return panes.slide > panes.size or any(
            panes.is_boundary_between(self.watermark, watermark_ms, late_ms) for late_ms in {0, self.spec.lateness_ms}
        )

    def advance(self, watermark_ms: int) -> None:
        """Fire the windows that the watermark passes, in the order of time, and drop what no window needs."""
        before, self.watermark = self.watermark, watermark_ms
        panes = self.store.panes()
        due = {w for p in panes for w in self.windows_of(p) if passes(w.max_timestamp(), before, watermark_ms)}
        for table, windows in self._put_together(due):
            self.outputs.add_of_windows(table, _WINDOW, windows)
        for pane in panes:
            if self.is_late(pane):
                self.store.drop(pane)

    def flush(self) -> None:
        """Store the state."""
        self.store.flush()

    def _of_partials(self, parts: list[TablePayload]) -> pa.Table:
        """What was aggregated before the shuffle, without what is late."""
        partials = pa.concat_tables([part.table for part in parts])
        panes = partials.column(PANE)
        late_panes = [pane for pane in pc.unique(panes).to_pylist() if self.is_late(pane)]
        if not late_panes:
            return partials
        late = pc.is_in(panes, value_set=pa.array(late_panes))
        self.count_late(rows_in(partials.filter(late)))
        return partials.filter(pc.invert(late))

    def _of_rows(self, parts: list[TablePayload]) -> pa.Table:
        """Rows aggregated here, without those that are late or in a gap between windows."""
        rows = self.rows(parts)
        timestamps = rows.column(TIMESTAMP).to_numpy()
        starts = self.first.panes.start_of(timestamps)
        distinct = np.unique(starts).tolist()
        in_gap = np.isin(starts, [pane for pane in distinct if not self.windows_of(pane)])
        late = np.isin(starts, [pane for pane in distinct if self.is_late(pane)])
        late = np.where(in_gap, timestamps <= latest_late_time(self.spec.lateness_ms, self.watermark), late)
        accepted = ~late & ~in_gap
        self.count(WITHOUT_WINDOW, int((in_gap & ~late).sum()))
        self.report_late(rows, late)
        return self.partial(rows if accepted.all() else rows.filter(pa.array(accepted)))

    def partial(self, rows: pa.Table) -> pa.Table:
        """Rows aggregated by key and pane."""
        return self.first.partial(rows)

    def _fire_again(self, added: dict[int, pa.Table]) -> None:
        """Fire windows that the watermark has passed already, for the keys that were added to."""
        again = {w for p in added for w in self.windows_of(p) if has_passed(w.max_timestamp(), self.watermark)}
        live = {w for w in again if not is_window_late(w.max_timestamp(), self.spec.lateness_ms, self.watermark)}
        for table, windows in self._put_together(live):
            touched = [
                part.select(self.keys).append_column(_WINDOW, constant(number, len(part)))
                for number, window in enumerate(windows)
                for pane, part in added.items()
                if window in self.windows_of(pane)
            ]
            wanted = only_keys_of(table, pa.concat_tables(touched), [*self.keys, _WINDOW])
            self.outputs.add_of_windows(wanted, _WINDOW, windows)

    def _put_together(self, windows: Iterable[TimeWindow]) -> Iterator[tuple[pa.Table, list[TimeWindow]]]:
        """Windows in the order of time, some at once: one row for each key and number of a window among them."""
        panes_of: dict[TimeWindow, list[int]] = {window: [] for window in windows}
        for pane in self.store.panes() if panes_of else ():
            for window in self.windows_of(pane):
                if window in panes_of:
                    panes_of[window].append(pane)
        some: list[TimeWindow] = []
        tables: list[pa.Table] = []
        for window in sorted(panes_of, key=lambda w: (w.end, w.start)):
            for pane in panes_of[window]:
                table = self.store.read(pane)
                tables.append(table.append_column(_WINDOW, constant(len(some), len(table))))
            some.append(window)
            if sum(map(len, tables)) >= _ROWS_AT_ONCE:
                yield self._merged_windows(tables, some), some
                some, tables = [], []
        if some:
            yield self._merged_windows(tables, some), some

    def _merged_windows(self, tables: list[pa.Table], windows: list[TimeWindow]) -> pa.Table:
        together = pa.concat_tables(tables)
        return together if len(tables) == len(windows) else self.merged(together, _WINDOW)

    def windows_of(self, pane: int) -> list[TimeWindow]:
        """The windows that a pane belongs to."""
        windows = self._windows.get(pane)
        if windows is None:
            windows = self._windows[pane] = self.first.panes.windows(pane)
        return windows

    def is_late(self, pane: int) -> bool:
        """Whether no window of a pane can be updated any more."""
        lateness_ms = self.spec.lateness_ms
        return all(is_window_late(w.max_timestamp(), lateness_ms, self.watermark) for w in self.windows_of(pane))
