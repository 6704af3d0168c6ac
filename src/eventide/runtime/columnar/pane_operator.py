"""Tumbling and sliding windows by column, and tumbling windows that fire at intervals before their end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.windows import ContinuousEventTimeTrigger
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP
from eventide.runtime.columnar.layout import FIRE, PANE, TablePayload, constant, key_numbers, slices_by
from eventide.runtime.columnar.operator import ColumnarOperator, ColumnarWindow, only_keys_of
from eventide.runtime.columnar.panes import PaneAggregation
from eventide.runtime.columnar.stores import NUMBER, PaneStore, PaneTree
from eventide.runtime.metrics import OPEN_WINDOWS, Metrics
from eventide.runtime.state.backend import Backend
from eventide.runtime.window.rules import has_passed, passes

_GROUP = "__group"
_WINDOW = "__window"
_TIME = "__time"
Array = np.ndarray[Any, Any]


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
        rows, _ = self.accepted(self.rows(parts), self.panes, self.last_late())
        return self.partial(rows)

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


class ClockOperator(PaneOperator):
    """Tumbling windows of processing time: all elements of a micro-batch are in the window of its time.

    The clock is to it what the watermark is to other windows. Nothing is late, and no window is left that has fired.
    """

    def __init__(
        self, spec: ColumnarWindow, first: PaneAggregation, backend: Backend, metrics: Metrics, clock_ms: int
    ) -> None:
        super().__init__(spec, first, backend, metrics, MIN_MS)
        self._clock_ms = clock_ms

    def process(self, parts: list[TablePayload]) -> None:
        """Add partial aggregates to the window of the time of the micro-batch."""
        partials = pa.concat_tables([part.table for part in parts])
        start = int(self.panes.start_of(np.array([self._clock_ms]))[0])
        place = partials.schema.get_field_index(PANE)
        partials = partials.set_column(place, PANE, constant(start, len(partials)))
        if len(parts) > 1:
            partials = self.first.merge(partials)
        for pane_start, table in slices_by(partials, PANE):
            self.store.add(self.panes.number_of(pane_start), table)

    def reacts_to(self, watermark_ms: int) -> bool:
        """False: no window follows the watermark."""
        return False

    @property
    def late_until(self) -> int:
        """``MIN_MS``: nothing is late."""
        return MIN_MS

    def advance(self, watermark_ms: int) -> None:
        """Nothing happens."""

    def advance_clock(self, clock_ms: int) -> None:
        """Fire the windows whose last millisecond has come."""
        super().advance(clock_ms)

    @property
    def next_clock_ms(self) -> int | None:
        """The last millisecond of the first window that there is."""
        panes = self.store.panes()
        return self.panes.window(panes[0]).max_timestamp() if panes else None

    def timers_left(self) -> int:
        """How many windows of a key have not fired."""
        return sum(self._keys_in(pane) for pane in self.store.panes())

    def _keys_in(self, pane: int) -> int:
        return len(self.merged_pane(pa.concat_tables([*self.store.stored(pane), *self.store.added(pane)])))


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
