"""Joins on columns: rows of two sides come in, pairs of them go out, for all rows of a micro-batch at once.

``ColumnJoinOperator`` is the base. The interval join gives what it gives element by element; the window join keeps rows
by pane, and they meet when their window fires. Which rows of two tables meet is found by sorting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from eventide.api.windows import EventTimeTrigger, Evictor, Trigger, WindowAssigner
from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.common.typeinfo import CompositeTypeInfo, TimeWindowTypeInfo, TypeInformation
from eventide.errors import ProgramError
from eventide.runtime.chain.outputs import described
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.computed_keys import ComputedKey, columns_of_key, computed_key
from eventide.runtime.columnar.layout import (
    PANE,
    Array,
    OnColumns,
    TablePayload,
    joined_rows,
    key_names,
    key_numbers,
    numbered_together,
    numbers_in,
    slices_by,
    with_keys_of,
)
from eventide.runtime.columnar.operator import Gathered
from eventide.runtime.columnar.panes import WITH_PANES, OfPanes, Panes, arrived, later
from eventide.runtime.columnar.partitioner import ColumnPartitioner, unpacked
from eventide.runtime.columnar.stores import KeyedTable, PaneStore
from eventide.runtime.elements.elements import Elements
from eventide.runtime.elements.ordering import spread
from eventide.runtime.joins.interval import Bounds, described_bounds, described_late
from eventide.runtime.joins.pairs import InInterval, InWindow, Meeting, PairCaller, PairFunction, Pairs
from eventide.runtime.joins.windowed import KEEPS, Selection
from eventide.runtime.metrics import ELEMENTS, LATE_DROPPED, LATE_TO_SIDE_OUTPUT, OPEN_WINDOWS, WITHOUT_WINDOW
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.tasks.operator import OperatorContext, OperatorInput, WithoutClock


@dataclass(frozen=True, slots=True)
class Side:
    """One of two streams: the type of its elements, the fields of its key and the selected fields.

    Late elements go to the side output ``late_tag``, or are dropped (None). With ``select``, the selector of the key is
    shown elements that are None, and raises. A ``computed`` key is in no field of elements; then ``keys`` are the names
    of its columns.
    """

    value_type: TypeInformation
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    late_tag: str | None = None
    select: Callable[[Any], Any] | None = None
    computed: ComputedKey | None = None

    def partitioner(self, max_parallelism: int) -> ColumnPartitioner:
        """How its elements get to the join."""
        return ColumnPartitioner(
            self.value_type,
            self.keys,
            self.columns,
            max_parallelism,
            self.select,
            whole=self.late_tag is not None,
            computed=self.computed,
        )

    @property
    def fields_of_key(self) -> tuple[str, ...]:
        """The fields of elements that are the key; none if it is computed."""
        return () if self.computed is not None else self.keys

    @property
    def used_fields(self) -> frozenset[str] | None:
        """The fields that are looked at; None for all of them."""
        read = frozenset(self.keys) if self.computed is None else self.computed.fields_read(self.value_type)
        return None if self.late_tag is not None or read is None else read | {*self.columns}

    @property
    def schema(self) -> pa.Schema:
        """The schema of kept rows: the key and the selected fields."""
        types = {field.name: field.type for field in self.value_type.arrow_type()}
        of_key = columns_of_key(self.keys, self.computed, self.value_type)
        keys = [pa.field(name, kind) for name, kind in zip(key_names(len(of_key)), of_key, strict=True)]
        fields = [pa.field(name, types[name]) for name in self.columns]
        return pa.schema([*keys, *fields])

    def key_in(self, rows: pa.Table, row: int) -> Any:
        """The key of one of some kept rows, as functions know it."""
        if self.computed is not None:
            of_key = [rows.column(name).slice(row, 1).combine_chunks() for name in self.keys]
            return self.computed.kind.from_arrow(self.computed.of_columns(of_key, self.computed.kind))[0]
        kinds = self.value_type.types if isinstance(self.value_type, CompositeTypeInfo) else ()
        types = dict(zip(self.value_type.arrow_type().names, kinds, strict=True))
        columns = zip(key_names(len(self.keys)), self.keys, strict=True)
        parts = [types[key].from_arrow(rows.column(name).slice(row, 1))[0] for name, key in columns]
        return parts[0] if len(parts) == 1 else tuple(parts)


def sides_of(
    inputs: Sequence[OperatorInput], gives: Selection | PairFunction, late_tags: Sequence[str | None] = (None, None)
) -> tuple[Side, Side]:
    """The two streams of a join whose keys columns can have."""
    first, second = (_side(source, gives.of_side(number), late_tags[number]) for number, source in enumerate(inputs))
    return first, second


def _side(source: OperatorInput, columns: tuple[str, ...], late_tag: str | None) -> Side:
    key, kind = source.key, source.value_type
    computed = computed_key(key, kind)
    if isinstance(computed, str):  # a value from outside has changed since the program asked for the join
        raise ProgramError(f"a join was to run on columns, and now {computed}; or use in_python(...) for its keys")
    if key is None or computed is None:
        return Side(kind, key.columns if key else (), columns, late_tag, key.select if key else None)
    return Side(kind, tuple(key_names(len(computed.types))), columns, late_tag, key.select, computed)


class JoinOnColumns(Protocol):
    """Facts about any join on columns."""

    @property
    def name(self) -> str:
        """The operator's name."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """The two streams."""

    @property
    def gives(self) -> Selection | PairFunction:
        """The result for two rows that meet: some of their fields, or what a function makes of them."""

    @property
    def dead_letters(self) -> str | None:
        """The side output for pairs that the function cannot handle."""


class ColumnJoinOperator(WithoutClock, ABC):
    """The part of a join on columns that does not depend on what makes rows meet."""

    def __init__(self, spec: JoinOnColumns, context: OperatorContext) -> None:
        self.inputs = tuple(partial(self._receive, number) for number in (0, 1))
        self.sides = spec.sides
        self.keys = key_names(len(spec.sides[0].keys))
        self.watermark = context.watermark_ms
        self._name = spec.name
        self._gives = spec.gives
        self._metrics = context.metrics
        self._outputs = Gathered()
        if isinstance(spec.gives, PairFunction):
            self._caller = PairCaller(spec.name, spec.gives, self._outputs, context.metrics, spec.dead_letters)

    @abstractmethod
    def take(self, number: int, rows: pa.Table) -> None:
        """Take rows of one side, put in order, all under the current watermark; late ones are told by their time."""

    def take_outputs(self) -> Mapping[str | None, Elements]:
        """Give away the results since the last call, by side output (None: the main one)."""
        return self._outputs.take()

    def report_late(self, number: int, rows: pa.Table, late: Array) -> pa.Table:
        """Count the late rows of a side, send them to the side output that wants them, and give the others."""
        if not late.any():
            return rows
        side = self.sides[number]
        counter = LATE_DROPPED if side.late_tag is None else LATE_TO_SIDE_OUTPUT
        self.count_late(counter, numbers_in(rows, TIMESTAMP)[late])
        if side.late_tag is not None:
            self._outputs.add_to_side(side.late_tag, rows.filter(pa.array(late)), side.value_type)
        return rows.filter(pa.array(~late))

    def count_late(self, counter: str, times: Array) -> None:
        """Count late rows, by their event times."""
        self._metrics.count_late(self._name, counter, times, self.watermark)

    def put(self, tables: Sequence[pa.Table], at: Sequence[Array], times: Array, meeting: Meeting) -> None:
        """Give the results for pairs of rows, by their indices in the tables of both sides; -1 is no row."""
        if not len(times):
            return
        if not isinstance(self._gives, Selection):
            keys = partial(self._key_of, tables[0], at[0])
            self._caller.call(Pairs(tables, at, times, keys), meeting)
            return
        windows = None
        if isinstance(meeting, InWindow) and self._gives.has_window:
            starts, ends = (np.full(len(times), at) for at in (meeting.window.start, meeting.window.end))
            windows = TimeWindowTypeInfo().of_bounds(starts, ends)
        values = self._gives.array(tables, [pa.array(rows, mask=rows < 0) for rows in at], windows)
        self._outputs.put(self._gives.type_info, values, times)

    def _key_of(self, rows: pa.Table, at: Array, pair: int) -> Any:
        return self.sides[0].key_in(rows, int(at[pair]))

    def _receive(self, number: int, parts: list[TablePayload]) -> None:
        rows = joined_rows(parts)
        side = self.sides[number]
        self.take(number, rows if side.late_tag is None else unpacked(rows, side.fields_of_key, side.columns))


_GOES = "__goes"
"""int64: the watermark at which nothing can meet a row any more, in milliseconds."""

_TABLES = ("left/", "right/")
"""Where the rows of each side lie."""

_TIMES = [pa.field(TIMESTAMP, pa.int64()), pa.field(_GOES, pa.int64())]


class IntervalColumnsOperator(ColumnJoinOperator):
    """Keeps the rows of each side by the hash of their key, and looks the new ones of the other side up in them.

    A row is gone, for all that comes, as soon as nothing can meet it any more; it leaves the state when its key is
    touched next, or when all rows of its key are gone.
    """

    def __init__(self, spec: IntervalColumns, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._bounds = spec.bounds
        self._tables = [
            KeyedTable(PartOfState(backend, prefix), spec.stored_schema(prefix), self.keys) for prefix in _TABLES
        ]

    @property
    def late_until(self) -> int:
        """The last time below the watermark; none where there are no bounds."""
        return MIN_MS if self._bounds.are_open else add_ms(self.watermark, -1)

    def reacts_to(self, watermark_ms: int) -> bool:
        """Whether the watermark decides which elements are late."""
        return not self._bounds.are_open

    def take(self, number: int, rows: pa.Table) -> None:
        """Join rows with what the other side has kept, and keep them."""
        if not self._bounds.are_open:
            rows = self.report_late(number, rows, numbers_in(rows, TIMESTAMP) < self.watermark)
        if not len(rows):
            return
        own, other = self._tables[number], self._tables[1 - number]
        goes = self._go(number, numbers_in(rows, TIMESTAMP))
        rows = rows.append_column(_GOES, pa.array(goes)).select(own.table.column_names)
        own.read_keys_of(rows)
        other.read_keys_of(rows)
        self._meet(number, rows, self._without_gone(other))
        own.table = pa.concat_tables([own.table, rows]).combine_chunks()

    def advance(self, watermark_ms: int) -> None:
        """Move the watermark, and read what is to be thrown away."""
        self.watermark = watermark_ms
        for table in () if self._bounds.are_open else self._tables:
            table.read_due(watermark_ms)

    def flush(self) -> None:
        """Store the state, without what is gone."""
        for table in self._tables:
            table.flush(self._all_gone(self._without_gone(table)))

    def held(self) -> dict[str, int]:
        """How many elements are stored; some may be gone for all that comes."""
        return {ELEMENTS: sum(table.count for table in self._tables)}

    def _meet(self, number: int, rows: pa.Table, others: pa.Table) -> None:
        """Give the pairs of new rows of one side with rows of the other."""
        keys, other_keys = numbered_together(rows, others, self.keys)
        times, other_times = numbers_in(rows, TIMESTAMP), numbers_in(others, TIMESTAMP)
        if self._bounds.are_open:  # any two meet, in the order of arrival
            found = in_time(keys, np.zeros_like(times), other_keys, np.zeros_like(other_times), (0, 0))
        else:
            found = in_time(keys, times, other_keys, other_times, self._bounds.of_side(number))
        of_both = [times[found[0]], other_times[found[1]]]
        left_first = 1 if number == 0 else -1
        meeting = InInterval(of_both[::left_first], number)
        self.put([rows, others][::left_first], found[::left_first], np.maximum(*of_both), meeting)

    def _go(self, number: int, times: Array) -> Array:
        """The watermark at which rows of a side are gone: one to come, as timers fire with watermarks to come."""
        if self._bounds.are_open:
            return np.full(len(times), MAX_MS)
        goes = later(times, max(0, self._bounds.of_side(number)[1]))
        return np.maximum(goes, add_ms(self.watermark, 1))

    def _without_gone(self, table: KeyedTable) -> pa.Table:
        """Return the kept rows of a side, without those that nothing can meet any more."""
        if self._bounds.are_open:
            return table.table
        gone = numbers_in(table.table, _GOES) <= self.watermark
        if gone.any():
            table.table = table.table.filter(pa.array(~gone))
        return table.table

    def _all_gone(self, rows: pa.Table) -> Array:
        """For each row the watermark at which all rows of its key will be gone."""
        keys, goes = key_numbers(rows, self.keys), numbers_in(rows, _GOES)
        last = np.full(keys.max(initial=-1) + 1, MIN_MS)
        np.maximum.at(last, keys, goes)
        return last[keys]


@dataclass(frozen=True, slots=True)
class IntervalColumns(OnColumns):
    """An interval join on columns; picklable."""

    name: str
    bounds: Bounds
    sides: tuple[Side, Side]
    gives: Selection | PairFunction
    dead_letters: str | None = None

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables of a side."""
        return pa.schema([*self.sides[_TABLES.index(part)].schema, *_TIMES])

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            ("interval join", described_bounds(self.bounds)),
            ("gives", repr(self.gives)),
            ("late", described_late(self.bounds, (self.sides[0].late_tag, self.sides[1].late_tag))),
            ("state", f"{_kept(self.gives)} of each side, in Arrow columns by key, until nothing can meet them"),
            *described(self.dead_letters),
        ]


def _kept(gives: Selection | PairFunction) -> str:
    return "the fields that come out" if isinstance(gives, Selection) else "the elements"


_PARTS = ("first/", "second/")
"""Where the rows of each side lie."""


class WindowColumnsOperator(OfPanes, ColumnJoinOperator):
    """Keeps the rows of each side by pane, without reading what is there; a window that fires reads its panes.

    An element that is late, but within the allowed lateness, has its windows fire again: once for each key, window and
    micro-batch.
    """

    def __init__(self, spec: WindowColumns, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self.panes = spec.panes
        self.lateness_ms = spec.lateness_ms
        self._keeps = KEEPS[spec.how]
        self._stores = [PaneStore(PartOfState(backend, part), pa.Table.combine_chunks) for part in _PARTS]

    def take(self, number: int, rows: pa.Table) -> None:
        """Add rows to their panes."""
        times = numbers_in(rows, TIMESTAMP)
        come = arrived(self.panes, times, self.last_late(), self.lateness_ms, self.watermark)
        self._metrics.count(self._name, WITHOUT_WINDOW, int(come.without_window.sum()))
        rows = rows.select(self.sides[number].schema.names).append_column(PANE, pa.array(come.starts))
        accepted = ~come.late & ~come.without_window
        if not accepted.all():
            self.count_late(LATE_DROPPED, times[come.late])
            rows = rows.filter(pa.array(accepted))
        added = {self.panes.number_of(pane): part for pane, part in slices_by(rows, PANE)}
        for pane, part in added.items():
            self._stores[number].add(pane, part.combine_chunks())
        self._fire_again(added)

    def advance(self, watermark_ms: int) -> None:
        """Fire the windows that the watermark passes, in the order of time, and drop what no window needs."""
        fired = self.last_fired()
        self.watermark = watermark_ms
        panes = self._held_panes()
        for window in self.panes.windows_with(panes, fired + 1, self.last_fired()):
            self._fire(window)
        needed = self.panes.panes_in(self.last_late() + 1).start
        for pane in panes[: bisect_left(panes, needed)]:
            for store in self._stores:
                store.drop(pane)

    def flush(self) -> None:
        """Store what was added."""
        for store in self._stores:
            store.flush()

    def held(self) -> dict[str, int]:
        """How many windows wait for the watermark."""
        return {OPEN_WINDOWS: self.panes.count_windows_with(self._held_panes(), self.last_fired() + 1)}

    def _held_panes(self) -> list[int]:
        """The panes in which a side has rows, in the order of time."""
        return sorted({pane for store in self._stores for pane in store.panes()})

    def _fire_again(self, added: dict[int, pa.Table]) -> None:
        """Fire windows that the watermark has passed already, for the keys that were added to."""
        for window in self.panes.windows_with(sorted(added), self.last_late() + 1, self.last_fired()):
            touched = [added[pane] for pane in self.panes.panes_in(window) if pane in added]
            self._fire(window, pa.concat_tables(touched).select(self.keys))

    def _fire(self, number: int, only: pa.Table | None = None) -> None:
        """Give the pairs of a window, of some keys only where it fires again."""
        tables = [self._rows_of(side, number) for side in (0, 1)]
        if only is not None:
            tables = [with_keys_of(table, only, self.keys) for table in tables]
        keys, other_keys = numbered_together(tables[0], tables[1], self.keys)
        pairs = equal(keys, other_keys, self._keeps)
        window = self.panes.window(number)
        meeting = InWindow(window, keys[pairs[0]] if len(keys) else pairs[0])
        self.put(tables, pairs, np.full(len(pairs[0]), window.max_timestamp()), meeting)

    def _rows_of(self, side: int, window: int) -> pa.Table:
        """Return the rows of a side in a window, in the order of panes."""
        store, tables = self._stores[side], [self.sides[side].schema.empty_table()]
        for pane in self.panes.panes_in(window):
            tables += [*store.stored(pane), *store.added(pane)]
        return pa.concat_tables(tables).combine_chunks()


@dataclass(frozen=True, slots=True)
class WindowColumns(OnColumns):
    """A window join on columns; picklable."""

    name: str
    assigner: WindowAssigner[Any, Any]
    panes: Panes
    lateness_ms: int
    how: str
    sides: tuple[Side, Side]
    gives: Selection | PairFunction
    dead_letters: str | None = None

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables of a side."""
        return self.sides[_PARTS.index(part)].schema

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            ("windows", repr(self.assigner)),
            ("join", self.how),
            ("gives", repr(self.gives)),
            ("late", f"allowed lateness {self.lateness_ms} ms, later than that dropped and counted"),
            ("state", f"{_kept(self.gives)} of each side, in Arrow columns by panes"),
            *described(self.dead_letters),
        ]


def obstacle_of(
    assigner: WindowAssigner[Any, Any], trigger: Trigger[Any, Any] | None, evictor: Evictor[Any, Any] | None
) -> str | None:
    """Why the windows of a join cannot run on columns, and what to change; None if they can."""
    if type(assigner) not in WITH_PANES:
        return f"the windows {assigner!r} need each element; use tumbling or sliding windows of event time"
    if trigger is not None and type(trigger) is not EventTimeTrigger:
        return f"the trigger {trigger!r} looks at single elements; leave trigger(...) out"
    if evictor is not None:
        return f"the evictor {evictor!r} looks at single elements"
    return None


def in_time(keys: Array, times: Array, other_keys: Array, other_times: Array, bounds: tuple[int, int]) -> list[Array]:
    """The pairs of rows that have equal keys, the other's time being later by what is within the bounds.

    Args:
        keys: the key of each row, as a number from 0, the same for both tables.
        times: the time of each row, in milliseconds.
        other_keys: the key of each row of the other table.
        other_times: its time.
        bounds: how much later it may be at least and at most, both inclusive; less than 0 is earlier.

    Returns:
        The rows of the one and of the other table, pair by pair: in the order of the one's rows, then of the other's
        times, then of its rows.

    >>> keys, times = np.array([0, 1]), np.array([5, 5])
    >>> rows, others = in_time(keys, times, np.array([0, 0, 1, 0]), np.array([7, 6, 9, 4]), (0, 2))
    >>> rows.tolist(), others.tolist()
    ([0, 0], [1, 0])
    """
    count = len(other_times) + 1
    by_time = np.argsort(other_times, kind="stable")
    sorted_times, keys_in_time = other_times[by_time], other_keys[by_time]
    by_key = np.argsort(keys_in_time, kind="stable")
    # The place of each other row among all, by key and then by time, as one number that can be searched for.
    places = keys_in_time[by_key] * count + by_key
    begin = np.searchsorted(sorted_times, later(times, bounds[0]), side="left")
    end = np.searchsorted(sorted_times, later(times, bounds[1]), side="right")
    first, behind = (np.searchsorted(places, keys * count + at) for at in (begin, end))
    rows, nth = spread(np.maximum(behind - first, 0))
    return [rows, by_time[by_key[first[rows] + nth]]]


def equal(keys: Array, other_keys: Array, keeps: tuple[bool, bool] = (False, False)) -> list[Array]:
    """The pairs of rows that have equal keys, those of one key together.

    A table that is kept has rows that meet none, too, with -1 in place of the other.

    Args:
        keys: the key of each row, as a number from 0, the same for both tables.
        other_keys: the key of each row of the other table.
        keeps: whether rows of the one and of the other are kept that meet none.

    Returns:
        The rows of the one and of the other table, pair by pair.

    >>> [rows.tolist() for rows in equal(np.array([1, 0, 1]), np.array([2, 1, 1]), (True, True))]
    [[1, 0, 0, 2, 2, -1], [-1, 1, 2, 1, 2, 0]]
    """
    order, other_order = (np.argsort(some, kind="stable") for some in (keys, other_keys))
    in_order, others_in_order = keys[order], other_keys[other_order]
    first = np.searchsorted(others_in_order, in_order, side="left")
    counts = np.searchsorted(others_in_order, in_order, side="right") - first
    alone = counts == 0
    if keeps[0]:
        counts[alone] = 1
    rows, nth = spread(counts)
    others = np.append(other_order, -1)[np.where(alone[rows], len(other_order), first[rows] + nth)]
    pairs = [order[rows], others]
    if keeps[1]:
        unmet = np.flatnonzero(~np.isin(other_keys, keys))
        pairs = [np.append(pairs[0], np.full(len(unmet), -1)), np.append(pairs[1], unmet)]
    return pairs
