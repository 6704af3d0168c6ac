"""Windowed streams, with the functions and triggers of their windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, cast, overload

from eventide.aggregates import ColumnAggregate
from eventide.api.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from eventide.api.functions.output_tag import OutputTag
from eventide.api.windows import (
    DynamicEventTimeSessionWindows,
    Evictor,
    NeverTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    Trigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
)
from eventide.common.ms import to_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import ACC, OUT, KEY_co, R, T_co, W
from eventide.common.typeinfo import CompositeTypeInfo, TypeInformation, Types
from eventide.common.types import Row
from eventide.datastream.data_stream.stream import DataStream, check_named_once, field_type, type_with_fields
from eventide.datastream.time_characteristic import TimeCharacteristic
from eventide.errors import ProgramError, check_is
from eventide.plan.graph import KeyTransformation, OperationTransformation, Transformation
from eventide.runtime.columnar.aggregation import Aggregation
from eventide.runtime.window.aggregated_contents import AggregatedColumns, ColumnResult, OnRows
from eventide.runtime.window.contents import Aggregated, AllElements, Contents, Evictable, Reduced
from eventide.runtime.window.functions import Apply, ApplyAll, FiringFunction, ProcessAll, WindowProcess, WindowSpec
from eventide.runtime.window.operation import WindowOperation

if TYPE_CHECKING:
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment


OnFiring: TypeAlias = (
    WindowFunction[T_co, R, KEY_co, W]
    | ProcessWindowFunction[T_co, R, KEY_co, W]
    | AllWindowFunction[T_co, R, W]
    | ProcessAllWindowFunction[T_co, R, W]
)
"""A function that ``reduce`` and ``aggregate`` call with their result: one of the first two on a keyed stream."""


class _Windowed(Generic[KEY_co, T_co, W]):
    """Settings and checks of windows, and the making of the operator, for keyed and unkeyed streams."""

    _adapters: tuple[tuple[type, Callable[[Any], FiringFunction]], ...] = ()

    def __init__(
        self, env: StreamExecutionEnvironment, source: Transformation, assigner: WindowAssigner[T_co, W]
    ) -> None:
        check_is(assigner, WindowAssigner, "a window needs a window assigner, such as TumblingEventTimeWindows")
        if assigner.is_event_time() and not source.has_timestamps:
            raise ProgramError(
                f"{type(assigner).__name__} needs event time, but the elements of {source.name!r} have no timestamps; "
                "call assign_timestamps_and_watermarks with a strategy that has a timestamp assigner before"
            )
        self._env = env
        self._source = source
        self._assigner = assigner
        if type(assigner) is DynamicEventTimeSessionWindows:
            configured = env.as_configured(assigner.session_window_time_gap_extractor)
            self._assigner = cast("Any", replace(assigner, session_window_time_gap_extractor=configured))
        self._trigger: Trigger[T_co, W] | None = None
        self._evictor = assigner.get_default_evictor()
        self._lateness_ms = 0
        self._late_tag: OutputTag | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that this stream belongs to."""
        return self._env

    def get_input_type(self) -> TypeInformation:
        """The declared type of the elements."""
        return self._source.type_info

    def trigger(self, trigger: Trigger[T_co, W]) -> Self:
        """Set the trigger of the windows, in place of the assigner's own.

        Raises:
            ProgramError: if windows merge and the trigger cannot.
        """
        check_is(trigger, Trigger, "trigger needs a Trigger")
        self._check_merges(trigger, "a trigger whose can_merge() is True and which implements on_merge()")
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[T_co, W]) -> Self:
        """Set an evictor, which chooses the elements that the function sees and the window keeps.

        All elements of a window are then stored.

        Raises:
            ProgramError: if windows merge and the evictor cannot.
        """
        check_is(evictor, Evictor, "evictor needs an Evictor")
        self._check_merges(evictor, "an evictor whose can_merge() is True")
        self._evictor = evictor
        return self

    def allowed_lateness(self, time_ms: Duration | Time | int) -> Self:
        """Keep each window for late elements until the watermark has passed its end by `time_ms`; each fires it again.

        It has no effect for windows that do not follow event time: no element can be late for them.

        Raises:
            ProgramError: if it is negative or not a length of time.
        """
        self._lateness_ms = to_ms(time_ms, "allowed lateness", least=0)
        return self

    def side_output_late_data(self, output_tag: OutputTag[T_co]) -> Self:
        """Send elements that are too late to a side output instead of dropping them; they are counted either way.

        Raises:
            ProgramError: if no element can be late, because the windows do not follow event time.
        """
        check_is(output_tag, OutputTag, "side_output_late_data needs an OutputTag")
        if not self._assigner.is_event_time():
            raise ProgramError(
                f"no element can be late for {type(self._assigner).__name__}, whose windows do not follow event time; "
                "leave side_output_late_data out"
            )
        self._late_tag = output_tag
        return self

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co],
        window_function: None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[T_co]: ...

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co],
        window_function: OnFiring[T_co, R, KEY_co, W],
        output_type: TypeInformation | None = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co],
        window_function: object = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[Any]:
        """Reduce the elements of each window to one as they arrive; a window function gets the result."""
        function = ReduceFunction.of(self._env.as_configured(reduce_function))
        if window_function is None and output_type is None:
            output_type = self._source.type_info
        return self._operator("reduce", Reduced(function), window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, ACC, OUT],
        window_function: None = None,
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, ACC, OUT],
        window_function: OnFiring[OUT, R, KEY_co, W],
        accumulator_type: TypeInformation | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream[R]: ...

    @overload
    def aggregate(self, aggregate_function: ColumnAggregate, *more: ColumnAggregate) -> DataStream[Row]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: ColumnAggregate,
        *more: ColumnAggregate | OnFiring[Row, Any, KEY_co, W] | TypeInformation,
    ) -> DataStream[Any]: ...

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, Any, Any] | ColumnAggregate,
        window_function: object = None,
        accumulator_type: object = None,
        output_type: object = None,
        *more: object,
    ) -> DataStream[Any]:
        """Aggregate the elements of each window as they arrive.

        Either with an ``AggregateFunction``; a window function on top of it gets the result. ``accumulator_type`` is
        accepted for compatibility with PyFlink; accumulators are kept pickled.

        Or, beyond PyFlink, with aggregates of columns: ``aggregate(count(), sum_("amount").alias("total"))``. The
        results are rows of the key's fields (``key``, if that is a function), the ``window`` if windows have times, and
        a field for each aggregate. A window function may come last, and the type of its results after it:
        ``aggregate(count(), sum_("amount").alias("total"), report, Types.STRING())``. It gets a row of the aggregates.

        Raises:
            ProgramError: if it is neither, or aggregates and elements do not fit.
        """
        if isinstance(aggregate_function, ColumnAggregate):
            rest = [a for a in (window_function, accumulator_type, output_type) if a is not None]
            return self._aggregate_columns([aggregate_function, *rest, *more])
        check_is(aggregate_function, AggregateFunction, "aggregate needs an AggregateFunction or aggregates of columns")
        function = self._env.as_configured(aggregate_function)
        return self._operator(
            "aggregate", Aggregated(function), window_function, cast("TypeInformation | None", output_type)
        )

    def _check_merges(self, used: Trigger[T_co, W] | Evictor[T_co, W], instead: str) -> None:
        if self._assigner.is_merging and not used.can_merge():
            raise ProgramError(
                f"the windows of {type(self._assigner).__name__} merge, but {type(used).__name__} cannot; use {instead}"
            )

    def _aggregate_columns(self, given: Sequence[object]) -> DataStream[Any]:
        """Aggregate by column, with a window function on top if one follows the aggregates."""
        output_type = given[-1] if isinstance(given[-1], TypeInformation) else None
        given = given if output_type is None else given[:-1]
        function = None if isinstance(given[-1], ColumnAggregate) else given[-1]
        contents, result, result_type = _aggregated_by_column(
            self._source,
            given if function is None else given[:-1],
            has_window=self._assigner.has_time_windows,
        )
        if function is None and output_type is not None:
            raise ProgramError(f"aggregate: results of aggregates have a type of their own, not {output_type}")
        if function is None:
            return self._operator("aggregate", contents, result, result_type)
        names = contents.aggregation.result_names
        firing = self._firing_function("aggregate", function)
        on_rows = OnRows(firing.user_function, names=names, function=firing)
        return self._operator("aggregate", contents, on_rows, output_type)

    def _operator(
        self, kind: str, contents: Contents | None, window_function: object, output_type: TypeInformation | None
    ) -> DataStream[Any]:
        firing = self._firing_function(kind, window_function)
        trigger = self._trigger or self._assigner.get_default_trigger(None)
        if self._trigger is None and isinstance(trigger, NeverTrigger):
            raise ProgramError(
                f"{type(self._assigner).__name__} never fires by itself, so all elements would be kept for ever; set a "
                "trigger, such as trigger(CountTrigger.of(100)), or NeverTrigger() if that is what you want"
            )
        kept: Contents = (contents or AllElements()) if self._evictor is None else Evictable(contents)
        late = self._late_tag
        windows = WindowSpec(
            name="",
            assigner=self._assigner,
            trigger=trigger,
            contents=kept,
            function=firing,
            evictor=self._evictor,
            lateness_ms=self._lateness_ms,
            late_tag=None if late is None else late.tag_id,
            output_type=output_type or Types.PICKLED_BYTE_ARRAY(),
        )
        operation = WindowOperation(f"{type(self._assigner).__name__}.{kind}", windows)
        side_outputs = {} if late is None else {late.tag_id: self._source.type_info}
        window = OperationTransformation(operation.kind, (self._source,), output_type, operation, side_outputs)
        return DataStream(self._env, window)

    def _firing_function(self, kind: str, function: object) -> FiringFunction:
        if function is None:
            return FiringFunction()
        if isinstance(function, ColumnResult | OnRows):
            return function
        for accepted, adapter in self._adapters:
            if isinstance(function, accepted):
                return adapter(function)
        names = " or ".join(accepted.__name__ for accepted, _ in self._adapters)
        raise ProgramError(f"{kind} on this stream takes a {names}, not {function!r}")


class WindowedStream(_Windowed[KEY_co, T_co, W]):
    """The elements of each key in windows. Flink: ``WindowedStream``."""

    _adapters = ((WindowFunction, Apply), (ProcessWindowFunction, WindowProcess))

    def apply(
        self, window_function: WindowFunction[T_co, OUT, KEY_co, W], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Call a function with the key, the window and all of its elements when it fires."""
        return self._operator("apply", None, window_function, output_type)

    def process(
        self,
        process_window_function: ProcessWindowFunction[T_co, OUT, KEY_co, W],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Call a function with the key, a context and all elements of a window when it fires."""
        return self._operator("process", None, process_window_function, output_type)


class AllWindowedStream(_Windowed[Any, T_co, W], Generic[T_co, W]):
    """All elements in windows, in one subtask. Flink: ``AllWindowedStream``."""

    _adapters = ((AllWindowFunction, ApplyAll), (ProcessAllWindowFunction, ProcessAll))

    def apply(
        self, window_function: AllWindowFunction[T_co, OUT, W], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Call a function with the window and all of its elements when it fires."""
        return self._operator("apply", None, window_function, output_type)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[T_co, OUT, W],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Call a function with a context and all elements of a window when it fires."""
        return self._operator("process", None, process_window_function, output_type)


def time_windows(
    characteristic: TimeCharacteristic, size: Duration | Time | int, slide: Duration | Time | int | None
) -> WindowAssigner[object, TimeWindow]:
    """Tumbling windows, or sliding ones if there is a slide, of the time characteristic of a program."""
    by_clock = characteristic is TimeCharacteristic.ProcessingTime
    if slide is None:
        return (TumblingProcessingTimeWindows if by_clock else TumblingEventTimeWindows).of(size)
    return (SlidingProcessingTimeWindows if by_clock else SlidingEventTimeWindows).of(size, slide)


def _aggregated_by_column(
    source: Transformation, given: Sequence[object], *, has_window: bool
) -> tuple[AggregatedColumns, ColumnResult, TypeInformation]:
    """Return the contents and results of windows for aggregates by column, and the type of the results.

    Raises:
        ProgramError: if the type of the elements is not declared, a field is not there or does not suit its aggregate,
            or two results have one name.
    """
    aggregates = [aggregate for aggregate in given if isinstance(aggregate, ColumnAggregate)]
    if strange := [other for other in given if not isinstance(other, ColumnAggregate)]:
        raise ProgramError(f"aggregate takes one AggregateFunction, or aggregates of columns, not also {strange[0]!r}")
    kind = type_with_fields(source, repr(aggregates[0]))
    inputs = {a.column: field_type(kind, a.column, repr(a)) for a in aggregates if a.column is not None}
    results = [a.result_type(None if a.column is None else inputs[a.column]) for a in aggregates]
    keys = _key_fields(source, kind)
    window = [("window", Types.TIME_WINDOW())] if has_window else []
    fields = [*keys, *window, *((a.output_name, t) for a, t in zip(aggregates, results, strict=True))]
    names = [name for name, _ in fields]
    check_named_once(names)
    aggregation = Aggregation.of(aggregates, {name: t.arrow_type() for name, t in inputs.items()})
    contents = AggregatedColumns(aggregation, kind, tuple(results))
    result = ColumnResult(names=tuple(names), keys=len(keys), has_window=has_window)
    return contents, result, Types.ROW_NAMED(names, [field for _, field in fields])


def _key_fields(source: Transformation, kind: CompositeTypeInfo) -> list[tuple[str, TypeInformation]]:
    if not isinstance(source, KeyTransformation):
        return []
    if source.key.columns:
        return [(name, field_type(kind, name, "key_by")) for name in source.key.columns]
    return [("key", source.key.by_field(kind).type_info)]
