"""Windows as a program asks for them: they run on columns where the program allows it, else on elements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eventide.api.functions import AggregateFunction, ReduceFunction
from eventide.api.windows import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from eventide.api.windows.triggers import unpurged
from eventide.common.typeinfo import CompositeTypeInfo, Types
from eventide.runtime.columnar.computed_keys import ComputedKey, computed_key
from eventide.runtime.columnar.counted_sessions import CountedSessionOperator
from eventide.runtime.columnar.gaps import DYNAMIC, obstacle_of_gaps, why_no_traced_gaps
from eventide.runtime.columnar.keyed_operators import CountOperator, SessionOperator, SlidingCountOperator
from eventide.runtime.columnar.layout import key_names
from eventide.runtime.columnar.operator import ColumnarWindow, Counts
from eventide.runtime.columnar.pane_operator import ClockOperator, ContinuousOperator, PaneOperator
from eventide.runtime.columnar.panes import WITH_PANES, panes_of, windows_in_row
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner, StreamPartitioner
from eventide.runtime.process.operation import key_fields_of, partitioner_of
from eventide.runtime.state.backend import Backend
from eventide.runtime.state.key_context import KeyContext
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.transaction import TransactionalState
from eventide.runtime.tasks.operator import (
    OpenOperator,
    Operator,
    OperatorContext,
    OperatorInput,
    PlannedOperator,
    is_exact,
    tells_apart,
)
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.folds import aggregate_fold_of, fold_of
from eventide.runtime.tracing.reasons import place_of, why_python
from eventide.runtime.tracing.tracing import key_fields
from eventide.runtime.window.aggregated_contents import AggregatedColumns, ColumnResult, OnRows
from eventide.runtime.window.contents import Aggregated, AllElements, Evictable, Reduced
from eventide.runtime.window.element_store import AggregateTables, ElementTables
from eventide.runtime.window.fixed_operator import FixedWindowOperator
from eventide.runtime.window.functions import SESSIONS, WindowSpec
from eventide.runtime.window.grouping_operator import GroupingWindowOperator
from eventide.runtime.window.operator import CONTENTS, WindowOperator
from eventide.runtime.window.reducing import PartialsCodec, ReducingPartitioner
from eventide.runtime.window.reducing_columns import fold_from_left
from eventide.runtime.window.thinning import ThinningPartitioner

COLUMNS = "columns"
_ELEMENT = "element by element"
_WITHOUT = "with built-in watermarks, or a generator class that is_periodic,"
_ON_COLUMNS = (*WITH_PANES, *SESSIONS)
_COUNTED = (GlobalWindows, CountTumblingWindowAssigner, *_ON_COLUMNS)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class WindowOperation:
    """Windows as a program describes them; everything about them but their input.

    ``windows`` says how they work element by element; they get their name when they are planned. What is asked of
    assigners and triggers is their exact type: a subclass of a built-in one may do anything, so its windows run element
    by element.
    """

    kind: str
    windows: WindowSpec
    needs_all: bool = True
    dead_letters: str | None = None

    @property
    def endless(self) -> str | None:
        """The reason why the operator would never end after its input has ended; None if it ends."""
        assigner, trigger = self.windows.assigner, self.windows.trigger
        if assigner.has_time_windows or type(unpurged(trigger)) is not ContinuousEventTimeTrigger:
            return None
        return (
            "its windows have no end, so its continuous trigger would fire for ever when its input ends; use windows "
            "of event time, or a CountTrigger"
        )

    def spec(self, name: str) -> WindowSpec:
        """The operator that works element by element."""
        return replace(self.windows, name=name, dead_letters=self.dead_letters, key_context=KeyContext())

    def planned(self, name: str, inputs: Sequence[OperatorInput], max_parallelism: int) -> PlannedOperator:
        """Choose the speed; the results are the same at both."""
        (source,) = inputs
        spec = self.spec(name)
        contents, function = spec.contents, spec.function
        if isinstance(contents, Evictable) and isinstance(contents.incremental, AggregatedColumns):
            contents = contents.incremental
        if isinstance(contents, AggregatedColumns) and isinstance(function, ColumnResult):
            source = _by_field(source)
            computed = computed_key(source.key, source.value_type)
            obstacle = computed if isinstance(computed, str) else None
            obstacle = obstacle or _obstacle(spec) or obstacle_of_gaps(spec.assigner, self.dead_letters)
            if source.in_batch and _follows_clock(spec.assigner):
                obstacle = obstacle or "the windows follow processing time, which does not go on in batch mode"
            if not source.in_batch:  # where elements come in the order of time, as parts do
                obstacle = obstacle or _disorder(spec, contents)
            if obstacle is None and not isinstance(computed, str):
                return self._on_columns(spec, contents, source, computed, max_parallelism)
        else:
            obstacle = _python_in(spec)
        identity = self._identity(spec, source, max_parallelism)
        kept: str | None = None
        if is_on_rows := isinstance(function, OnRows) or isinstance(contents, AllElements):
            by_field = _by_field(source)
            kept = _kept_as_objects(spec, by_field)
            if kept is None:
                source, spec = by_field, replace(spec, tables=_tables(spec, by_field), contents=AllElements())
        partitioner = _element_partitioner(spec, source, max_parallelism)
        used = None
        if isinstance(spec.tables, AggregateTables) and isinstance(contents, AggregatedColumns):
            identity["stored form"] += ", aggregated"
            window = self._columnar(spec, contents, source)
            if window.aggregates_first and not source.in_batch and (source.key is None or source.key.is_columnar):
                partitioner = window.partitioner(max_parallelism, source.key)
                used = frozenset({*window.keys, *contents.aggregation.input_columns})
        if isinstance(partitioner, ReducingPartitioner):
            speed = f"{_ELEMENT}, reduced before the shuffle, because {obstacle}"
        elif spec.tables is not None:
            before = "" if used is None else "aggregated before the shuffle, "
            speed = f"{_ELEMENT} when a window fires, {before}on columns until then, because {obstacle}"
        elif isinstance(partitioner, ThinningPartitioner):
            speed = f"{_ELEMENT}, without those that the function does not choose, because {obstacle}"
        else:
            speed = f"{_ELEMENT}, because {obstacle}"
            if isinstance(spec.contents, Reduced | Aggregated) and (reason := _unreduced(spec, source)) is not None:
                speed += f"; not reduced before the shuffle, because {reason}"
            if (spec.is_fixed or spec.is_by_time or spec.begins_anew_after) and _folds_columns(spec, source):
                speed += "; many elements that come as columns are added from left to right without objects"
            if is_on_rows:
                speed += f"; elements are kept as objects, because {kept}"
        return PlannedOperator(spec, open_windows, (partitioner,), speed, identity, (used,))

    def _on_columns(
        self,
        spec: WindowSpec,
        contents: AggregatedColumns,
        source: OperatorInput,
        computed: ComputedKey | None,
        max_parallelism: int,
    ) -> PlannedOperator:
        window = self._columnar(spec, contents, source)
        if computed is not None and source.key is not None:
            window = replace(window, keys=tuple(key_names(len(computed.types))), computed=computed)
            source = replace(source, key=replace(source.key, type_info=computed.kind))
        gaps = window.gaps
        return PlannedOperator(
            window,
            open_columnar_windows,
            (window.partitioner(max_parallelism, source.key),),
            f"{COLUMNS}, {_why_fast(window)}" + ("" if gaps is None else f"; {gaps.speed(window.value_type)}"),
            self._identity(window, source, max_parallelism),
            (window.used_fields,),
            tells_watermark=window.aggregates_in_time,
        )

    def _columnar(self, spec: WindowSpec, contents: AggregatedColumns, source: OperatorInput) -> ColumnarWindow:
        follows_clock = _follows_clock(spec.assigner)  # so nothing is late
        return ColumnarWindow(
            name=spec.name,
            assigner=spec.assigner,
            trigger=spec.trigger,
            aggregation=contents.aggregation,
            value_type=contents.value_type,
            keys=() if source.key is None else source.key.columns,
            result_type=spec.output_type,
            lateness_ms=0 if follows_clock else spec.lateness_ms,
            late_tag=None if follows_clock else spec.late_tag,
            one_by_one=source.is_punctuated and not follows_clock,
            in_batch=source.in_batch,
            counts=_counts(spec),
            from_sources=source.from_sources,
        )

    def _identity(self, spec: object, source: OperatorInput, max_parallelism: int) -> dict[str, str]:
        key, windows = source.key, self.windows
        apart = isinstance(spec, WindowSpec) and spec.is_fixed and spec.dead_letters is not None
        return {
            "window": described(windows.assigner),
            "trigger": described(windows.trigger),
            "evictor": described(windows.evictor),
            "allowed lateness": f"{windows.lateness_ms} ms",
            "window contents": windows.contents.describe(),
            "stored form": f"{type(spec).__name__}{', by key' if apart else ''}",
            "element type": str(source.value_type),
            "key type": "no key" if key is None else str(key.type_info),
            "key columns": "none" if key is None else ", ".join(key.columns) or "none",
            "max parallelism": str(max_parallelism),
            **key_fields_of([source]),
        }


def _by_field(source: OperatorInput) -> OperatorInput:
    """The input, with its key given by its field where a plain function returns that."""
    return source if source.key is None else replace(source, key=source.key.by_field(source.value_type))


def described(value: object) -> str:
    """A user's object in words that are the same in every process."""
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return type(value).__qualname__
    return _ADDRESS.sub("", repr(value))


def open_windows(spec: WindowSpec, backend: Backend, context: OperatorContext) -> WindowOperator:
    """The operator of windows on Python objects, on its state."""
    if spec.dead_letters is not None:
        growing = frozenset({CONTENTS} if isinstance(spec.contents, AllElements) else ())
        state = TransactionalState(backend, context.max_parallelism, growing, in_batch=context.in_batch)
        return WindowOperator(spec, state, context)
    keyed = KeyedState(backend, context.max_parallelism, in_batch=context.in_batch)
    if spec.is_fixed:
        return FixedWindowOperator(spec, backend, keyed, context)
    may_group = spec.is_by_time or spec.begins_anew_after is not None
    may_group = may_group and isinstance(spec.contents, Reduced | Aggregated | AllElements)
    return (GroupingWindowOperator if may_group else WindowOperator)(spec, keyed, context)


def open_columnar_windows(spec: ColumnarWindow, backend: Backend, context: OperatorContext) -> Operator:
    """The operator of windows on columns, on its state."""
    kind: OpenOperator = ContinuousOperator if spec.is_continuous else PaneOperator
    if spec.has_sessions:
        kind = SessionOperator if spec.counts is None else CountedSessionOperator
    elif spec.counts is not None:
        kind = SlidingCountOperator if spec.counts.is_sliding else CountOperator
    elif spec.needs_clock:
        kind = ClockOperator
    return kind(spec, backend, context)


def _obstacle(spec: WindowSpec) -> str | None:
    """Why aggregates by column cannot run on columns, whatever the key, and what to change; None if they can."""
    assigner, trigger = spec.assigner, spec.trigger
    if _counts(spec) is not None:
        return None
    if spec.evictor is not None:
        return f"the evictor {spec.evictor!r} looks at single elements"
    if _follows_clock(assigner):
        return _obstacle_of_clock(spec)
    if type(assigner) is CountTumblingWindowAssigner:
        return f"the trigger {trigger!r} is not the one of count windows; leave trigger(...) out"
    if type(assigner) not in _ON_COLUMNS:
        windows = "tumbling, sliding, cumulating, calendar, session or count windows"
        return f"the windows {assigner!r} need each element; use {windows}"
    nested = unpurged(trigger)
    if type(nested) is EventTimeTrigger:
        if nested is not trigger and spec.lateness_ms and type(assigner) in SESSIONS:
            return f"the trigger {trigger!r} leaves sessions that are empty; without allowed_lateness there are none"
        return None
    if type(nested) is ContinuousEventTimeTrigger:
        if type(assigner) not in SESSIONS:
            return None
        return "a ContinuousEventTimeTrigger does not run on columns with sessions"
    by_clock = type(nested) in (ProcessingTimeTrigger, ContinuousProcessingTimeTrigger)
    what = "waits for processing time" if by_clock else "looks at single elements"
    return f"the trigger {trigger!r} {what}; use the windows' own, or a ContinuousEventTimeTrigger"


def _counts(spec: WindowSpec) -> Counts | None:
    """Which elements fire windows by their number, as columns can tell; None for other windows."""
    assigner, trigger, evictor = spec.assigner, spec.trigger, spec.evictor
    counting, purges = unpurged(trigger), type(trigger) is PurgingTrigger
    if type(counting) is not CountTrigger or type(assigner) not in _COUNTED:
        return None
    every: int = counting.window_size
    if evictor is None:
        return Counts(every, every if purges else None)
    if purges or assigner.has_time_windows or type(evictor) is not CountEvictor:
        return None
    return None if evictor.do_evict_after else Counts(every, evictor.max_count)


def _obstacle_of_clock(spec: WindowSpec) -> str | None:
    """Why windows of processing time cannot run on columns, and what to change; None if they can."""
    assigner, contents = spec.assigner, spec.contents
    if type(assigner) is not TumblingProcessingTimeWindows:
        return (
            f"the windows {assigner!r} follow processing time; use tumbling windows of processing time, or windows of "
            "event time"
        )
    if type(spec.trigger) is not ProcessingTimeTrigger:
        return f"the trigger {spec.trigger!r} is not the one of these windows; leave trigger(...) out"
    if isinstance(contents, AggregatedColumns) and contents.aggregation.keeps_order:
        return "collect_list is in the order of arrival; without it they would run on columns"
    if isinstance(contents, AggregatedColumns) and contents.aggregation.uses_timestamps:
        return "first and last follow event time, and the windows processing time"
    return None


def _disorder(spec: WindowSpec, contents: AggregatedColumns) -> str | None:
    """Why columns would not keep elements in the order of arrival where a result shows it, and what to change."""
    assigner, panes = spec.assigner, panes_of(spec.assigner)
    has_many = isinstance(assigner, SESSIONS) or (panes is not None and panes.per_window > 1)
    by_count = _counts(spec) is not None and not isinstance(assigner, SESSIONS)
    if not contents.aggregation.keeps_order or not has_many or by_count:
        return None
    return (
        f"collect_list is in the order of arrival, and columns put the windows {assigner!r} together from parts in the "
        "order of time; tumbling and count windows have one part each"
    )


def _follows_clock(assigner: WindowAssigner[Any, Any]) -> bool:
    return assigner.has_time_windows and not assigner.is_event_time()


def _python_in(spec: WindowSpec) -> str:
    said: str | None = getattr(spec.function.user_function, "obstacle", None)
    if said is not None:
        return said
    functions = ", ".join(map(_name_of, spec.user_functions())) or "the window function"
    if _follows_clock(spec.assigner):
        return f"{functions} is Python, and the windows follow processing time"
    if isinstance(spec.contents, AggregatedColumns):
        return f"{functions} is Python"
    return f"{functions} is Python; aggregate(sum_('…'), …) of eventide.aggregates would run on columns"


def _name_of(function: object) -> str:
    kind = type(function)
    return f"{'a function' if kind.__module__.startswith('eventide.') else kind.__name__}{place_of(function)}"


def _why_fast(window: ColumnarWindow) -> str:
    if window.aggregates_first:
        return "aggregated before the shuffle"
    if window.aggregates_in_time:
        return (
            "aggregated before the shuffle, but for rows that may be late, because late ones go to a side output; the "
            "first micro-batch sends all rows"
        )
    if window.ships_elements:
        return (
            "rows go through the shuffle, because late ones go to a side output; without side_output_late_data they "
            "need not"
        )
    if window.one_by_one:
        reason = "rows go through the shuffle, because watermarks may come between any two of them"
        return f"{reason}; {_WITHOUT} they do not"
    if window.panes is not None and window.aggregation.keeps_order:
        return "rows go through the shuffle, because their order shows in collect_list"
    if window.is_continuous:
        return "rows go through the shuffle, because the trigger follows from the first element of a key"
    if window.counts is None and window.fires_alone:
        return "rows go through the shuffle, because each late element fires alone; without allowed_lateness none does"
    return "rows go through the shuffle, because their order decides what these windows hold"


def _kept_as_objects(spec: WindowSpec, source: OperatorInput) -> str | None:
    """Why all elements of windows cannot stay on columns until they fire, and what to change; None if they can."""
    key = source.key
    if spec.dead_letters is not None:
        return "those that it cannot handle become dead letters"
    if not spec.is_fixed:
        windows = f"{spec.assigner!r} with {spec.trigger!r}"
        return (
            f"{windows} looks at single elements; tumbling and sliding windows of event time with their own trigger "
            "do not"
        )
    if source.value_type.is_pickled:
        return "their type is not declared; declare the output_type of the function that makes them"
    if source.value_type.has_exponents:
        return "columns do not keep the digits of their decimal numbers"
    if isinstance(spec.contents, AggregatedColumns) and spec.lateness_ms:
        return "each late element fires its window; without allowed_lateness none does"
    if key is not None and not tells_apart(key.type_info):
        declare = "name fields, key_by('…'), or declare the key_type"
        return f"columns do not tell keys of type {key.type_info} apart as Python does; {declare}"
    return None


def _tables(spec: WindowSpec, source: OperatorInput) -> ElementTables:
    panes, key, contents = panes_of(spec.assigner), source.key, spec.contents
    in_row = 1 if panes is None else windows_in_row(panes)
    kind, columns = (None, ()) if key is None else (key.type_info, key.columns)
    if not isinstance(contents, AggregatedColumns):
        return ElementTables(source.value_type, kind, columns, in_row)
    aggregation, results = contents.aggregation, contents.result_types
    return AggregateTables(source.value_type, kind, columns, in_row, aggregation=aggregation, result_types=results)


def _needs_each(spec: WindowSpec, source: OperatorInput) -> str | None:
    """Why each element has to go through the shuffle, whatever the function is, and what to change; None if not."""
    if spec.dead_letters is not None:
        return (
            "elements that it cannot handle become dead letters; without side_output_dead_letters they could be reduced"
        )
    if not spec.is_fixed:
        windows = f"{spec.assigner!r} with {spec.trigger!r}"
        return (
            f"{windows} looks at single elements; tumbling and sliding windows of event time with their own trigger "
            "do not"
        )
    if spec.late_tag is not None:
        return "late elements go to a side output as they are; without side_output_late_data they could be reduced"
    if spec.lateness_ms:
        return "each late element fires its window; without allowed_lateness elements could be reduced"
    if source.in_batch:
        return "batch mode reduces them in the order of their timestamps, which is known only when all have arrived"
    if source.is_punctuated:
        return f"watermarks may come between any two elements; {_WITHOUT} they do not"
    panes = panes_of(spec.assigner)
    if panes is not None and panes.has_gaps:
        return "some elements are in no window; a slide of at most the size would leave none out"
    return None


def _unreduced(spec: WindowSpec, source: OperatorInput) -> str | None:
    """Why elements cannot be reduced before the shuffle without other results, and what to change; None if not."""
    reason = _needs_each(spec, source)
    if reason is not None:
        return reason
    if isinstance(spec.contents, Aggregated):
        panes = panes_of(spec.assigner)
        if panes is None or not panes.are_windows:
            return f"aggregate functions run there for tumbling windows only, not for {spec.assigner!r}"
        unknown = _no_aggregate_fold(spec.contents.function, source)
        return None if unknown is None else f"the result might then differ: {unknown}"
    said = spec.contents.user_function.is_associative
    if said is None and (unknown := _no_fold(spec.contents.user_function, source)) is not None:
        return (
            f"the reduce function does not say that it is associative, and its code does not show it: {unknown}; if it "
            "is, say so: reduce(associative(…))"
        )
    if said is False:
        return f"the reduce function says that it is not associative{place_of(spec.contents.user_function)}"
    return None


def _takes_few(spec: WindowSpec, source: OperatorInput) -> bool:
    """Whether a reduce function takes few elements of each key and split, which columns find.

    An element that is None, which begins anew, has no key if that consists of its fields.
    """
    kind, contents, key = source.known_type or source.value_type, spec.contents, source.key
    if key is None or not isinstance(contents, Reduced) or contents.function.is_associative is not None:
        return False
    if _needs_each(spec, source) is not None or not (key.columns or key_fields(key.select, kind)):
        return False
    try:
        return fold_of(contents.function.reduce, kind).takes_few
    except NotTraceable:
        return False


def _folds_columns(spec: WindowSpec, source: OperatorInput) -> bool:
    """Whether its function adds elements up in a way that columns know, and its gaps are found on columns."""
    kind, assigner = source.known_type or source.value_type, spec.assigner
    if isinstance(assigner, DYNAMIC) and why_no_traced_gaps(assigner, kind) is not None:
        return False
    try:
        fold_from_left(spec.contents, kind)
    except NotTraceable:
        return False
    return True


def _no_fold(function: ReduceFunction[Any], source: OperatorInput) -> str | None:
    """The reason why a reduce function is not known to give the same on parts; None if it is known."""
    kind, key = source.known_type or source.value_type, source.key
    reduce = function.reduce
    reason = why_python(lambda: fold_of(reduce, kind), reduce, kind)
    if reason is not None:
        return reason
    names = () if key is None else key.columns or key_fields(key.select, kind) or ()
    same: set[int] = set()
    if isinstance(kind, CompositeTypeInfo):
        places = {kind.field_names.index(name) for name in names}
        same = {place for place in places if is_exact(kind.types[place])}
    return (
        f"its result depends on the order of elements of several splits{place_of(reduce)}"
        if fold_of(reduce, kind).shows_order(same)
        else None
    )


def _no_aggregate_fold(function: AggregateFunction[Any, Any, Any], source: OperatorInput) -> str | None:
    """The reason why partial results of an aggregate function are not known to merge; None if it is known."""
    kind = source.known_type or source.value_type
    return why_python(lambda: aggregate_fold_of(function, kind), function.add, kind)


def _element_partitioner(spec: WindowSpec, source: OperatorInput, max_parallelism: int) -> StreamPartitioner:
    value_type, key = source.value_type, source.key
    panes = panes_of(spec.assigner)
    if isinstance(spec.contents, Reduced | Aggregated) and panes is not None and _unreduced(spec, source) is None:
        codec = PartialsCodec(value_type, Types.PICKLED_BYTE_ARRAY() if key is None else key.type_info)
        select = None if key is None else key.select
        aggregate = None
        if isinstance(spec.contents, Aggregated):
            aggregate = aggregate_fold_of(spec.contents.function, source.known_type or value_type)
        return ReducingPartitioner(spec.name, spec.contents, panes, codec, select, max_parallelism, aggregate=aggregate)
    through = partitioner_of(source, max_parallelism)
    if isinstance(through, KeyGroupPartitioner) and panes is not None and _takes_few(spec, source):
        return ThinningPartitioner(through, spec.contents.user_function.reduce, panes)
    return through
