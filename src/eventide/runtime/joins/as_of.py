"""As-of joins: each element of one stream with the row of another that was valid at its time.

An element waits until the watermark has reached its time, when all rows that could be valid at it have arrived. A row
that a later row of its key has replaced is dropped when no element can ask for it any more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.functions import JoinFunction, KeyedCoProcessFunction, RuntimeContext
from eventide.api.functions.output_tag import OutputTag
from eventide.api.state import ValueStateDescriptor
from eventide.common.ms import MAX_MS, MIN_MS, add_ms
from eventide.common.typeinfo import Types
from eventide.common.types import Row
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import Array, OnColumns, key_numbers, numbered_together, numbers_in
from eventide.runtime.columnar.panes import later
from eventide.runtime.columnar.stores import KeyedTable
from eventide.runtime.elements.ordering import firsts
from eventide.runtime.elements.ownership import own
from eventide.runtime.eventtime.rules import latest_late_time
from eventide.runtime.invoke import no_timestamp
from eventide.runtime.joins.columns import ColumnJoinOperator, Side
from eventide.runtime.joins.pairs import InInterval, function_name
from eventide.runtime.joins.windowed import Selection
from eventide.runtime.metrics import ELEMENTS
from eventide.runtime.process.functions import InEventTime, LateElements, ProcessBoth, WaitingElements
from eventide.runtime.state.backend import Backend, PartOfState
from eventide.runtime.tasks.operator import OperatorContext


@dataclass(frozen=True, slots=True)
class AsOf:
    """How two streams are joined.

    Attributes:
        keeps_left: whether an element without a valid row is emitted.
        lateness_ms: for how long after the watermark has passed it an element is still joined.
    """

    keeps_left: bool = False
    lateness_ms: int = 0

    def describe(self, late_tag: str | None) -> list[tuple[str, str]]:
        """Return lines of ``explain``."""
        late = "dropped and counted" if late_tag is None else f"to side output {late_tag!r}"
        return [
            ("join", f"as of the time of the left element, {'left' if self.keeps_left else 'inner'}"),
            ("late", f"allowed lateness {self.lateness_ms} ms; left elements later than that {late}"),
        ]


class SelectsOfTwo(JoinFunction[Any, Any, Row]):
    """Some fields of both elements, of which the second may be None."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def join(self, first: object, second: object) -> Row:
        """One row."""
        return self._selection.row((first, second))

    def __repr__(self) -> str:
        return repr(self._selection)


_OWN = "as-of join: "
"""The beginning of the names of the join's own state, beside which the user's function has some."""


class _Versions:
    """Rows of the current key, in the order of the times from which they are valid; they change in place."""

    def __init__(self, runtime_context: RuntimeContext) -> None:
        self._kept = runtime_context.get_state(ValueStateDescriptor(_OWN + "versions", Types.PICKLED_BYTE_ARRAY()))

    def put(self, row: object, at: int) -> None:
        """Keep a row from its time on, in place of one of the same time."""
        kept = self._kept.value()
        if kept is None:
            self._kept.update(([at], [row]))
            return
        times, rows = kept
        place = bisect_left(times, at)
        is_known = times[place : place + 1] == [at]
        times[place : place + is_known] = [at]
        rows[place : place + is_known] = [own(row)]

    def valid(self, at: int) -> list[Any]:
        """The row that is valid at a time, in a list; an empty one if there is none."""
        times, rows = self._kept.value() or ([], [])
        place = bisect_right(times, at)
        return rows[max(0, place - 1) : place]

    def forget(self, until_ms: int) -> None:
        """Forget all rows up to a time but the last one."""
        times, rows = self._kept.value() or ([], [])
        gone = max(0, bisect_right(times, until_ms) - 1)
        del times[:gone], rows[:gone]


class JoinsAsOf(KeyedCoProcessFunction[Any, Any, Any, Any]):
    """Joins element by element.

    Args:
        function: makes a result of an element and a row, or None if there is none.
        how: how they are joined.
        late: where left elements go that are too late; None if they are dropped.
    """

    def __init__(self, function: JoinFunction[Any, Any, Any], how: AsOf, late: OutputTag | None) -> None:
        self._function = function
        self._how = how
        self.late = LateElements(late)
        self.__wrapped__ = function

    def describe(self) -> list[tuple[str, str]]:
        """Return lines of ``explain``."""
        function = self._function
        gives = repr(function) if isinstance(function, SelectsOfTwo) else f"what {function_name(function)} gives"
        return [*self._how.describe(self.late.tag_id), ("gives", gives)]

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the user's function, and find the state."""
        self._function.open(runtime_context)
        self._waiting = WaitingElements(runtime_context, _OWN + "waiting")
        self._versions = _Versions(runtime_context)

    def close(self) -> None:
        """Close the user's function."""
        self._function.close()

    def process_element1(self, value: object, ctx: KeyedCoProcessFunction.Context[Any]) -> Iterator[Any]:
        """Keep an element until its time, or join it at once if it is late and within the lateness."""
        at, timers = _time_of(ctx.timestamp()), ctx.timer_service()
        watermark = timers.current_watermark()
        if at > watermark:
            self._waiting.add(value, at, timers)
        elif at > latest_late_time(self._how.lateness_ms, watermark):
            yield from self._joined(value, at)
        else:
            yield from self.late.give(value, at, watermark)

    def process_element2(self, value: object, ctx: KeyedCoProcessFunction.Context[Any]) -> None:
        """Keep a row from its time on; it takes the place of one that came before, of the same time."""
        at, timers = _time_of(ctx.timestamp()), ctx.timer_service()
        self._versions.put(value, at)
        self._versions.forget(latest_late_time(self._how.lateness_ms, timers.current_watermark()))
        timers.register_event_time_timer(add_ms(at, self._how.lateness_ms))

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[Any]) -> Iterator[Any]:
        """Join the elements of a time, and forget the rows that none will ask for any more."""
        for value in self._waiting.take(timestamp):
            yield from self._joined(value, timestamp)
        self._versions.forget(latest_late_time(self._how.lateness_ms, timestamp))

    def _joined(self, value: object, at: int) -> Iterator[Any]:
        for row in self._versions.valid(at) or ([None] if self._how.keeps_left else []):
            yield self._function.join(value, own(row))


def _time_of(timestamp: int | None) -> int:
    if timestamp is None or timestamp == MIN_MS:
        raise no_timestamp()
    return timestamp


@dataclass(frozen=True, slots=True)
class JoiningAsOf(InEventTime, ProcessBoth):
    """A :class:`JoinsAsOf`."""

    kind: str = "as-of join"


_TABLES = ("left/", "right/")
"""Where the elements that wait lie, and the rows that are valid from a time on."""


@dataclass(frozen=True, slots=True)
class AsOfColumns(OnColumns):
    """An as-of join on columns; picklable."""

    name: str
    how: AsOf
    sides: tuple[Side, Side]
    gives: Selection
    dead_letters: str | None = None

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables of a side."""
        return pa.schema([*self.sides[_TABLES.index(part)].schema, pa.field(TIMESTAMP, pa.int64())])

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        state = (
            "the fields that come out: of left elements until the watermark reaches them, of the right rows of a key"
        )
        return [
            *self.how.describe(self.sides[0].late_tag),
            ("gives", repr(self.gives)),
            ("state", f"{state} until later ones take their place, in Arrow columns"),
        ]


class AsOfColumnsOperator(ColumnJoinOperator):
    """Joins all elements that the watermark passes at once."""

    def __init__(self, spec: AsOfColumns, backend: Backend, context: OperatorContext) -> None:
        super().__init__(spec, context)
        self._how = spec.how
        self._waiting, self._versions = (
            KeyedTable(PartOfState(backend, prefix), spec.stored_schema(prefix), self.keys) for prefix in _TABLES
        )

    @property
    def late_until(self) -> int:
        """The last time of which a left element is too late."""
        return latest_late_time(self._how.lateness_ms, self.watermark)

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: elements may be late then."""
        return True

    def take(self, number: int, rows: pa.Table) -> None:
        """Keep elements and rows until their time; join at once the elements that are late and within the lateness."""
        if number == 0:
            rows = self.report_late(0, rows, numbers_in(rows, TIMESTAMP) <= self.late_until)
            passed = numbers_in(rows, TIMESTAMP) <= self.watermark
            if passed.any():
                self._join(rows.filter(pa.array(passed)))
                rows = rows.filter(pa.array(~passed))
        if len(rows):
            table = self._versions if number else self._waiting
            table.read_keys_of(rows)
            table.table = pa.concat_tables([table.table, rows.select(table.table.column_names)]).combine_chunks()

    def advance(self, watermark_ms: int) -> None:
        """Join what the watermark passes, in the order of time."""
        self.watermark = watermark_ms
        self._waiting.read_due(watermark_ms)
        waiting = self._waiting.table
        passed = numbers_in(waiting, TIMESTAMP) <= watermark_ms
        if passed.any():
            at = np.flatnonzero(passed)
            self._join(waiting.take(at[np.argsort(numbers_in(waiting, TIMESTAMP)[at], kind="stable")]))
            self._waiting.table = waiting.filter(pa.array(~passed))
        self._versions.read_due(watermark_ms)

    def flush(self) -> None:
        """Store what waits, and the rows that an element may still ask for."""
        self._waiting.flush(numbers_in(self._waiting.table, TIMESTAMP))
        versions = self._versions.table
        keys, times = key_numbers(versions, self.keys), numbers_in(versions, TIMESTAMP)
        order = np.lexsort((times, keys))
        wanted = _wanted(keys[order], times[order], self.late_until)
        stays = np.sort(order[wanted])
        self._versions.table = versions.take(stays)
        self._versions.flush(_replaced_at(keys[stays], times[stays], self._how.lateness_ms))

    def held(self) -> dict[str, int]:
        """How many elements wait, and how many rows are kept."""
        return {ELEMENTS: self._waiting.count + self._versions.count}

    def _join(self, rows: pa.Table) -> None:
        """Give elements, which are in their order, with the rows that were valid at their times."""
        self._versions.read_keys_of(rows)
        versions = self._versions.table
        keys, other_keys = numbered_together(rows, versions, self.keys)
        times = numbers_in(rows, TIMESTAMP)
        found = as_of(keys, times, other_keys, numbers_in(versions, TIMESTAMP))
        at = np.arange(len(rows))
        if not self._how.keeps_left:
            at, found = at[found >= 0], found[found >= 0]
        self.put([rows, versions], [at, found], times[at], InInterval([times[at], times[at]], 0))


def as_of(keys: Array, times: Array, other_keys: Array, other_times: Array) -> Array:
    """The last of the other rows of the same key whose time is no later, for each row; -1 if there is none.

    If several of them have the same time, it is the last one.

    >>> as_of(np.array([0, 0, 1]), np.array([5, 1, 9]), np.array([0, 0, 0]), np.array([2, 5, 5])).tolist()
    [2, -1, -1]
    """
    if not len(other_times):
        return np.full(len(times), -1)
    order = np.lexsort((other_times, other_keys))
    known, rank = np.unique(np.concatenate([other_times, times]), return_inverse=True)
    places = np.concatenate([other_keys, keys]) * len(known) + rank
    others = places[: len(other_times)][order]
    found = np.searchsorted(others, places[len(other_times) :], side="right") - 1
    rows: Array = order[found]
    return np.where((found >= 0) & (other_keys[rows] == keys), rows, -1)


def _wanted(keys: Array, times: Array, until_ms: int) -> Array:
    """Which rows, sorted by key and time, an element after a time may ask for: the last up to it, and those after it.

    >>> _wanted(np.array([0, 0, 0, 1]), np.array([1, 4, 9, 2]), 5).tolist()
    [False, True, True, True]
    """
    is_last = np.ones(len(keys), bool)
    is_last[:-1] = (keys[1:] != keys[:-1]) | (times[1:] > until_ms)
    wanted: Array = is_last | (times > until_ms)
    return wanted


def _replaced_at(keys: Array, times: Array, lateness_ms: int) -> Array:
    """For each row when it makes others of its key go: never for the first one of a key.

    >>> _replaced_at(np.array([0, 0, 1]), np.array([9, 4, 2]), 1).tolist() == [10, MAX_MS, MAX_MS]
    True
    """
    order = np.lexsort((times, keys))
    at = later(times, lateness_ms)
    at[order[firsts(keys[order])]] = MAX_MS
    return at
