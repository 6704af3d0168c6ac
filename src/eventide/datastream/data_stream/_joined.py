"""Joins of two streams: in windows, as co-groups, and by an interval of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from eventide.common._ms import to_ms
from eventide.common.time import Duration, Time
from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.data_stream._stream import DataStream
from eventide.datastream.data_stream._windowed import WindowedStream
from eventide.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    ProcessJoinFunction,
    WindowFunction,
)
from eventide.datastream.output_tag import OutputTag
from eventide.datastream.window import Evictor, Trigger, WindowAssigner
from eventide.errors import ProgramError
from eventide.plan.graph import KeyTransformation, OperatorTransformation
from eventide.plan.identity import name_of
from eventide.runtime.joins.interval import Bounds, IntervalJoinOperation
from eventide.runtime.joins.windowed import CallableJoin, CoGroups, FlatJoinsPairs, JoinsPairs, KeyOfSide, OnSide

_F = TypeVar("_F")
Selector = Callable[[Any], Any] | KeySelector


class _Pair:
    """Two streams that are about to be joined; what they are joined by comes step by step."""

    _with_window: type[_WithWindow]

    def __init__(self, input1: DataStream, input2: DataStream) -> None:
        if not isinstance(input2, DataStream):
            raise ProgramError(f"a stream is joined with another stream, not with {input2!r}")
        if input1.get_execution_environment() is not input2.get_execution_environment():
            raise ProgramError("streams of one environment can be joined; these were made by two")
        self._inputs = input1, input2

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Where:
        """Say what the key of the first stream's elements is.

        Raises:
            ProgramError: if it is no function.
        """
        return Where(self._inputs, self._with_window, _called("where", key_selector), key_type)


class JoinedStreams(_Pair):
    """Two streams to be joined in windows. Flink: ``JoinedStreams``; PyFlink has none.

    Elements meet if their keys are equal and they are in one window. Where one side of a window has nothing, nothing
    comes out: an inner join.
    """


class CoGroupedStreams(_Pair):
    """Two streams to be co-grouped in windows. Flink: ``CoGroupedStreams``; PyFlink has none."""


class Where:
    """Two streams of which the first has a key."""

    def __init__(
        self,
        inputs: tuple[DataStream, DataStream],
        with_window: type[_WithWindow],
        select: Callable[[Any], Any],
        key_type: TypeInformation | None,
    ) -> None:
        self._inputs = inputs
        self._with_window = with_window
        self._select = select
        self._key_type = key_type

    def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> EqualTo:
        """Say what the key of the second stream's elements is.

        Raises:
            ProgramError: if it is no function, or another type was declared for it than for that of the first.
        """
        if None not in (key_type, self._key_type) and key_type != self._key_type:
            raise ProgramError(f"keys of one type can be equal; where has {self._key_type}, equal_to has {key_type}")
        selects = self._select, _called("equal_to", key_selector)
        return EqualTo(self._inputs, self._with_window, selects, key_type or self._key_type)


class EqualTo:
    """Two streams that both have a key."""

    def __init__(
        self,
        inputs: tuple[DataStream, DataStream],
        with_window: type[_WithWindow],
        selects: tuple[Callable[[Any], Any], Callable[[Any], Any]],
        key_type: TypeInformation | None,
    ) -> None:
        self._inputs = inputs
        self._with_window = with_window
        self._selects = selects
        self._key_type = key_type

    def window(self, assigner: WindowAssigner[Any, Any]) -> Any:
        """Say in which windows elements meet.

        Raises:
            ProgramError: if it is no window assigner, or elements have no time that it needs.
        """
        first, second = (
            stream.map(OnSide(side), Types.PICKLED_BYTE_ARRAY()) for side, stream in enumerate(self._inputs)
        )
        names = " = ".join(map(name_of, self._selects))
        keyed = first.union(second).key_by(KeyOfSide(*self._selects, names), self._key_type)
        return self._with_window(keyed.window(assigner))


class _WithWindow:
    """Two streams in windows."""

    def __init__(self, windows: WindowedStream) -> None:
        self._windows = windows

    def trigger(self, new_trigger: Trigger[Any, Any]) -> Self:
        """Set when windows fire, in place of the assigner's own rule; it sees elements of both streams."""
        self._windows.trigger(new_trigger)
        return self

    def evictor(self, new_evictor: Evictor[Any, Any]) -> Self:
        """Set which elements of a window, of both streams, the function sees."""
        self._windows.evictor(new_evictor)
        return self

    def allowed_lateness(self, new_lateness: Duration | Time | int) -> Self:
        """Keep each window for late elements until the watermark has passed its end by so much."""
        self._windows.allowed_lateness(new_lateness)
        return self

    def _own(self, function: _F) -> _F:
        return self._windows.get_execution_environment().own_function(function)

    def _applied(
        self, name: str, function: WindowFunction[Any, Any, Any, Any], kind: TypeInformation | None
    ) -> DataStream:
        return self._windows.apply(function, kind).name(name)


class JoinedWithWindow(_WithWindow):
    """Two streams joined in windows."""

    def apply(
        self,
        function: JoinFunction | FlatJoinFunction | Callable[[Any, Any], Any],
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Call a function with each two elements that meet; what comes out has the last millisecond of the window.

        Raises:
            ProgramError: if it is no function of two elements.
        """
        if isinstance(function, FlatJoinFunction):
            return self._applied("join", FlatJoinsPairs(self._own(function)), output_type)
        if not isinstance(function, JoinFunction):
            if not callable(function):
                raise ProgramError(f"apply needs a JoinFunction, a FlatJoinFunction or a function, not {function!r}")
            function = CallableJoin(function)
        return self._applied("join", JoinsPairs(self._own(function)), output_type)


class CoGroupedWithWindow(_WithWindow):
    """Two streams co-grouped in windows."""

    def apply(self, function: CoGroupFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Call a function with all that both streams have for a key and window.

        Raises:
            ProgramError: if it is no ``CoGroupFunction``.
        """
        if not isinstance(function, CoGroupFunction):
            raise ProgramError(f"apply needs a CoGroupFunction, not {function!r}")
        return self._applied("co_group", CoGroups(self._own(function)), output_type)


JoinedStreams._with_window = JoinedWithWindow
CoGroupedStreams._with_window = CoGroupedWithWindow


class IntervalJoin:
    """Two keyed streams to be joined by time. Flink: ``KeyedStream.IntervalJoin``; PyFlink has none."""

    def __init__(self, left: DataStream, right: DataStream) -> None:
        if not isinstance(right, DataStream) or not isinstance(right._transformation, KeyTransformation):
            raise ProgramError(f"interval_join needs another keyed stream, not {right!r}; call key_by on it")
        if left.get_execution_environment() is not right.get_execution_environment():
            raise ProgramError("streams of one environment can be joined; these were made by two")
        for stream in (left, right):
            if not stream._transformation.has_timestamps:
                raise ProgramError(
                    "an interval join needs event time, and one of the streams has no timestamps; call "
                    "assign_timestamps_and_watermarks before"
                )
        self._left = left
        self._right = right

    def between(self, lower_bound: Duration | Time | int, upper_bound: Duration | Time | int) -> IntervalJoined:
        """Say from how much later to how much later than its left one a right element may be, both inclusive.

        Either may be negative, for earlier; a number is milliseconds.

        Raises:
            ProgramError: if the first is above the second, or one is no length of time.
        """
        lower, upper = to_ms(lower_bound, "lower bound"), to_ms(upper_bound, "upper bound")
        if lower > upper:
            raise ProgramError(f"the lower bound of an interval join, {lower} ms, is above the upper one, {upper} ms")
        return IntervalJoined(self._left, self._right, lower, upper)


class IntervalJoined:
    """Two keyed streams joined by an interval of time. Flink: ``KeyedStream.IntervalJoined``."""

    def __init__(self, left: DataStream, right: DataStream, lower_ms: int, upper_ms: int) -> None:
        self._inputs = left, right
        self._lower_ms = lower_ms
        self._upper_ms = upper_ms
        self._late_tags: list[OutputTag | None] = [None, None]

    def lower_bound_exclusive(self) -> Self:
        """Have the lower bound itself not count any more."""
        self._lower_ms += 1
        return self

    def upper_bound_exclusive(self) -> Self:
        """Have the upper bound itself not count any more."""
        self._upper_ms -= 1
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Send left elements that come behind the watermark to a side output; they are counted either way."""
        return self._late(0, output_tag)

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Send right elements that come behind the watermark to a side output; they are counted either way."""
        return self._late(1, output_tag)

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Call a function with each two elements that meet; what comes out has the later time of the two.

        Raises:
            ProgramError: if it is no ``ProcessJoinFunction``, or the bounds leave nothing between them.
        """
        if not isinstance(process_join_function, ProcessJoinFunction):
            raise ProgramError(f"process needs a ProcessJoinFunction, not {process_join_function!r}")
        if self._lower_ms > self._upper_ms:
            raise ProgramError("with exclusive bounds there is no time left between them, so nothing could ever join")
        environment = self._inputs[0].get_execution_environment()
        tags = [None if tag is None else tag.tag_id for tag in self._late_tags]
        operation = IntervalJoinOperation(
            Bounds(self._lower_ms, self._upper_ms),
            environment.own_function(process_join_function),
            (tags[0], tags[1]),
            output_type or Types.PICKLED_BYTE_ARRAY(),
        )
        late = zip(self._late_tags, self._inputs, strict=True)
        side_outputs = {tag.tag_id: stream.get_type() for tag, stream in late if tag is not None}
        inputs = tuple(stream._transformation for stream in self._inputs)
        operator = OperatorTransformation(operation.kind, inputs, output_type, operation, side_outputs)
        return DataStream(environment, operator)

    def _late(self, side: int, tag: OutputTag) -> Self:
        if not isinstance(tag, OutputTag):
            raise ProgramError(f"late data goes to an OutputTag, not to {tag!r}")
        self._late_tags[side] = tag
        return self


def _called(where: str, selector: Selector) -> Callable[[Any], Any]:
    select = selector.get_key if isinstance(selector, KeySelector) else selector
    if not callable(select):
        raise ProgramError(f"{where} needs a KeySelector or a function of an element, not {selector!r}")
    return select
