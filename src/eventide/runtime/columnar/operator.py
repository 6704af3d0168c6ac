"""Base of columnar windows: where they stand, what is late, and how their tables become results.

``ColumnarWindow`` describes such an operator as plain data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.windows import (
    ContinuousEventTimeTrigger,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    PurgingTrigger,
    Trigger,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from eventide.api.windows.triggers import unpurged
from eventide.common.typeinfo import TimeWindowTypeInfo, TypeInformation
from eventide.common.windows import TimeWindow
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation
from eventide.runtime.columnar.computed_keys import ComputedKey, columns_of_key
from eventide.runtime.columnar.gaps import Gaps
from eventide.runtime.columnar.layout import (
    BOUNDS,
    COUNT,
    FIRE,
    PANE,
    VALUE,
    WINDOW,
    Array,
    OnColumns,
    TablePayload,
    joined_rows,
    key_names,
    numbers_in,
)
from eventide.runtime.columnar.panes import PaneAggregation, Panes, RegularPanes, arrived, panes_of, windows_of
from eventide.runtime.columnar.partitioner import ColumnPartitioner, unpacked
from eventide.runtime.elements.elements import Columns, Elements, types_of_fields
from eventide.runtime.metrics import LATE_DROPPED, LATE_TO_SIDE_OUTPUT, WITHOUT_WINDOW
from eventide.runtime.tasks.operator import Key, OperatorContext, Receive, WithoutClock


@dataclass(frozen=True, slots=True)
class Counts:
    """Elements that fire windows: every ``every``-th of a window does, with the last ``size`` (None: with all)."""

    every: int
    size: int | None

    @property
    def is_sliding(self) -> bool:
        """Whether a firing has other elements than those since the last, and not all."""
        return self.size not in (None, self.every)


@dataclass(frozen=True, slots=True)
class ColumnarWindow(OnColumns):
    """All that describes a columnar window operator; picklable.

    ``value_type`` is the type of the elements, ``keys`` are the fields that they are keyed by (none for windows over
    all elements). ``result_type`` is the type of results: fields of the key, the window where windows have times, and
    one for each aggregate. ``one_by_one`` says that a watermark may come between any two elements, ``in_batch`` that
    elements are put into the order of their timestamps. ``counts`` says which elements fire a window; None if none
    does. A ``computed`` key is in no field of elements; then ``keys`` are the names of its columns. ``from_sources``
    says that the tasks of sources send elements here, and know how far the operator had come.
    """

    name: str
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    aggregation: Aggregation
    value_type: TypeInformation
    keys: tuple[str, ...]
    result_type: TypeInformation
    lateness_ms: int = 0
    late_tag: str | None = None
    one_by_one: bool = False
    in_batch: bool = False
    counts: Counts | None = None
    computed: ComputedKey | None = None
    from_sources: bool = False

    @property
    def ships_elements(self) -> bool:
        """Whether whole elements come, because late ones are wanted as they are."""
        return self.late_tag is not None

    @property
    def aggregates_first(self) -> bool:
        """Whether all elements are aggregated before the shuffle."""
        return self._may_aggregate and not self.ships_elements

    @property
    def aggregates_in_time(self) -> bool:
        """Whether elements are aggregated before the shuffle where late ones are wanted as they are: if none is late.

        In batch execution no task knows how far the operator had come.
        """
        return self._may_aggregate and self.ships_elements and self.from_sources and not self.in_batch

    @property
    def _may_aggregate(self) -> bool:
        """Whether partial aggregates of elements give what elements give.

        Not where the order of elements decides which are late (sessions), counts, or shows in a result, nor where some
        have no window.
        """
        by_trigger = self.counts is not None or self.is_continuous or self.fires_alone
        in_order = self.one_by_one or by_trigger or self.aggregation.keeps_order
        return self.panes is not None and not self.panes.has_gaps and not in_order

    @property
    def is_continuous(self) -> bool:
        """Whether windows fire at intervals before their end."""
        return isinstance(unpurged(self.trigger), ContinuousEventTimeTrigger)

    @property
    def purges(self) -> bool:
        """Whether a window that fires is emptied."""
        return isinstance(self.trigger, PurgingTrigger)

    @property
    def fires_alone(self) -> bool:
        """Whether a late element fires its window alone, because what came before was purged."""
        return self.purges and self.lateness_ms > 0

    @property
    def has_sessions(self) -> bool:
        """Whether its windows are sessions of event time."""
        return isinstance(self.assigner, EventTimeSessionWindows | DynamicEventTimeSessionWindows)

    @property
    def gap_ms(self) -> int | None:
        """The gap of its sessions, in milliseconds; None if elements bring their gaps, or if there are none."""
        return self.assigner.session_gap if isinstance(self.assigner, EventTimeSessionWindows) else None

    @property
    def gaps(self) -> Gaps | None:
        """How the gap of an element is found; None if all have one gap, or none."""
        assigner = self.assigner
        if not isinstance(assigner, DynamicEventTimeSessionWindows):
            return None
        return Gaps(self.name, assigner, self.fields_of_key)

    @property
    def counting(self) -> Counts:
        """Which elements fire a window; for windows that count."""
        if self.counts is None:
            raise TypeError(f"{self.trigger!r} does not count")
        return self.counts

    @property
    def needs_clock(self) -> bool:
        """Whether its windows follow processing time."""
        return isinstance(self.assigner, TumblingProcessingTimeWindows)

    @property
    def panes(self) -> Panes | None:
        """How time falls into panes; None if windows do not consist of panes."""
        if isinstance(self.assigner, TumblingProcessingTimeWindows):
            return RegularPanes(self.assigner.size, self.assigner.size, self.assigner.offset)
        return panes_of(self.assigner)

    @property
    def fields_of_key(self) -> tuple[str, ...]:
        """The fields of elements that are the key; none if it is computed."""
        return () if self.computed is not None else self.keys

    @property
    def used_fields(self) -> frozenset[str] | None:
        """The fields of elements that are used; None if whole elements are."""
        read = frozenset(self.keys) if self.computed is None else self.computed.fields_read(self.value_type)
        return None if self.ships_elements or self.gaps or read is None else read | {*self.aggregation.input_columns}

    @property
    def key_fields(self) -> list[pa.Field]:
        """The columns of the key in tables."""
        types = columns_of_key(self.keys, self.computed, self.value_type)
        return [pa.field(name, kind) for name, kind in zip(key_names(len(types)), types, strict=True)]

    def stored_schema(self, part: str) -> pa.Schema:
        """The columns of the tables that it keeps."""
        times: list[pa.Field] = []
        if self.has_sessions:
            times = [*BOUNDS, *([] if self.counts is None else [pa.field(COUNT, pa.int64())])]
        elif self.is_continuous:
            times = [pa.field(FIRE, pa.int64())]
        elif self.counts is not None and self.counts.is_sliding:
            times = [pa.field(PANE, pa.int64())]
        elif self.counts is not None and self.panes is not None:
            times = [pa.field(WINDOW, pa.int64())]
        return pa.schema([*self.key_fields, *times, *self.aggregation.partial_fields])

    def partitioner(self, max_parallelism: int, key: Key | None) -> ColumnPartitioner:
        """How elements get here that have a key; None for windows over all elements."""
        first = self.pane_aggregation() if self.aggregates_first or self.aggregates_in_time else None
        return ColumnPartitioner(
            self.value_type,
            self.keys,
            tuple(self.aggregation.input_columns),
            max_parallelism,
            None if key is None else key.select,
            first,
            whole=self.ships_elements,
            timed=self.assigner.is_event_time() or self.aggregation.uses_timestamps,
            clocked=self.needs_clock,
            sorted_by_time=self.in_batch,
            gaps=self.gaps,
            computed=self.computed,
            lateness_ms=self.lateness_ms,
        )

    def pane_aggregation(self) -> PaneAggregation:
        """How elements are aggregated by key and pane; for windows that consist of panes."""
        panes = self.panes
        if panes is None:
            raise TypeError(f"{self.assigner!r} has no panes")
        return PaneAggregation(panes, len(self.keys), self.aggregation)

    def describe(self) -> list[tuple[str, str]]:
        """Return the lines of ``explain``."""
        late = "dropped and counted" if self.late_tag is None else f"to side output {self.late_tag!r}"
        late = f"allowed lateness {self.lateness_ms} ms, later than that {late}"
        last = f", of the last {self.counts.size} elements" if self.counts and self.counts.is_sliding else ""
        kept = "sessions" if self.has_sessions else "windows" if self.counts else "panes"
        return [
            ("windows", repr(self.assigner)),
            ("trigger", f"{self.trigger!r}{last}"),
            ("computes", ", ".join(self.aggregation.result_names)),
            ("late", "nothing: these windows do not follow event time" if self.needs_clock else late),
            ("state", f"partial aggregates in Arrow columns, by key and {kept}"),
        ]


_PLACE = "__place"
_IN_WINDOWS_AT_ONCE = 1 << 21


class ColumnarOperator(WithoutClock, ABC):
    """The part of a columnar window operator that does not depend on the kind of window."""

    def __init__(self, spec: ColumnarWindow, context: OperatorContext) -> None:
        self.spec = spec
        self.keys = key_names(len(spec.keys))
        self.watermark = context.watermark_ms
        self.outputs = Outputs(spec)
        self._metrics = context.metrics

    @property
    def inputs(self) -> Sequence[Receive]:
        """The only input."""
        return (self.process,)

    @property
    @abstractmethod
    def late_until(self) -> int:
        """The last event time of which an element may come too late now."""

    @abstractmethod
    def process(self, parts: list[TablePayload]) -> None:
        """Add elements, put in order, all under the current watermark."""

    def reacts_to(self, watermark_ms: int) -> bool:
        """True: any watermark may change something."""
        return True

    def take_outputs(self) -> dict[str | None, Elements]:
        """Give away the results since the last call, by side output (None: the main one)."""
        return self.outputs.take()

    def merged(self, partials: pa.Table, *by: str) -> pa.Table:
        """One row for each key, or for each key and what else is named."""
        return self.spec.aggregation.merge(partials, [*self.keys, *by])

    def rows(self, parts: list[TablePayload]) -> pa.Table:
        """The rows of several channels in their order, with the columns of key and aggregates."""
        rows = joined_rows(parts)
        spec = self.spec
        return unpacked(rows, spec.fields_of_key, spec.aggregation.input_columns) if spec.ships_elements else rows

    def accepted(self, rows: pa.Table, panes: Panes, last_late: int) -> tuple[pa.Table, Array]:
        """The rows that are not late or in a gap between windows, and where the pane of each starts.

        Rows of windows up to the one of a number are late. They, and those without a window, are counted.
        """
        times = numbers_in(rows, TIMESTAMP)
        come = arrived(panes, times, last_late, self.spec.lateness_ms, self.watermark)
        self._metrics.count(self.spec.name, WITHOUT_WINDOW, int(come.without_window.sum()))
        self.report_late(rows, come.late)
        accepted = ~come.late & ~come.without_window
        return (rows, come.starts) if accepted.all() else (rows.filter(pa.array(accepted)), come.starts[accepted])

    def in_windows(self, rows: pa.Table, panes: Panes, last_late: int) -> Iterator[pa.Table]:
        """The rows that are accepted, once for each of their windows, whose number is in the column WINDOW.

        The windows of a row come latest first, as assigners give them; some rows at a time.
        """
        rows, starts = self.accepted(rows, panes, last_late)
        at_once = max(1, _IN_WINDOWS_AT_ONCE // panes.per_window)
        for begin in range(0, len(rows), at_once):
            at, numbers = windows_of(panes, starts[begin : begin + at_once], last_late)
            yield rows.slice(begin, at_once).take(at).append_column(WINDOW, pa.array(numbers))

    def emit(self, partials: pa.Table, panes: Panes) -> None:
        """Take results, in the order in which they are emitted, with the numbers of their windows in WINDOW."""
        distinct, numbers = np.unique(numbers_in(partials, WINDOW), return_inverse=True)
        partials = partials.append_column(_PLACE, pa.array(numbers))
        if len(partials):
            self.outputs.add_of_windows(partials, _PLACE, [panes.window(number) for number in distinct.tolist()])

    def report_late(self, rows: pa.Table, late: Array) -> None:
        """Count the late rows, and send them to the side output that wants them."""
        if not late.any():
            return
        self.count_late(numbers_in(rows, TIMESTAMP)[late])
        if self.spec.late_tag is not None:
            self.outputs.add_to_side(self.spec.late_tag, rows.filter(pa.array(late)), self.spec.value_type)

    def count_late(self, times: Array, counts: Array | None = None) -> None:
        """Count late elements by their event times, or sums of several, each with its count."""
        kind = LATE_DROPPED if self.spec.late_tag is None else LATE_TO_SIDE_OUTPUT
        self._metrics.count_late(self.spec.name, kind, times, self.watermark, counts)


class Gathered:
    """Gathers what an operator gives as columns, by side output (None: the main one)."""

    def __init__(self) -> None:
        self._parts: dict[str | None, list[Elements]] = {}
        self.count = 0

    def put(self, kind: TypeInformation, values: pa.Array, times: object) -> None:
        """Take results of a type with their times, in milliseconds, in the order in which they are emitted."""
        if not len(values):
            return
        places = pa.array(np.arange(self.count, self.count + len(values)))
        columns = Columns(kind, values, pa.array(times, pa.int64()), places)
        self._parts.setdefault(None, []).append(Elements(columns=columns))
        self.count += len(values)

    def put_elements(self, outputs: Mapping[str | None, Elements]) -> None:
        """Take what a function returned, by side output, in the order in which it is emitted."""
        for tag, elements in outputs.items():
            parts = self._parts.setdefault(tag, [])
            parts.append(elements.shifted(self.count if tag is None else sum(map(len, parts))))
            self.count += len(elements) if tag is None else 0

    def add_to_side(self, tag: str, rows: pa.Table, kind: TypeInformation) -> None:
        """Take rows of whole elements of a type for a side output."""
        parts = self._parts.setdefault(tag, [])
        values, timestamps = (rows.column(name).combine_chunks() for name in (VALUE, TIMESTAMP))
        places = pa.array(np.arange(len(rows)) + sum(map(len, parts)))
        parts.append(Elements(columns=Columns(kind, values, timestamps, places)))

    def take(self) -> dict[str | None, Elements]:
        """Give away what there is."""
        outputs = {tag: _together(parts) for tag, parts in self._parts.items()}
        self._parts, self.count = {}, 0
        return outputs


def _together(parts: list[Elements]) -> Elements:
    """Several batches as one: as columns, if all have some and these are of one type."""
    columns = [part.columns for part in parts if part.columns is not None]
    if len(columns) == len(parts) and len({part.type_info for part in columns}) == 1:
        return Elements(columns=Columns.joined(columns))
    together = Elements()
    for part in parts:
        together.extend(part)
    return together


class Outputs(Gathered):
    """Gathers what windows of aggregates give."""

    def __init__(self, spec: ColumnarWindow) -> None:
        super().__init__()
        self._spec = spec

    def add(self, partials: pa.Table, bounds: tuple[Any, Any] | None, timestamps: object) -> None:
        """Take results, in the order in which they are emitted.

        Args:
            partials: keys and partial aggregates, of one key and window in each row.
            bounds: where the window of each row starts and ends, in milliseconds; None if windows have no times.
            timestamps: the event time of each result, in milliseconds.
        """
        if not len(partials):
            return
        arrays = [partials.column(name).combine_chunks() for name in key_names(len(self._spec.keys))]
        if (computed := self._spec.computed) is not None:
            arrays = [computed.of_columns(arrays, types_of_fields(self._spec.result_type)[0])]
        if bounds is not None:
            arrays.append(TimeWindowTypeInfo().of_bounds(*bounds))
        arrays += self._spec.aggregation.finish(partials)
        fields = list(self._spec.result_type.arrow_type())
        values = pa.StructArray.from_arrays(
            [array.cast(field.type) for array, field in zip(arrays, fields, strict=True)], fields=fields
        )
        self.put(self._spec.result_type, values, timestamps)

    def add_of_windows(self, partials: pa.Table, column: str, windows: Sequence[TimeWindow]) -> None:
        """Take results whose window is given by its number, in a column."""
        number = numbers_in(partials, column)
        bounds = np.array([(w.start, w.end, w.max_timestamp()) for w in windows], np.int64)[number]
        self.add(partials, (bounds[:, 0], bounds[:, 1]), bounds[:, 2])
