"""Joins of two streams: in windows, as co-groups, by an interval of time, and as of a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from eventide.api.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    ProcessJoinFunction,
    WindowFunction,
)
from eventide.api.functions.output_tag import OutputTag
from eventide.api.windows import Evictor, Trigger, WindowAssigner
from eventide.common.ms import to_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import OUT, S_co, T, T1_co, T2_co
from eventide.common.typeinfo import RowTypeInfo, TypeInformation, Types
from eventide.common.types import Row
from eventide.datastream.data_stream.stream import (
    DataStream,
    check_keys_of,
    check_named_once,
    check_one_environment,
    check_types_of_keys,
    field_type,
    key_of,
    type_with_fields,
)
from eventide.datastream.data_stream.windowed import WindowedStream
from eventide.errors import ProgramError, check_is
from eventide.joins import JoinedColumn
from eventide.plan.graph import KeyTransformation, OperationTransformation, Transformation
from eventide.plan.identity import name_of
from eventide.runtime.columnar.panes import panes_of
from eventide.runtime.joins.as_of import AsOf, JoiningAsOf, JoinsAsOf, SelectsOfTwo
from eventide.runtime.joins.columns import obstacle_of
from eventide.runtime.joins.interval import ANY_TIME, Bounds
from eventide.runtime.joins.operations import AsOfOperation, IntervalJoinOperation, WindowJoinOperation
from eventide.runtime.joins.pairs import obstacle_of_function, pair_function
from eventide.runtime.joins.windowed import (
    KEEPS,
    CallableJoin,
    CallableProcessJoin,
    CoGroups,
    FlatJoinsPairs,
    JoinsPairs,
    KeyOfSide,
    OfPairs,
    OnSide,
    Selection,
    SelectsOfWindow,
    obstacle_of_fields,
    obstacle_of_keys,
)
from eventide.runtime.tasks.operator import Key

_F = TypeVar("_F")
Selector: TypeAlias = Callable[[T], Any] | KeySelector[T, Any] | str
_ANY = Types.PICKLED_BYTE_ARRAY()
_Inputs: TypeAlias = tuple[DataStream[Any], DataStream[Any]]
_Sides: TypeAlias = tuple[KeyTransformation, KeyTransformation]


class _Pair(Generic[T1_co, T2_co, S_co]):
    """Two streams to be joined; keys and windows are added step by step."""

    _with_window: type[Any]

    def __init__(self, input1: DataStream[T1_co], input2: DataStream[T2_co]) -> None:
        if not isinstance(input2, DataStream):
            raise ProgramError(f"a stream is joined with another stream, not with {input2!r}")
        check_one_environment("a join", input1, input2)
        self._inputs: _Inputs = input1, input2

    def where(
        self, key_selector: Selector[T1_co], key_type: TypeInformation | str | None = None, *more: str
    ) -> Where[T2_co, S_co]:
        """Set the key of the first stream's elements.

        It is a function of an element, fields by name, or an expression of ``pyarrow.compute`` over the fields.

        Raises:
            ProgramError: if it is none of these, or a field is not there.
        """
        key = key_of("where", self._inputs[0]._transformation, key_selector, key_type, more)
        return Where(self._inputs, self._with_window, key)


class JoinedStreams(_Pair[T1_co, T2_co, "JoinedWithWindow[T1_co, T2_co]"], Generic[T1_co, T2_co]):
    """Two streams to be joined in windows. Flink: ``JoinedStreams``; PyFlink has none.

    Elements meet if their keys are equal and they are in one window. A window with elements of one side only has no
    results: an inner join.
    """


class CoGroupedStreams(_Pair[T1_co, T2_co, "CoGroupedWithWindow[T1_co, T2_co]"], Generic[T1_co, T2_co]):
    """Two streams to be co-grouped in windows. Flink: ``CoGroupedStreams``; PyFlink has none."""


@dataclass(frozen=True)
class Where(Generic[T2_co, S_co]):
    """Two streams of which the first has a key."""

    _inputs: _Inputs
    _with_window: Callable[[_Sides, WindowedStream], S_co]
    _key: Key

    def equal_to(
        self, key_selector: Selector[T2_co], key_type: TypeInformation | str | None = None, *more: str
    ) -> EqualTo[S_co]:
        """Set the key of the second stream's elements.

        It is a function of an element, fields by name, or an expression of ``pyarrow.compute`` over the fields.

        Raises:
            ProgramError: if it is none of these, a field is not there, or its type differs from that of the first key.
        """
        key = key_of("equal_to", self._inputs[1]._transformation, key_selector, key_type, more)
        check_types_of_keys("where", self._key, "equal_to", key)
        return EqualTo(self._inputs, self._with_window, (self._key, key))


@dataclass(frozen=True)
class EqualTo(Generic[S_co]):
    """Two streams that both have a key."""

    _inputs: _Inputs
    _with_window: Callable[[_Sides, WindowedStream], S_co]
    _keys: tuple[Key, Key]

    def window(self, assigner: WindowAssigner[Any, Any]) -> S_co:
        """Set the windows in which elements meet.

        Raises:
            ProgramError: if it is not a window assigner, or elements lack the timestamps that it needs.
        """
        first, second = (
            stream.map(OnSide(side), Types.PICKLED_BYTE_ARRAY()) for side, stream in enumerate(self._inputs)
        )
        # A join on columns does not use the elements with their sides.
        env = self._inputs[0].get_execution_environment()
        env.next_job.run_only_for_others(first._transformation, second._transformation)
        one, other = self._keys
        names = " = ".join(", ".join(key.columns) or name_of(key.select) for key in self._keys)
        key_type = next((key.type_info for key in self._keys if key.type_info != _ANY), None)
        keyed = first.union(second).key_by(KeyOfSide(one.select, other.select, names), key_type)
        first_node, second_node = (stream._transformation for stream in self._inputs)
        sides = KeyTransformation(first_node, one), KeyTransformation(second_node, other)
        return self._with_window(sides, keyed.window(assigner))


class _WithWindow(Generic[T1_co, T2_co]):
    """Two keyed streams in windows."""

    def __init__(self, sides: _Sides, windows: WindowedStream) -> None:
        self._sides = sides
        self._windows = windows

    def trigger(self, new_trigger: Trigger[Any, Any]) -> Self:
        """Set the trigger of the windows, in place of the assigner's own; it sees elements of both streams."""
        return type(self)(self._sides, copy(self._windows).trigger(new_trigger))

    def evictor(self, new_evictor: Evictor[Any, Any]) -> Self:
        """Set an evictor, which chooses the elements of both streams that the function sees."""
        return type(self)(self._sides, copy(self._windows).evictor(new_evictor))

    def allowed_lateness(self, new_lateness: Duration | Time | int) -> Self:
        """Keep windows for late elements until the watermark has passed their end by `new_lateness`."""
        return type(self)(self._sides, copy(self._windows).allowed_lateness(new_lateness))

    def _by_field(self) -> _Sides:
        """Both streams, keyed by fields if their selectors return these unchanged."""
        one, other = (
            KeyTransformation(side.inputs[0], side.key.by_field(side.type_info, several=True)) for side in self._sides
        )
        return one, other

    def _applied(
        self, name: str, function: WindowFunction[Any, Any, Any, Any], kind: TypeInformation | None
    ) -> DataStream[Any]:
        return self._windows.apply(function, kind).name(name)


class JoinedWithWindow(_WithWindow[T1_co, T2_co]):
    """Two streams joined in windows."""

    def apply(
        self,
        function: JoinFunction[T1_co, T2_co, OUT] | FlatJoinFunction[T1_co, T2_co, OUT] | Callable[[T1_co, T2_co], OUT],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Call a function with each pair that meets; results have the last millisecond of the window.

        If both streams have declared types with fields, keys are fields, and windows tumble, the join runs on columns;
        and so does the function, if its results are the same there.

        Raises:
            ProgramError: if it is not a function of two elements.
        """
        if not isinstance(function, JoinFunction | FlatJoinFunction) and not callable(function):
            raise ProgramError(f"apply needs a JoinFunction, a FlatJoinFunction or a function, not {function!r}")
        windows, env = self._windows, self._windows.get_execution_environment()
        configured: Any = env.as_configured(function)
        pairs: OfPairs
        if isinstance(configured, FlatJoinFunction):
            pairs = FlatJoinsPairs(configured)
        else:
            own = configured if isinstance(configured, JoinFunction) else CallableJoin(configured)
            pairs = JoinsPairs(own)
        sides = self._by_field()
        types = [side.type_info for side in sides]
        pairs.obstacle = obstacle_of_function(pairs, types, [side.key for side in sides]) or obstacle_of(
            windows._assigner, windows._trigger, windows._evictor
        )
        panes = panes_of(windows._assigner)
        if pairs.obstacle is None and windows._lateness_ms:
            pairs.obstacle = (
                "each late element has its window joined again; without allowed_lateness it runs on columns"
            )
        if pairs.obstacle is None and panes is not None and panes.per_window > 1:
            pairs.obstacle = "columns put sliding windows together in another order; tumbling ones run on columns"
        if pairs.obstacle is not None or panes is None:
            return self._applied("join", pairs, output_type)
        gives = pair_function(pairs, types, output_type or Types.PICKLED_BYTE_ARRAY())
        operation = WindowJoinOperation(windows._assigner, panes, 0, "inner", gives)
        return DataStream(env, OperationTransformation("join", sides, output_type, operation))

    def select(
        self, *columns: JoinedColumn, how: Literal["inner", "left", "right", "full"] = "inner"
    ) -> DataStream[Row]:
        """Give some fields of each pair that meets: ``select(left("id"), right("price").alias("paid"))``.

        The results are rows of these fields, with the last millisecond of the window. If keys are fields, by name, and
        windows are tumbling or sliding ones of event time, the join runs on columns. Not in Flink.

        Args:
            columns: the fields, made with ``left``, ``right`` and ``window`` of :mod:`eventide.joins`.
            how: whether elements that meet none in their window are emitted too, with None for the fields of the other
                stream: those of the ``left``, of the ``right``, of both (``full``), or none (``inner``).

        Raises:
            ProgramError: if one is not a field of elements whose type is declared, two have one name, or the kind of
                join is none of these.
        """
        if how not in KEEPS:
            raise ProgramError(f"select: how is one of {', '.join(map(repr, KEEPS))}, not {how!r}")
        windows, sides = self._windows, self._by_field()
        inputs = [side.inputs[0] for side in sides]
        selection = _selection_of(columns, inputs, has_window=windows._assigner.has_time_windows)
        panes = panes_of(windows._assigner)
        obstacle = (
            obstacle_of_keys([side.key for side in sides], [side.type_info for side in sides])
            or obstacle_of_fields(selection)
            or obstacle_of(windows._assigner, windows._trigger, windows._evictor)
        )
        if obstacle is not None or panes is None:
            function = SelectsOfWindow(selection, how, obstacle or "")
            return self._applied("join", function, selection.type_info)
        operation = WindowJoinOperation(windows._assigner, panes, windows._lateness_ms, how, selection)
        operator = OperationTransformation("join", sides, selection.type_info, operation)
        return DataStream(windows.get_execution_environment(), operator)


class CoGroupedWithWindow(_WithWindow[T1_co, T2_co]):
    """Two streams co-grouped in windows."""

    def apply(
        self, function: CoGroupFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Call a function with all elements of both streams for a key and window.

        Raises:
            ProgramError: if it is not a ``CoGroupFunction``.
        """
        check_is(function, CoGroupFunction, "apply needs a CoGroupFunction")
        return self._applied("co_group", CoGroups(function), output_type)


JoinedStreams._with_window = JoinedWithWindow
CoGroupedStreams._with_window = CoGroupedWithWindow


class IntervalJoin(Generic[T1_co, T2_co]):
    """Two keyed streams to be joined by time. Flink: ``KeyedStream.IntervalJoin``; PyFlink has none."""

    def __init__(self, left: DataStream[T1_co], right: DataStream[T2_co]) -> None:
        if not isinstance(right, DataStream) or not isinstance(right._transformation, KeyTransformation):
            raise ProgramError(f"interval_join needs another keyed stream, not {right!r}; call key_by on it")
        check_one_environment("a join", left, right)
        for stream in (left, right):
            if not stream._transformation.has_timestamps:
                raise ProgramError(
                    "an interval join needs event time, and one of the streams has no timestamps; call "
                    "assign_timestamps_and_watermarks before"
                )
        self._left = left
        self._right = right

    def between(
        self, lower_bound: Duration | Time | int, upper_bound: Duration | Time | int
    ) -> IntervalJoined[T1_co, T2_co]:
        """Bound how much later a right element may be than its left one, both bounds inclusive.

        Either may be negative, for earlier; a number is milliseconds.

        Raises:
            ProgramError: if the first is above the second, or one is not a length of time.
        """
        lower, upper = to_ms(lower_bound, "lower bound"), to_ms(upper_bound, "upper bound")
        if lower > upper:
            raise ProgramError(f"the lower bound of an interval join, {lower} ms, is above the upper one, {upper} ms")
        return IntervalJoined(self._left, self._right, Bounds(lower, upper))

    def at_any_time(self) -> IntervalJoined[T1_co, T2_co]:
        """Join any two elements with equal keys, however far apart: none is late, and all are kept for ever.

        Results have the later time of the two. Not in Flink's DataStream API; Flink SQL: a regular inner join.
        """
        return IntervalJoined(self._left, self._right, ANY_TIME)


class IntervalJoined(Generic[T1_co, T2_co]):
    """Two keyed streams joined by an interval of time. Flink: ``KeyedStream.IntervalJoined``."""

    def __init__(self, left: DataStream[T1_co], right: DataStream[T2_co], bounds: Bounds) -> None:
        self._inputs: tuple[DataStream[Any], DataStream[Any]] = left, right
        self._bounds = bounds
        self._excludes_lower = self._excludes_upper = False
        self._late_tags: list[OutputTag | None] = [None, None]

    def lower_bound_exclusive(self) -> Self:
        """Make the lower bound exclusive."""
        self._check_bounds("lower_bound_exclusive")
        self._excludes_lower = True
        return self

    def upper_bound_exclusive(self) -> Self:
        """Make the upper bound exclusive."""
        self._check_bounds("upper_bound_exclusive")
        self._excludes_upper = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send left elements that the watermark has passed to a side output; they are counted either way."""
        return self._late(0, output_tag)

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send right elements that the watermark has passed to a side output; they are counted either way."""
        return self._late(1, output_tag)

    def process(
        self,
        process_join_function: ProcessJoinFunction[T1_co, T2_co, OUT]
        | Callable[[T1_co, T2_co, ProcessJoinFunction.Context], Iterable[OUT] | None],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Call a function with each pair that meets; results have the later time of the two.

        It is a ``ProcessJoinFunction``, or a function of both elements and the context that returns a list of results.
        If both streams have declared types with fields, and keys are fields, the join runs on columns; and so does the
        function, if its results are the same there.

        Raises:
            ProgramError: if it is neither, or the bounds leave nothing between them.
        """
        env = self._inputs[0].get_execution_environment()
        if not isinstance(process_join_function, ProcessJoinFunction) and not callable(process_join_function):
            raise ProgramError(
                f"process needs a ProcessJoinFunction, or a function of two elements, not {process_join_function!r}"
            )
        configured: Any = env.as_configured(process_join_function)
        function = configured if isinstance(configured, ProcessJoinFunction) else CallableProcessJoin(configured)
        check_keys_of(*self._inputs)
        return self._operator(function, output_type)

    def select(self, *columns: JoinedColumn) -> DataStream[Row]:
        """Give some fields of each pair that meets: ``select(left("id"), right("price").alias("paid"))``.

        If both streams are keyed by fields, by name, the join runs on columns. The results are rows of these fields,
        with the later time of the two elements. Not in Flink.

        Raises:
            ProgramError: if one is not a field of elements whose type is declared, two have one name, or the bounds
                leave nothing between them.
        """
        left, right = (stream._transformation for stream in self._inputs)
        keys = [node.key for node in (left, right) if isinstance(node, KeyTransformation)]
        if all(key.columns for key in keys) and keys[0].type_info != keys[1].type_info:
            raise ProgramError(
                f"keys of one type can be equal; on the left {', '.join(keys[0].columns)} is {keys[0].type_info}, on "
                f"the right {', '.join(keys[1].columns)} is {keys[1].type_info}; declare the same type for both"
            )
        selection = _selection_of(columns, (left, right), has_window=False)
        return self._operator(selection, selection.type_info)

    def _operator(self, gives: ProcessJoinFunction | Selection, output_type: TypeInformation | None) -> DataStream[Any]:
        lower_ms, upper_ms = self._bounds.lower_ms, self._bounds.upper_ms
        bounds = replace(
            self._bounds, lower_ms=lower_ms + self._excludes_lower, upper_ms=upper_ms - self._excludes_upper
        )
        if bounds.lower_ms > bounds.upper_ms:
            raise ProgramError("with exclusive bounds there is no time left between them, so nothing could ever join")
        tags = [None if tag is None else tag.tag_id for tag in self._late_tags]
        operation = IntervalJoinOperation(bounds, gives, (tags[0], tags[1]), output_type or Types.PICKLED_BYTE_ARRAY())
        if tags[0] is not None and tags[0] == tags[1] and self._inputs[0].get_type() != self._inputs[1].get_type():
            raise ProgramError(
                f"late elements of both sides go to {tags[0]!r}, and they have different types; take two OutputTags"
            )
        late = zip(self._late_tags, self._inputs, strict=True)
        side_outputs = {tag.tag_id: stream.get_type() for tag, stream in late if tag is not None}
        inputs = tuple(stream._transformation for stream in self._inputs)
        operator = OperationTransformation(operation.kind, inputs, output_type, operation, side_outputs)
        return DataStream(self._inputs[0].get_execution_environment(), operator)

    def _check_bounds(self, method: str) -> None:
        if self._bounds.are_open:
            raise ProgramError(f"{method}: a join at_any_time has no bounds, and nothing is late for it; leave it out")

    def _late(self, side: int, tag: OutputTag) -> Self:
        self._check_bounds(f"side_output_{('left', 'right')[side]}_late_data")
        if not isinstance(tag, OutputTag):
            raise ProgramError(f"late data goes to an OutputTag, not to {tag!r}")
        self._late_tags[side] = tag
        return self


class AsOfJoin(Generic[T1_co, T2_co]):
    """A keyed stream joined with another one, whose rows are valid from their times on. Not in PyFlink.

    An element is emitted, with its own timestamp, once the watermark has reached it: with the row of its key that has
    the latest time up to its own, and among rows of one time with the last that arrived. A row that arrives after the
    watermark has passed its time is valid for the elements that still wait.

    >>> from eventide.common import Row, Types, WatermarkStrategy
    >>> from eventide.joins import left, right
    >>> from eventide.testing import local_environment
    >>> env, names = local_environment(), ["currency", "at", "amount"]
    >>> kind = Types.ROW_NAMED(names, [Types.STRING(), Types.LONG(), Types.LONG()])
    >>> by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    >>> orders, rates = (
    ...     env.from_collection([Row(**dict(zip(names, row))) for row in rows], kind)
    ...     .assign_timestamps_and_watermarks(by_time)
    ...     .key_by("currency")
    ...     for rows in ([("EUR", 5, 10), ("EUR", 9, 20)], [("EUR", 1, 114), ("EUR", 7, 116)])
    ... )
    >>> priced = orders.as_of_join(rates).select(left("amount"), right("amount").alias("rate"))
    >>> for row in priced.execute_and_collect():
    ...     print(row.amount, row.rate)
    10 114
    20 116
    """

    def __init__(self, elements: DataStream[T1_co], versions: DataStream[T2_co]) -> None:
        if not isinstance(versions, DataStream) or not isinstance(versions._transformation, KeyTransformation):
            raise ProgramError(f"as_of_join needs another keyed stream, not {versions!r}; call key_by on it")
        check_one_environment("a join", elements, versions)
        nodes = elements._transformation, versions._transformation
        if not all(node.has_timestamps for node in nodes):
            raise ProgramError(
                "an as-of join needs event time, and one of the streams has no timestamps; call "
                "assign_timestamps_and_watermarks before"
            )
        keys = [node.key for node in nodes if isinstance(node, KeyTransformation)]
        kinds = [key.type_info for key in keys]
        if all(key.columns for key in keys) and kinds[0] != kinds[1]:
            raise ProgramError(
                f"keys of one type can be equal; those of the elements are {kinds[0]}, those of the rows {kinds[1]}; "
                "declare the same type for both"
            )
        self._inputs: _Inputs = elements, versions
        self._lateness_ms = 0
        self._late: OutputTag | None = None

    def allowed_lateness(self, lateness: Duration | Time | int) -> Self:
        """Join elements that are late by up to `lateness`, at once; rows are kept longer by as much."""
        self._lateness_ms = to_ms(lateness, "allowed lateness")
        if self._lateness_ms < 0:
            raise ProgramError(f"allowed lateness: expected 0 ms or more, got {self._lateness_ms} ms")
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Send elements that are later than that to a side output; they are counted either way."""
        check_is(output_tag, OutputTag, "late data goes to an OutputTag")
        self._late = output_tag
        return self

    def select(self, *columns: JoinedColumn, how: Literal["inner", "left"] = "inner") -> DataStream[Row]:
        """Give some fields of each element and its row: ``select(left("id"), right("price").alias("paid"))``.

        Where both streams are keyed by fields, by name, the join runs on columns.

        Args:
            columns: the fields, made with ``left`` and ``right`` of :mod:`eventide.joins`.
            how: whether elements without a row are emitted too, with None for its fields (``left``), or none
                (``inner``).

        Raises:
            ProgramError: if one is not a field of elements whose type is declared, two have one name, or the kind of
                join is neither.
        """
        left, right = (stream._transformation for stream in self._inputs)
        selection = _selection_of(columns, (left, right), has_window=False)
        return self._joined(SelectsOfTwo(selection), how, selection.type_info, selection)

    def apply(
        self,
        function: JoinFunction[T1_co, T2_co | None, OUT] | Callable[[T1_co, T2_co | None], OUT],
        output_type: TypeInformation | None = None,
        how: Literal["inner", "left"] = "inner",
    ) -> DataStream[OUT]:
        """Call a function with each element and its row; with ``left``, the row may be None.

        Raises:
            ProgramError: if it is neither a ``JoinFunction`` nor a function, or the kind of join is neither.
        """
        if not isinstance(function, JoinFunction) and not callable(function):
            raise ProgramError(f"apply needs a JoinFunction, or a function of two elements, not {function!r}")
        own = function if isinstance(function, JoinFunction) else CallableJoin(function)
        return self._joined(own, how, output_type, None)

    def _joined(
        self, function: JoinFunction[Any, Any, Any], how: str, kind: TypeInformation | None, gives: Selection | None
    ) -> DataStream[Any]:
        if how not in ("inner", "left"):
            raise ProgramError(f"an as-of join is 'inner' or 'left', not {how!r}")
        env, tag = self._inputs[0].get_execution_environment(), None if self._late is None else self._late.tag_id
        join = AsOf(how == "left", self._lateness_ms)
        processing = JoiningAsOf(JoinsAsOf(function, join, self._late))
        operation = AsOfOperation(processing, kind or _ANY, how=join, gives=gives, late_tag=tag)
        side_outputs = {} if tag is None else {tag: self._inputs[0].get_type()}
        inputs = tuple(stream._transformation for stream in self._inputs)
        return DataStream(env, OperationTransformation(operation.kind, inputs, kind, operation, side_outputs))


def _selection_of(columns: Sequence[Any], inputs: Sequence[Transformation], *, has_window: bool) -> Selection:
    """The fields of a result, found in the elements of two streams.

    Raises:
        ProgramError: if there are none, one is not a field, the type of the elements is not declared, a field is not
            there, a window is selected in a join without windows, or two fields have one name.
    """
    strange = [column for column in columns if not isinstance(column, JoinedColumn)]
    if strange or not columns:
        what = repr(strange[0]) if strange else "nothing"
        raise ProgramError(f"select takes fields such as left('id') and right('price') of eventide.joins, not {what}")
    if not has_window and any(column.side is None for column in columns):
        raise ProgramError("select: window() is for joins in windows; an interval join has none")
    names = [column.output_name for column in columns]
    check_named_once(names)
    types, places = zip(*(_field_of(column, inputs) for column in columns), strict=True)
    return Selection(tuple(columns), places, Types.ROW_NAMED(names, list(types)))


def _field_of(column: JoinedColumn, inputs: Sequence[Transformation]) -> tuple[TypeInformation, Any]:
    """The type of a field, and its place in an element."""
    if column.side is None:
        return Types.TIME_WINDOW(), None
    kind = type_with_fields(inputs[column.side], repr(column))
    found = field_type(kind, column.column, repr(column))
    return found, column.column if isinstance(kind, RowTypeInfo) else kind.field_names.index(column.column)
