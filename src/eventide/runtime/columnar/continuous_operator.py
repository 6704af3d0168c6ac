"""Tumbling windows that fire at intervals before their end, by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import ContinuousEventTimeTrigger
from eventide.common.ms import MAX_MS
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import PANE, constant
from eventide.runtime.columnar.pane_aggregation import PaneAggregation
from eventide.runtime.columnar.pane_operator import PaneOperator
from eventide.runtime.columnar.sessionizing import key_numbers
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import Backend
from eventide.runtime.window.rules import has_passed, passes

if TYPE_CHECKING:
    from eventide.runtime.columnar.spec import ColumnarWindow

FIRE = "__fire"
_GROUP = "__group"
_WINDOW = "__window"
_TIME = "__time"
Array = np.ndarray[Any, Any]


class ContinuousOperator(PaneOperator):
    """Fires each key and window whenever the watermark reaches the next multiple of the interval, and at the end.

    The first multiple follows from the element of the key that came first, as in Flink; it is stored beside the partial
    aggregates of a key (null where the window had ended when its first element came). In batch execution there is no
    second multiple: a timer that is set by a timer never fires.
    """

    def __init__(
        self, spec: ColumnarWindow, first: PaneAggregation, backend: Backend, metrics: Metrics, watermark_ms: int
    ) -> None:
        super().__init__(spec, first, backend, metrics, watermark_ms)
        if not isinstance(spec.trigger, ContinuousEventTimeTrigger):
            raise TypeError(f"{spec.trigger!r} does not fire at intervals")
        self._interval = spec.trigger.interval
        self._seen: dict[int, int] = {}

    def partial(self, rows: pa.Table) -> pa.Table:
        """Rows aggregated by key and window, with the time at which each is to fire first."""
        times = rows.column(TIMESTAMP).to_numpy()
        panes = self.panes.start_of(times)
        rows = rows.append_column(PANE, pa.array(panes))
        distinct, number = np.unique(panes, return_inverse=True)
        windows = [self.panes.window(self.panes.number_of(pane)) for pane in distinct.tolist()]
        last = np.array([window.max_timestamp() for window in windows], np.int64)[number]
        multiple = times - np.fmod(times, self._interval)
        following = np.where(multiple > MAX_MS - self._interval, MAX_MS, multiple + self._interval)
        fire = pa.array(np.minimum(following, last), mask=has_passed(last, self.watermark))
        return self._by_group(rows.append_column(FIRE, fire), [*self.keys, PANE], self.spec.aggregation.partial)

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: an interval may be over."""
        return True

    def advance(self, watermark_ms: int) -> None:
        """Fire what the watermark passes, in the order of time, and drop windows that are late."""
        before, self.watermark = self.watermark, watermark_ms
        panes = self.store.panes()
        windows = [self.panes.window(pane) for pane in panes]
        firings = [self._firings(panes[i], windows[i].max_timestamp(), before, i) for i in range(len(panes))]
        if firings:
            together = pa.concat_tables(firings)
            order = np.argsort(together.column(_TIME).to_numpy(), kind="stable")
            self.outputs.add_of_windows(together.take(order), _WINDOW, windows)
        for pane in panes:
            self._seen[pane] = len(self.store.added(pane))
        self.drop_late(panes)

    def _firings(self, pane: int, last_ms: int, before_ms: int, number: int) -> pa.Table:
        """The rows of one window, each as often as it fires now, with the times at which."""
        seen = self._seen.get(pane, 0)
        old = [*self.store.stored(pane), *self.store.added(pane)[:seen]]
        together = pa.concat_tables([*old, *self.store.added(pane)[seen:]])
        _, first = np.unique(key_numbers(together, self.keys), return_index=True)
        merged = self.merged_pane(together)
        fire = merged.column(FIRE).fill_null(MAX_MS).to_numpy()
        fired_until = np.where(first < sum(map(len, old)), np.maximum(before_ms, fire - 1), fire - 1)
        rows, times = self._multiples(fire, fired_until, min(self.watermark, last_ms - 1))
        if passes(last_ms, before_ms, self.watermark):
            rows = np.append(rows, np.arange(len(merged)))
            times = np.append(times, np.full(len(merged), last_ms))
        firings = merged.take(rows)
        return firings.append_column(_TIME, pa.array(times)).append_column(_WINDOW, constant(number, len(rows)))

    def _multiples(self, fire: Array, fired_until: Array, until_ms: int) -> tuple[Array, Array]:
        """Which rows fire at which multiples after ``fired_until``, up to a time, in milliseconds."""
        waiting = fire <= until_ms
        following = fire + ((fired_until - fire) // self._interval + 1) * self._interval
        counts = np.where(waiting & (following <= until_ms), (until_ms - following) // self._interval + 1, 0)
        if self.spec.in_batch:
            counts = np.minimum(counts, 1)
        rows = np.repeat(np.arange(len(fire)), counts)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, following[rows] + nth * self._interval

    def merged_pane(self, partials: pa.Table) -> pa.Table:
        """Return the stored content of one window, with one row for each key."""
        return self._by_group(partials, self.keys, self.spec.aggregation.merge)

    def _by_group(self, table: pa.Table, by: list[str], aggregate: Callable[..., pa.Table]) -> pa.Table:
        """Aggregate by some columns; the time to fire is that of the row of a group that comes first."""
        number = key_numbers(table, by)
        _, first = np.unique(number, return_index=True)
        partials = aggregate(table.append_column(_GROUP, pa.array(number)), [_GROUP])
        partials = partials.take(np.argsort(partials.column(_GROUP).to_numpy())).drop_columns([_GROUP])
        for position, name in enumerate([*by, FIRE]):
            partials = partials.add_column(position, name, table.column(name).take(first))
        return partials
