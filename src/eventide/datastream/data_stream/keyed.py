"""The keyed stream: functions with state for each key, rolling aggregates, and windows by key."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from eventide._absent import says_what_is_absent
from eventide.api.functions import Function, KeyedProcessFunction, ReduceFunction, VectorizedKeyedProcessFunction
from eventide.api.functions.output_tag import OutputTag
from eventide.api.windows import (
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    GlobalWindow,
    GlobalWindows,
    TimeWindow,
    WindowAssigner,
)
from eventide.api.windows.triggers import check_count
from eventide.common.time import Duration, Time
from eventide.common.type_variables import IN, OUT, KEY_co, T_co, W
from eventide.common.typeinfo import TypeInformation
from eventide.datastream.data_stream.connected import processed
from eventide.datastream.data_stream.stream import DataStream, of_operation
from eventide.datastream.data_stream.windowed import WindowedStream, time_windows
from eventide.errors import ProgramError, check_is
from eventide.plan.graph import OperationTransformation
from eventide.runtime.chain.chained_operators import ChainedOperator
from eventide.runtime.columnar.sorting import Sorting, SortOperation, SortsByTime
from eventide.runtime.process.functions import ElementFunction, ProcessEach
from eventide.runtime.process.operation import RollingOperation
from eventide.runtime.process.rolling import Accumulates, Chooses, Rolling, higher, lower
from eventide.runtime.process.vectorized import VectorizedOperation
from eventide.runtime.state.key_context import is_rich

if TYPE_CHECKING:
    from eventide.datastream.data_stream.joined import AsOfJoin, IntervalJoin


def _refused(method: str) -> Callable[..., NoReturn]:
    """Make a method that is refused, because it would distribute the elements of a keyed stream differently."""

    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        """Refused: elements are distributed by their key."""
        raise ProgramError(f"the elements of a keyed stream are distributed by their key; call {method} before key_by")

    return refuse


@says_what_is_absent
class KeyedStream(DataStream[T_co], Generic[KEY_co, T_co]):
    """A stream partitioned by a key. Flink: ``KeyedStream``.

    A function that is opened (a class with an ``open`` of its own) may keep state for each key, so it runs after the
    shuffle; a plain one runs before it, in the tasks of the operator before it.
    """

    def process(  # type: ignore[override]
        self,
        func: KeyedProcessFunction[KEY_co, T_co, OUT] | VectorizedKeyedProcessFunction[OUT],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Hand each element to a function that has state and timers for each key; or many of them, as columns.

        Raises:
            ProgramError: if it is neither a ``KeyedProcessFunction`` nor a ``VectorizedKeyedProcessFunction``, or if
                it is the latter and has no output type.
        """
        if isinstance(func, VectorizedKeyedProcessFunction):
            return self._on_columns(func, output_type)
        check_is(func, KeyedProcessFunction, "process on a keyed stream needs a KeyedProcessFunction")
        return processed((self._transformation,), ProcessEach(func), self._env, output_type)

    def _on_columns(
        self, function: VectorizedKeyedProcessFunction, output_type: TypeInformation | None
    ) -> DataStream[Any]:
        if output_type is None or output_type.is_pickled:
            raise ProgramError(
                f"{type(function).__name__} gives columns, so the type of its results must be declared: "
                "process(function, output_type)"
            )
        operation = VectorizedOperation(function, output_type)
        return of_operation(self._env, (self._transformation,), operation, output_type)

    broadcast = _refused("broadcast")
    rebalance = _refused("rebalance")
    rescale = _refused("rescale")
    shuffle = _refused("shuffle")
    forward = _refused("forward")
    global_ = _refused("global_")

    def partition_custom(self, partitioner: object, key_selector: object) -> NoReturn:
        """Refused: elements are distributed by their key."""
        _refused("partition_custom")(self)

    def interval_join(self, other_stream: KeyedStream[KEY_co, IN]) -> IntervalJoin[T_co, IN]:
        """Join each element with elements of another keyed stream whose time lies within bounds around its own."""
        from eventide.datastream.data_stream.joined import IntervalJoin

        return IntervalJoin(self, other_stream)

    def sorted_by_event_time(self, late: OutputTag[T_co] | None = None) -> DataStream[T_co]:
        """Sort the elements of each key by their timestamps; each is emitted once the watermark has reached it.

        Elements of one key and one time stay in the order of their arrival. They wait in state until then. An element
        that arrives after the watermark has passed its time is late: it is dropped and counted, or goes to a side
        output. Not in Flink.

        Args:
            late: the side output of late elements, for ``get_side_output`` of the result.

        Raises:
            ProgramError: if ``late`` is not an OutputTag.

        >>> from eventide.common import Types, WatermarkStrategy
        >>> from eventide.testing import local_environment
        >>> stream = local_environment().from_collection([("a", 3), ("a", 1), ("a", 2)])
        >>> by_second = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda e, _: e[1])
        >>> keyed = stream.assign_timestamps_and_watermarks(by_second).key_by(lambda e: e[0], Types.STRING())
        >>> list(keyed.sorted_by_event_time().execute_and_collect())
        [('a', 1), ('a', 2), ('a', 3)]
        """
        if late is not None:
            check_is(late, OutputTag, "late elements go to an OutputTag")
        kind, tag = self.get_type(), None if late is None else late.tag_id
        operation = SortOperation(Sorting(SortsByTime(late)), kind, late_tag=tag)
        side_outputs = {} if tag is None else {tag: kind}
        operator = OperationTransformation(operation.kind, (self._transformation,), kind, operation, side_outputs)
        return DataStream(self._env, operator)

    def as_of_join(self, versions: KeyedStream[KEY_co, IN]) -> AsOfJoin[T_co, IN]:
        """Join each element with the row of another keyed stream that was valid at its time.

        A row is valid from its time on, until the next row of its key. Not in Flink's DataStream API; Flink SQL: a
        temporal join by event time.
        """
        from eventide.datastream.data_stream.joined import AsOfJoin

        return AsOfJoin(self, versions)

    def reduce(self, func: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co]) -> DataStream[T_co]:
        """Combine each element with the value of its key so far, and emit the result; in batch mode, only the last.

        Raises:
            ProgramError: if it is not a function of two values.
        """
        return self._rolling("reduce", ReduceFunction.of(self._env.as_configured(func)))

    def sum(self, position_to_sum: int | str = 0) -> DataStream[T_co]:
        """Add up one field of all elements of a key so far; the other fields stay those of its first element.

        A field is the place in a tuple, list or row, or a name; of a single value, it is 0.
        """
        field = self._field("sum", position_to_sum)
        return self._rolling(f"sum of {field}", Accumulates(operator.add, field))

    def min(self, position_to_min: int | str = 0) -> DataStream[T_co]:
        """Keep the lowest value of one field so far; the other fields stay those of the key's first element."""
        field = self._field("min", position_to_min)
        return self._rolling(f"min of {field}", Accumulates(lower, field))

    def max(self, position_to_max: int | str = 0) -> DataStream[T_co]:
        """Keep the highest value of one field so far; the other fields stay those of the key's first element."""
        field = self._field("max", position_to_max)
        return self._rolling(f"max of {field}", Accumulates(higher, field))

    def min_by(self, position_to_min_by: int | str = 0, first: bool = True) -> DataStream[T_co]:
        """Keep the whole element with the lowest value of one field; among equal ones, the first or the last."""
        field = self._field("min_by", position_to_min_by)
        return self._rolling(f"min_by of {field}", Chooses(field, highest=False, first=first))

    def max_by(self, position_to_max_by: int | str = 0, first: bool = True) -> DataStream[T_co]:
        """Keep the whole element with the highest value of one field; among equal ones, the first or the last."""
        field = self._field("max_by", position_to_max_by)
        return self._rolling(f"max_by of {field}", Chooses(field, highest=True, first=first))

    def _called(
        self,
        name: str,
        kind: type[Function],
        step: Callable[..., ChainedOperator],
        func: object,
        output_type: TypeInformation | None,
    ) -> DataStream[Any]:
        """Call a function that is opened after the shuffle, where it has the state of its key."""
        if not (is_rich(func) and isinstance(func, kind)):
            return super()._called(name, kind, step, func, output_type)
        called = ElementFunction(func, f"keyed {name}")
        return processed((self._transformation,), called, self._env, output_type)

    def _rolling(self, kind: str, function: ReduceFunction[Any]) -> DataStream[T_co]:
        rolling = Rolling.of(function, f"rolling {kind}", self.get_type())
        return processed((self._transformation,), rolling, self._env, self.get_type(), RollingOperation)

    def _field(self, method: str, field: int | str) -> int | str:
        if isinstance(field, bool) or not isinstance(field, int | str):
            raise ProgramError(f"{method} needs the position or the name of a field, not {field!r}")
        return field

    def window(self, window_assigner: WindowAssigner[T_co, W]) -> WindowedStream[KEY_co, T_co, W]:
        """Put the elements of each key into windows."""
        return WindowedStream(self._env, self._transformation, window_assigner)

    def time_window(
        self, size: Duration | Time | int, slide: Duration | Time | int | None = None
    ) -> WindowedStream[KEY_co, T_co, TimeWindow]:
        """Windows of ``size``, one every ``slide`` if there is one, of the environment's time characteristic.

        Flink's older name: ``window`` says which kind of time is meant.
        """
        return self.window(time_windows(self._env.get_stream_time_characteristic(), size, slide))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[KEY_co, T_co, GlobalWindow]:
        """Windows of ``size`` elements of a key; with a ``slide``, the last ``size`` after every ``slide`` elements.

        They fire as in Flink: a sliding window fires already after its first ``slide`` elements. (PyFlink's windows
        wait until they are full, and so does ``window(CountSlidingWindowAssigner.of(size, slide))`` here.)
        """
        if not slide:
            return self.window(CountTumblingWindowAssigner.of(size))
        check_count(size, "count window size")
        check_count(slide, "count window slide")
        windows = self.window(GlobalWindows.create())
        return windows.trigger(CountTrigger.of(slide)).evictor(CountEvictor.of(size))
