"""Tumbling and sliding windows by column."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP
from eventide.runtime.columnar.layout import PANE, TablePayload, slices_by
from eventide.runtime.columnar.operator import ColumnarOperator, only_keys_of
from eventide.runtime.columnar.pane_aggregation import PaneAggregation
from eventide.runtime.columnar.pane_store import PaneStore
from eventide.runtime.columnar.pane_tree import NUMBER, PaneTree
from eventide.runtime.columnar.panes import arrived
from eventide.runtime.metrics import OPEN_WINDOWS, WITHOUT_WINDOW, Metrics
from eventide.runtime.state.backend import Backend

if TYPE_CHECKING:
    from eventide.runtime.columnar.spec import ColumnarWindow


class PaneOperator(ColumnarOperator):
    """Keeps partial aggregates by pane and key, and puts windows together from panes when they fire.

    An element that is late, but within the allowed lateness, fires its windows again: once for each key, window and
    micro-batch, with the final value.
    """

    def __init__(
        self, spec: ColumnarWindow, first: PaneAggregation, backend: Backend, metrics: Metrics, watermark_ms: int
    ) -> None:
        super().__init__(spec, metrics, watermark_ms)
        self.first = first
        self.panes = first.panes
        self.store = PaneStore(backend, self.merged_pane)
        self._tree = PaneTree(backend, self.store, self.panes.per_window, self.merged)

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements, or partial aggregates of them, to their panes."""
        partials = self._of_partials(parts) if self.spec.aggregates_first else self._of_rows(parts)
        added = {self.panes.number_of(start): table for start, table in slices_by(partials, PANE)}
        for pane, table in added.items():
            self.store.add(pane, table)
            self._tree.forget_above(pane)
        self._fire_again(added)

    @property
    def late_until(self) -> int:
        """The last time whose windows can no longer be updated."""
        return self.panes.last_time_of(self.last_late())

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether a window fires, or is dropped, when the watermark gets there; an element in a gap may be late."""
        return self.panes.reacts_between(self.watermark, watermark_ms, self.spec.lateness_ms)

    def advance(self, watermark_ms: int) -> None:
        """Fire the windows that the watermark passes, in the order of time, and drop what no window needs."""
        fired = self.last_fired()
        self.watermark = watermark_ms
        panes = self.store.panes()
        due = self.panes.windows_with(panes, fired + 1, self.last_fired())
        for table, windows in self._put_together(due):
            self.outputs.add_of_windows(table, NUMBER, [self.panes.window(window) for window in windows])
        self.drop_late(panes)

    def flush(self) -> None:
        """Store the state."""
        self.store.flush()
        self._tree.flush()

    def held(self) -> dict[str, int]:
        """How many windows wait for the watermark."""
        return {OPEN_WINDOWS: self.panes.count_windows_with(self.store.panes(), self.last_fired() + 1)}

    def last_fired(self) -> int:
        """The number of the last window that the watermark has passed."""
        return self.panes.last_fired(self.watermark)

    def last_late(self) -> int:
        """The number of the last window that can no longer be updated."""
        return self.panes.last_late(self.spec.lateness_ms, self.watermark)

    def partial(self, rows: pa.Table) -> pa.Table:
        """Rows aggregated by key and pane."""
        return self.first.partial(rows)

    def merged_pane(self, partials: pa.Table) -> pa.Table:
        """Return the stored content of one pane, with one row for each key."""
        return self.merged(partials)

    def drop_late(self, panes: list[int]) -> None:
        """Drop the panes, and what was made of them, whose windows can no longer be updated."""
        needed = (self.last_late() + 1) * self.panes.per_slide
        for pane in panes[: bisect_left(panes, needed)]:
            self.store.drop(pane)
        self._tree.drop_before(needed)

    def _of_partials(self, parts: list[TablePayload]) -> pa.Table:
        """Return the rows that were aggregated before the shuffle, one for each key and pane, without late ones."""
        partials = pa.concat_tables([part.table for part in parts])
        panes = partials.column(PANE)
        until = self.last_late()
        late_panes = [pane for pane in pc.unique(panes).to_pylist() if self._windows_at(pane).stop - 1 <= until]
        if late_panes:
            late = pc.is_in(panes, value_set=pa.array(late_panes))
            gone = partials.filter(late).group_by(PANE).aggregate([(ROWS, "sum")])
            self.count_late(self.panes.last_of(gone.column(PANE).to_numpy()), gone.column(f"{ROWS}_sum").to_numpy())
            partials = partials.filter(pc.invert(late))
        return partials if len(parts) == 1 else self.first.merge(partials)

    def _of_rows(self, parts: list[TablePayload]) -> pa.Table:
        """Rows aggregated here, without those that are late or in a gap between windows."""
        rows = self.rows(parts)
        timestamps = rows.column(TIMESTAMP).to_numpy()
        come = arrived(self.panes, timestamps, self.last_late(), self.spec.lateness_ms, self.watermark)
        accepted = ~come.late & ~come.without_window
        self.count(WITHOUT_WINDOW, int(come.without_window.sum()))
        self.report_late(rows, come.late)
        return self.partial(rows if accepted.all() else rows.filter(pa.array(accepted)))

    def _windows_at(self, start: int) -> range:
        """The windows of the pane that starts at a time."""
        return self.panes.windows_at(self.panes.number_of(start))

    def _fire_again(self, added: dict[int, pa.Table]) -> None:
        """Fire windows that the watermark has passed already, for the keys that were added to."""
        fired = self.last_fired()
        live = self.panes.windows_with(sorted(added), self.last_late() + 1, fired)
        if not live:
            return
        wanted = pa.concat_tables([table.select([*self.keys, ROWS]) for table in added.values()])
        for table, windows in self._put_together(live, wanted):
            number_of = {window: number for number, window in enumerate(windows)}
            touched = []
            for pane, part in added.items():
                at = self.panes.windows_at(pane)
                numbers = [number_of[window] for window in range(max(at.start, windows[0]), min(at.stop, fired + 1))
                           if window in number_of]  # fmt: skip
                rows = part.take(pa.array(np.tile(np.arange(len(part)), len(numbers))))
                column = pa.array(np.repeat(np.array(numbers, np.int64), len(part)))
                touched.append(rows.select(self.keys).append_column(NUMBER, column))
            again = only_keys_of(table, pa.concat_tables(touched), [*self.keys, NUMBER])
            self.outputs.add_of_windows(again, NUMBER, [self.panes.window(window) for window in windows])

    def _put_together(self, windows: list[int], only: pa.Table | None = None) -> Iterator[tuple[pa.Table, list[int]]]:
        """Windows in the order of time, some at once: one row for each key and number of a window among them."""
        panes = self.panes
        first_panes = [window * panes.per_slide for window in windows]
        ranges = [(first, first + panes.per_window) for first in first_panes]
        for table, count in self._tree.together(ranges, only, self.keys):
            some, windows = windows[:count], windows[count:]
            yield table, some
