"""The elements of each key in the order of their timestamps: they wait until the watermark has passed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.functions import KeyedProcessFunction, RuntimeContext
from eventide.api.functions.output_tag import OutputTag
from eventide.common.ms import MIN_MS
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation
from eventide.runtime.columnar.aggregation import TIMESTAMP
from eventide.runtime.columnar.layout import (
    VALUE,
    OnColumns,
    TablePayload,
    joined_rows,
    key_names,
    numbers_in,
    obstacle_of_watermarks,
)
from eventide.runtime.columnar.operator import Gathered
from eventide.runtime.columnar.partitioner import ColumnPartitioner, unpacked
from eventide.runtime.columnar.stores import KeyedTable
from eventide.runtime.elements.elements import Elements
from eventide.runtime.invoke import no_timestamp
from eventide.runtime.metrics import ELEMENTS, LATE_DROPPED, LATE_TO_SIDE_OUTPUT
from eventide.runtime.process.functions import InEventTime, LateElements, ProcessEach, WaitingElements
from eventide.runtime.process.operation import ProcessOperation
from eventide.runtime.state.backend import Backend
from eventide.runtime.tasks.operator import Key, OperatorContext, OperatorInput, PlannedOperator, Receive, WithoutClock


class SortsByTime(KeyedProcessFunction[Any, Any, Any]):
    """Keeps the elements of each time in a list, until a timer of that time gives them out.

    Args:
        late: where elements go whose time the watermark has passed; None if they are dropped.
    """

    def __init__(self, late: OutputTag | None) -> None:
        self.late = LateElements(late)

    def describe(self) -> list[tuple[str, str]]:
        """Return lines of ``explain``."""
        return [_described_late(self.late.tag_id)]

    def open(self, runtime_context: RuntimeContext) -> None:
        """Find the state."""
        self._waiting = WaitingElements(runtime_context)

    def process_element(self, value: object, ctx: KeyedProcessFunction.Context[Any]) -> Iterator[Any]:
        """Keep an element until its time, if it is not late."""
        at = ctx.timestamp()
        if at is None or at == MIN_MS:
            raise no_timestamp()
        timers = ctx.timer_service()
        watermark = timers.current_watermark()
        if at <= watermark:
            yield from self.late.give(value, at, watermark)
        else:
            self._waiting.add(value, at, timers)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[Any]) -> Iterator[Any]:
        """Give out the elements of a time, in the order of their arrival."""
        yield from self._waiting.take(timestamp)


def _described_late(tag: str | None) -> tuple[str, str]:
    """Where late elements go, for ``explain``."""
    gone = "dropped and counted" if tag is None else f"to side output {tag!r}"
    return "late", f"elements whose time the watermark has passed: {gone}"


@dataclass(frozen=True, slots=True)
class Sorting(InEventTime, ProcessEach):
    """A :class:`SortsByTime`."""

    kind: str = "sort by event time"


@dataclass(frozen=True, slots=True)
class SortOperation(ProcessOperation):
    """Description of sorting, which runs on columns where these have keys and elements."""

    late_tag: str | None = None

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Choose the speed; the results are the same at both."""
        (source,) = inputs
        key = source.key and source.key.by_field(source.value_type, several=True)
        obstacle = _obstacle(replace(source, key=key))
        if key is None or obstacle is not None:
            planned = ProcessOperation.planned(self, name, inputs, max_parallelism)
            return replace(planned, speed=f"element by element, because {obstacle}")
        identity = {
            "stored form": SortColumns.__name__,
            "element type": str(source.value_type),
            "key columns": ", ".join(key.columns),
            "max parallelism": str(max_parallelism),
        }
        spec = SortColumns(name, source.value_type, key.columns, self.late_tag)
        speed = "columns, whole elements go through the shuffle"
        return PlannedOperator(
            spec, SortColumnsOperator, (spec.partitioner(max_parallelism, key),), speed, identity, (None,)
        )


def _obstacle(source: OperatorInput) -> str | None:
    """Why elements cannot be sorted on columns, and what to change; None if they can."""
    kind, key = source.value_type, source.key
    if not isinstance(kind, CompositeTypeInfo):
        return f"its elements are no rows or tuples of a declared type, but {kind}"
    if kind.has_exponents:
        return f"columns do not keep how many digits each number of {kind} has"
    if key is not None and not key.columns:
        return f"{key.why_no_fields(kind)}; name columns instead: key_by('…')"
    if key is not None and not key.is_columnar:
        return f"columns cannot tell keys of type {key.type_info} apart; key by plain fields"
    return obstacle_of_watermarks([source])


@dataclass(frozen=True, slots=True)
class SortColumns(OnColumns):
    """All that describes sorting on columns; picklable."""

    name: str
    value_type: TypeInformation
    keys: tuple[str, ...]
    late_tag: str | None

    def partitioner(self, max_parallelism: int, key: Key) -> ColumnPartitioner:
        """How elements get there that have a key."""
        return ColumnPartitioner(self.value_type, self.keys, (), max_parallelism, key.select, whole=True)

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the elements that wait."""
        types = {field.name: field.type for field in self.value_type.arrow_type()}
        keys = [pa.field(name, types[key]) for name, key in zip(key_names(len(self.keys)), self.keys, strict=True)]
        return pa.schema([*keys, pa.field(VALUE, self.value_type.arrow_type()), pa.field(TIMESTAMP, pa.int64())])

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        return [
            _described_late(self.late_tag),
            ("state", "elements whose time the watermark has not passed, in Arrow columns by key"),
        ]


class SortColumnsOperator(WithoutClock):
    """Keeps elements by key, and gives out those that the watermark passes, all at once, in the order of time."""

    def __init__(self, spec: SortColumns, backend: Backend, context: OperatorContext) -> None:
        self._spec = spec
        self._metrics = context.metrics
        self._watermark = context.watermark_ms
        self._waiting = KeyedTable(backend, spec.stored_schema(""), key_names(len(spec.keys)))
        self._outputs = Gathered()

    @property
    def inputs(self) -> Sequence[Receive]:
        """The only input."""
        return (self._receive,)

    @property
    def late_until(self) -> int:
        """The watermark."""
        return self._watermark

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: elements may be late then."""
        return True

    def advance(self, watermark_ms: int) -> None:
        """Give out the elements that the watermark passes; those of one time in the order of their arrival."""
        self._watermark = watermark_ms
        self._waiting.read_due(watermark_ms)
        waiting = self._waiting.table
        times = numbers_in(waiting, TIMESTAMP)
        passed = times <= watermark_ms
        if passed.any():
            at = np.flatnonzero(passed)
            rows = waiting.take(at[np.argsort(times[at], kind="stable")])
            values = rows.column(VALUE).combine_chunks()
            self._outputs.put(self._spec.value_type, values, numbers_in(rows, TIMESTAMP))
            self._waiting.table = waiting.filter(pa.array(~passed))

    def take_outputs(self) -> Mapping[str | None, Elements]:
        """Give away the results since the last call, by side output (None: the main one)."""
        return self._outputs.take()

    def flush(self) -> None:
        """Store what waits."""
        self._waiting.flush(numbers_in(self._waiting.table, TIMESTAMP))

    def held(self) -> Mapping[str, int]:
        """How many elements wait."""
        return {ELEMENTS: self._waiting.count}

    def _receive(self, parts: list[TablePayload]) -> None:
        rows = self._in_time(joined_rows(parts))
        if len(rows):
            rows = unpacked(rows, self._spec.keys, ()).select(self._waiting.table.column_names)
            self._waiting.read_keys_of(rows)
            self._waiting.table = pa.concat_tables([self._waiting.table, rows]).combine_chunks()

    def _in_time(self, rows: pa.Table) -> pa.Table:
        """The rows that are not late; the others are counted, and go where they are wanted."""
        times = numbers_in(rows, TIMESTAMP)
        late = times <= self._watermark
        if not late.any():
            return rows
        tag = self._spec.late_tag
        counter = LATE_DROPPED if tag is None else LATE_TO_SIDE_OUTPUT
        self._metrics.count_late(self._spec.name, counter, times[late], self._watermark)
        if tag is not None:
            self._outputs.add_to_side(tag, rows.filter(pa.array(late)), self._spec.value_type)
        return rows.filter(pa.array(~late))
