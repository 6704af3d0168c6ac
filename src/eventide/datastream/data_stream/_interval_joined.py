"""Interval joins: elements of two keyed streams that belong together in time."""

from __future__ import annotations

from typing import Any, Generic, Self

from eventide.api.functions import ProcessJoinFunction
from eventide.api.functions.output_tag import OutputTag
from eventide.common.ms import to_ms
from eventide.common.time import Duration, Time
from eventide.common.type_variables import OUT, T1_co, T2_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.types import Row
from eventide.datastream.data_stream._selection import selection_of
from eventide.datastream.data_stream.stream import DataStream
from eventide.errors import ProgramError
from eventide.joins import JoinedColumn
from eventide.plan.graph import KeyTransformation, OperationTransformation
from eventide.runtime.joins.interval import Bounds
from eventide.runtime.joins.planning import IntervalJoinOperation
from eventide.runtime.joins.selection import Selection


class IntervalJoin(Generic[T1_co, T2_co]):
    """Two keyed streams to be joined by time. Flink: ``KeyedStream.IntervalJoin``; PyFlink has none."""

    def __init__(self, left: DataStream[T1_co], right: DataStream[T2_co]) -> None:
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

    def between(
        self, lower_bound: Duration | Time | int, upper_bound: Duration | Time | int
    ) -> IntervalJoined[T1_co, T2_co]:
        """Say from how much later to how much later than its left one a right element may be, both inclusive.

        Either may be negative, for earlier; a number is milliseconds.

        Raises:
            ProgramError: if the first is above the second, or one is no length of time.
        """
        lower, upper = to_ms(lower_bound, "lower bound"), to_ms(upper_bound, "upper bound")
        if lower > upper:
            raise ProgramError(f"the lower bound of an interval join, {lower} ms, is above the upper one, {upper} ms")
        return IntervalJoined(self._left, self._right, lower, upper)


class IntervalJoined(Generic[T1_co, T2_co]):
    """Two keyed streams joined by an interval of time. Flink: ``KeyedStream.IntervalJoined``."""

    def __init__(self, left: DataStream[T1_co], right: DataStream[T2_co], lower_ms: int, upper_ms: int) -> None:
        self._inputs: tuple[DataStream[Any], DataStream[Any]] = left, right
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
        self, process_join_function: ProcessJoinFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Call a function with each two elements that meet; what comes out has the later time of the two.

        Raises:
            ProgramError: if it is no ``ProcessJoinFunction``, or the bounds leave nothing between them.
        """
        if not isinstance(process_join_function, ProcessJoinFunction):
            raise ProgramError(f"process needs a ProcessJoinFunction, not {process_join_function!r}")
        function = self._inputs[0].get_execution_environment().own_function(process_join_function)
        return self._operator(function, output_type)

    def select(self, *columns: JoinedColumn) -> DataStream[Row]:
        """Give some fields of each two elements that meet: ``select(left("id"), right("price").alias("paid"))``.

        Where both streams are keyed by fields, by name, the join runs on columns. What comes out are rows of these
        fields, with the later time of the two elements. Not in Flink.

        Raises:
            ProgramError: if one is no field of elements whose type is declared, two have one name, or the bounds leave
                nothing between them.
        """
        left, right = (stream._transformation for stream in self._inputs)
        keys = [node.key for node in (left, right) if isinstance(node, KeyTransformation)]
        if all(key.columns for key in keys) and keys[0].type_info != keys[1].type_info:
            raise ProgramError(
                f"keys of one type can be equal; on the left {', '.join(keys[0].columns)} is {keys[0].type_info}, on "
                f"the right {', '.join(keys[1].columns)} is {keys[1].type_info}; declare the same type for both"
            )
        selection = selection_of(columns, (left, right), has_window=False)
        return self._operator(selection, selection.type_info)

    def _operator(self, gives: ProcessJoinFunction | Selection, output_type: TypeInformation | None) -> DataStream[Any]:
        if self._lower_ms > self._upper_ms:
            raise ProgramError("with exclusive bounds there is no time left between them, so nothing could ever join")
        tags = [None if tag is None else tag.tag_id for tag in self._late_tags]
        operation = IntervalJoinOperation(
            Bounds(self._lower_ms, self._upper_ms),
            gives,
            (tags[0], tags[1]),
            output_type or Types.PICKLED_BYTE_ARRAY(),
        )
        if tags[0] is not None and tags[0] == tags[1] and self._inputs[0].get_type() != self._inputs[1].get_type():
            raise ProgramError(
                f"late elements of both sides go to {tags[0]!r}, and they have different types; take two OutputTags"
            )
        late = zip(self._late_tags, self._inputs, strict=True)
        side_outputs = {tag.tag_id: stream.get_type() for tag, stream in late if tag is not None}
        inputs = tuple(stream._transformation for stream in self._inputs)
        operator = OperationTransformation(operation.kind, inputs, output_type, operation, side_outputs)
        return DataStream(self._inputs[0].get_execution_environment(), operator)

    def _late(self, side: int, tag: OutputTag) -> Self:
        if not isinstance(tag, OutputTag):
            raise ProgramError(f"late data goes to an OutputTag, not to {tag!r}")
        self._late_tags[side] = tag
        return self
