"""Windows that consist of panes by column, and those that fire at intervals before their end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.windows import ContinuousEventTimeTrigger
from eventide.api.windows.triggers import unpurged
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.errors import StateError
from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP
from eventide.runtime.columnar.layout import (
    FIRE,
    PANE,
    WINDOW,
    Array,
    TablePayload,
    constant,
    key_numbers,
    numbered_together,
    numbers_in,
    slices_by,
    with_keys_of,
)
from eventide.runtime.columnar.operator import ColumnarOperator, ColumnarWindow
from eventide.runtime.columnar.panes import OfPanes, WholeWindows, windows_of
from eventide.runtime.columnar.stores import NUMBER, PaneStore, PaneTree
from eventide.runtime.elements.keys import first_rows
from eventide.runtime.elements.ordering import spread
from eventide.runtime.eventtime.rules import has_passed, passes
from eventide.runtime.metrics import OPEN_WINDOWS
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.tasks.operator import OperatorContext

_GROUP = "__group"
_OVERDUE = "overdue/"


class PaneOperator(OfPanes, ColumnarOperator):
    """Keeps partial aggregates by pane and key, and puts windows together from panes when they fire.

    An element that is late, but within the allowed lateness, fires its windows again: once for each key, window and
    micro-batch, with the final value.
    """

    def __init__(self, spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self.first = spec.pane_aggregation()
        self.panes = self.first.panes
        self.lateness_ms = spec.lateness_ms
        self.store = PaneStore(backend, self.merged_pane)
        self._tree = PaneTree(backend, self.store, self.panes.per_window, self.merged)

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements, or partial aggregates of them, to their panes."""
        made = []
        if aggregated := [part for part in parts if part.is_aggregated]:
            made.append(self._of_partials(aggregated))
        if rows := [part for part in parts if not part.is_aggregated]:
            made.append(self._of_rows(rows))
        partials = made[0] if len(made) == 1 else self.first.merge(pa.concat_tables(made))
        self._add({self.panes.number_of(start): table for start, table in slices_by(partials, PANE)})

    def _add(self, added: dict[int, pa.Table]) -> None:
        """Add partial aggregates to panes, by number, and fire late windows again."""
        for pane, table in added.items():
            self.store.add(pane, table)
            self._tree.forget_above(pane)
        if not self.spec.fires_alone:
            self._fire_again(added)

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

    def partial(self, rows: pa.Table) -> pa.Table:
        """Rows aggregated by key and pane."""
        return self.first.partial(rows)

    def merged_pane(self, partials: pa.Table) -> pa.Table:
        """Return the stored content of one pane, with one row for each key."""
        return self.merged(partials)

    def drop_late(self, panes: list[int]) -> None:
        """Drop the panes, and what was made of them, whose windows can no longer be updated, or were purged."""
        gone = self.last_fired() if self.spec.purges else self.last_late()
        needed = self.panes.panes_in(gone + 1).start
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
            self._check_that_none_is_wanted()
            late = pc.is_in(panes, value_set=pa.array(late_panes))
            gone = partials.filter(late).group_by(PANE).aggregate([(ROWS, "sum")])
            self.count_late(self.panes.last_of(numbers_in(gone, PANE)), numbers_in(gone, f"{ROWS}_sum"))
            partials = partials.filter(pc.invert(late))
        return partials if len(parts) == 1 else self.first.merge(partials)

    def _check_that_none_is_wanted(self) -> None:
        """Check that partial aggregates may be late: not where late elements are wanted, which they no longer have.

        Raises:
            StateError: if they may not.
        """
        if self.spec.ships_elements:
            raise StateError(
                f"elements came to {self.spec.name!r} aggregated, and they are late, so they cannot go to the side "
                f"output {self.spec.late_tag!r}: a file below the job's checkpoint is wrong that says how far the "
                "operator had come. Delete the folder eventide-reached there, and start the job again; it goes on from "
                "its checkpoint. Please report this, with the program"
            )

    def _of_rows(self, parts: list[TablePayload]) -> pa.Table:
        """Rows aggregated here, without those that are late or in a gap between windows."""
        rows, starts = self.accepted(self.rows(parts), self.panes, self.last_late())
        if self.spec.fires_alone:
            at, windows = windows_of(self.panes, starts, self.last_late())
            ahead = windows > self.last_fired()
            self.fire_alone(rows.take(at[~ahead]).append_column(WINDOW, pa.array(windows[~ahead])))
            rows = rows.take(np.unique(at[ahead]))
        return self.partial(rows)

    def fire_alone(self, rows: pa.Table) -> None:
        """Fire windows that were purged when they fired, each with one element."""
        numbered = rows.append_column(_GROUP, pa.array(np.arange(len(rows))))
        self.emit(self.spec.aggregation.partial(numbered, [*self.keys, WINDOW, _GROUP]), self.panes)

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
            again = with_keys_of(table, pa.concat_tables(touched), [*self.keys, NUMBER])
            self.outputs.add_of_windows(again, NUMBER, [self.panes.window(window) for window in windows])

    def _put_together(self, windows: list[int], only: pa.Table | None = None) -> Iterator[tuple[pa.Table, list[int]]]:
        """Windows in the order of time, some at once: one row for each key and number of a window among them."""
        ranges = [(panes.start, panes.stop) for panes in map(self.panes.panes_in, windows)]
        for table, count in self._tree.together(ranges, only, self.keys):
            some, windows = windows[:count], windows[count:]
            yield table, some


class ClockOperator(PaneOperator):
    """Tumbling windows of processing time: all elements of a micro-batch are in the window of its time.

    The clock is to it what the watermark is to other windows. Nothing is late, and no window is left that has fired.
    """

    def __init__(self, spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, backend, context)
        self.watermark, self._clock_ms = MIN_MS, context.clock_ms

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
    aggregates of a key (null where the window had ended when its first element came). So each window is stored by
    itself, also where windows overlap. In batch execution there is no second multiple: a timer that is set by a timer
    never fires.

    Where a window is purged, a key that has fired stays, with no elements.

    A first multiple that the watermark had passed before the element came is reached when the watermark moves next.
    Keys that wait for that at the end of a micro-batch are written down apart, without elements.
    """

    def __init__(self, spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, backend, context)
        trigger = unpurged(spec.trigger)
        if not isinstance(trigger, ContinuousEventTimeTrigger):
            raise TypeError(f"{spec.trigger!r} does not fire at intervals")
        self._interval = trigger.interval
        self._times = self.first.panes
        self.panes = WholeWindows(self._times)
        self._seen: dict[int, int] = {}
        self._overdue = PaneStore(PartOfState(backend, _OVERDUE), self.merged_pane)

    def process(self, parts: list[TablePayload]) -> None:
        """Add elements to their windows."""
        made = []
        for rows in self.in_windows(self.rows(parts), self._times, self.last_late()):
            ahead = numbers_in(rows, WINDOW) > self.last_fired()
            if self.spec.fires_alone and not ahead.all():
                self.fire_alone(rows.filter(pa.array(~ahead)))
                made.append(self.partial(rows.filter(pa.array(ahead))))
            else:
                made.append(self.partial(rows))
        if made:
            partials = self._by_group(pa.concat_tables(made), [*self.keys, WINDOW], self._merge)
            self._add(dict(slices_by(partials, WINDOW)))

    def partial(self, rows: pa.Table) -> pa.Table:
        """Rows aggregated by key and window, with the time at which each is to fire first."""
        times = numbers_in(rows, TIMESTAMP)
        last = self.panes.last_ms(numbers_in(rows, WINDOW))
        multiple = times - np.fmod(times, self._interval)
        following = np.where(multiple > MAX_MS - self._interval, MAX_MS, multiple + self._interval)
        fire = pa.array(np.minimum(following, last), mask=has_passed(last, self.watermark))
        return self._by_group(rows.append_column(FIRE, fire), [*self.keys, WINDOW], self.spec.aggregation.partial)

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: an interval may be over."""
        return True

    def advance(self, watermark_ms: int) -> None:
        """Fire what the watermark passes, in the order of time, and drop windows that are late."""
        before, self.watermark = self.watermark, watermark_ms
        panes = self.store.panes()
        if panes:
            self._fire(panes, before)
        self._seen = {pane: len(self.store.added(pane)) for pane in panes}
        for pane in self._overdue.panes():
            self._overdue.drop(pane)
        self.drop_late(panes)

    def flush(self) -> None:
        for pane in self.store.panes():
            new = self.store.added(pane)[self._seen.get(pane, 0) :]
            if any(pc.any(pc.less_equal(table.column(FIRE), self.watermark)).as_py() for table in new):
                self._write_down(pane, sum(map(len, new)))
        self._overdue.flush()
        super().flush()

    def _write_down(self, pane: int, new: int) -> None:
        """Write down the keys that are only in the last rows of a window, and whose first multiple has been passed."""
        together = pa.concat_tables([*self.store.stored(pane), *self.store.added(pane)])
        first = first_rows(key_numbers(together, self.keys))
        first = first[first >= len(together) - new]
        passed = together.column(FIRE).fill_null(MAX_MS).to_numpy()[first] <= self.watermark
        self._overdue.add(pane, self._emptied(together.take(first[passed])))

    def _fire(self, panes: list[int], before_ms: int) -> None:
        """Fire each key and window as often as it fires now, in the order of these times."""
        tables, seen = [], []
        for pane in panes:
            overdue, stored = self._overdue.stored(pane), self.store.stored(pane)
            until = len(overdue) + len(stored) + self._seen.get(pane, 0)
            for place, table in enumerate([*overdue, *stored, *self.store.added(pane)]):
                tables.append(table.append_column(WINDOW, constant(pane, len(table))))
                seen.append(np.full(len(table), len(overdue) <= place < until))
        together, by = pa.concat_tables(tables), [*self.keys, WINDOW]
        first = first_rows(key_numbers(together, by))
        merged = self._by_group(together, by, self._merge)
        window = numbers_in(merged, WINDOW)
        last = self.panes.last_ms(window)
        fire = merged.column(FIRE).fill_null(MAX_MS).to_numpy()
        fired_until = np.where(np.concatenate(seen)[first], np.maximum(before_ms, fire - 1), fire - 1)
        rows, times = self._multiples(fire, fired_until, np.minimum(self.watermark, last - 1))
        ending = np.flatnonzero(passes(last, before_ms, self.watermark))
        rows, times = np.append(rows, ending), np.append(times, last[ending])
        if self.spec.purges:
            rows, at = np.unique(rows, return_index=True)  # what fires first takes all there is
            has_elements = numbers_in(merged, ROWS)[rows] > 0
            rows, times = rows[has_elements], times[at][has_elements]
            self._purge(merged, rows)
        self.emit(merged.take(rows[np.lexsort((window[rows], times))]), self.panes)

    def _purge(self, merged: pa.Table, fired: Array) -> None:
        """Empty what has fired: of it, the key and the time to fire stay."""
        stays = np.ones(len(merged), bool)
        stays[fired] = False
        emptied = self._emptied(merged.take(fired))
        left = [merged.filter(pa.array(stays)), emptied]
        changed = set(emptied.column(WINDOW).to_pylist())
        for pane, table in slices_by(pa.concat_tables(left), WINDOW):
            if pane in changed:
                self.store.drop(pane)
                self.store.add(pane, table)

    def _emptied(self, rows: pa.Table) -> pa.Table:
        """Rows without their elements: their key, window and time to fire stay."""
        stays = {*self.keys, WINDOW, FIRE} & {*rows.column_names}
        columns = {name: rows.column(name) if name in stays else pa.nulls(len(rows), rows.field(name).type)
                   for name in rows.column_names}  # fmt: skip
        return pa.table({**columns, ROWS: constant(0, len(rows))}, schema=rows.schema)

    def _multiples(self, fire: Array, fired_until: Array, until_ms: Array) -> tuple[Array, Array]:
        """Which rows fire at which multiples after ``fired_until``, up to a time for each."""
        waiting = fire <= until_ms
        following = fire + ((fired_until - fire) // self._interval + 1) * self._interval
        counts = np.where(waiting & (following <= until_ms), (until_ms - following) // self._interval + 1, 0)
        if self.spec.in_batch or self.spec.purges:
            counts = np.minimum(counts, 1)
        rows, nth = spread(counts)
        return rows, following[rows] + nth * self._interval

    def merged_pane(self, partials: pa.Table) -> pa.Table:
        """Return the stored content of one window, with one row for each key."""
        return self._by_group(partials, self.keys, self._merge)

    def _merge(self, partials: pa.Table, by: list[str]) -> pa.Table:
        """Merge the rows of groups that hold elements; a group without any keeps its one row."""
        is_empty = numbers_in(partials, ROWS) == 0
        if not is_empty.any():
            return self.spec.aggregation.merge(partials, by)
        merged = self.spec.aggregation.merge(partials.filter(pa.array(~is_empty)), by)
        of_rows, of_merged = numbered_together(partials, merged, by)
        rest = partials.filter(pa.array(~np.isin(of_rows, of_merged)))
        return pa.concat_tables([merged, rest.select(merged.column_names)])

    def _by_group(self, table: pa.Table, by: list[str], aggregate: Callable[..., pa.Table]) -> pa.Table:
        """Aggregate by some columns; the time to fire is that of the row of a group that comes first."""
        number = key_numbers(table, by)
        first = first_rows(number)
        partials = aggregate(table.append_column(_GROUP, pa.array(number)), [_GROUP])
        partials = partials.take(np.argsort(numbers_in(partials, _GROUP))).drop_columns([_GROUP])
        for position, name in enumerate([*by, FIRE]):
            partials = partials.add_column(position, name, table.column(name).take(first))
        return partials
