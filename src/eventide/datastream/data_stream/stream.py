"""The stream: elements of one type, on which functions are chained."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from eventide._absent import says_what_is_absent
from eventide.api.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
)
from eventide.api.functions.output_tag import DEAD_LETTER, OutputTag
from eventide.api.functions.timestamps import OlderAssigner, older_strategy
from eventide.api.windows import TimeWindow, WindowAssigner
from eventide.common.accepted import level_of_the_program
from eventide.common.column_expression import ColumnExpression, is_expression
from eventide.common.execution_config import ExecutionConfig, checked_parallelism
from eventide.common.job import JobClient
from eventide.common.time import Duration, Time
from eventide.common.timestamp_assigner import ExpressionAssigner, FunctionAssigner
from eventide.common.type_variables import IN, OUT, K, T, T_co, W
from eventide.common.typeinfo import (
    CompositeTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from eventide.common.types import Row
from eventide.common.watermark_strategy import WatermarkSpec, WatermarkStrategy, spec_of
from eventide.connectors.file_system import FileSink
from eventide.connectors.sink import CollectSink, DataFrameSink, PrintSink, Sink
from eventide.datastream._hints import SinkHints, StreamHints
from eventide.errors import ProgramError, check_is
from eventide.plan.graph import (
    AssignTransformation,
    FunctionTransformation,
    KeyTransformation,
    OperationTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
    why_nothing_is_bad,
    why_without_parallelism,
)
from eventide.runtime.chain.batch_operators import BatchForm, FilterBatches, FlatMapBatches, MapBatches, on_arrow
from eventide.runtime.chain.chained_operators import ChainedOperator, Filter, FlatMap, Map, Process, Projection
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.exchange.partitioners import (
    BroadcastPartitioner,
    CustomPartitioner,
    GlobalPartitioner,
    RebalancePartitioner,
    SelectingPartitioner,
    StreamPartitioner,
)
from eventide.runtime.process.operation import BROADCAST, Redistribution
from eventide.runtime.tasks.operator import Key, Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eventide.api.state import MapStateDescriptor
    from eventide.datastream.data_stream.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
    from eventide.datastream.data_stream.joined import CoGroupedStreams, JoinedStreams
    from eventide.datastream.data_stream.keyed import KeyedStream
    from eventide.datastream.data_stream.windowed import AllWindowedStream
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(SinkHints):
    """A sink of the program, which can be named. Flink: ``DataStreamSink``."""

    def __init__(self, transformation: SinkTransformation) -> None:
        self._transformation = transformation

    def name(self, name: str) -> Self:
        """Name the sink."""
        self._transformation.name = name
        return self

    def uid(self, uid: str) -> Self:
        """Give the sink a unique id in the program, which the checkpoint remembers.

        A sink keeps no state, so a job can continue with other sinks, or other ids.
        """
        self._transformation.uid = uid
        return self


class CloseableIterator(Generic[T_co]):
    """An iterator over the elements that a job collects, as they arrive. Closing it cancels the job.

    Use it in a ``with`` block, or run it to its end.
    """

    def __init__(self, client: JobClient) -> None:
        self._client = client
        self._elements: Iterator[T_co] = client.collected()

    def __iter__(self) -> Iterator[T_co]:
        return self

    def __next__(self) -> T_co:
        return next(self._elements)

    def next(self) -> T_co:
        """The next element; raises StopIteration when the job has ended."""
        return next(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job if it has not ended."""
        if not self._client.get_job_status().result().is_globally_terminal_state():
            self._client.cancel().result()


@says_what_is_absent
class DataStream(StreamHints, Generic[T_co]):
    """A stream of elements: tuples, ``Row`` objects, or any Python object.

    Elements whose type is declared (``output_type=Types.…``) travel between operators as Arrow columns, others pickled.
    Flink: ``DataStream``.
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation) -> None:
        self._env = env
        self._transformation = transformation
        env.next_job.add(transformation)

    def get_name(self) -> str:
        """The name of the operator that this stream comes from."""
        return self._transformation.name

    def name(self, name: str) -> Self:
        """Name the operator, for messages, counters and ``explain``."""
        self._transformation.name = name
        return self

    def uid(self, uid: str) -> Self:
        """Give the operator an id that stays when the program changes around it."""
        self._transformation.uid = uid
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set a number of subtasks for this operator that is lower than that of the environment.

        It has effect for operators after a shuffle, such as keyed windows, and for watermark generators directly after
        a source. Other operators run in the tasks of the operator upstream, and a warning says so. Another warning says
        so if the environment has fewer subtasks when the program is planned.

        Raises:
            ProgramError: if it is not a positive number.
        """
        node = self._transformation
        node.parallelism = checked_parallelism(parallelism)
        if (reason := why_without_parallelism(node)) is not None:
            said = f"set_parallelism({parallelism}) has no effect on {node.name!r}, {reason}"
            warnings.warn(said, UserWarning, stacklevel=level_of_the_program())
        return self

    def force_non_parallel(self) -> Self:
        """Run this operator in one subtask."""
        return self.set_parallelism(1)

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """Keep some fields of tuples, by their places.

        Raises:
            ProgramError: if the elements were not declared as tuples, or have no such field.
        """
        kind = self.get_type()
        if not isinstance(kind, TupleTypeInfo):
            raise ProgramError(f"project is for tuples; the elements of {self.get_name()!r} are {kind}")
        for index in field_indexes:
            if not isinstance(index, int) or not 0 <= index < len(kind.types):
                last = len(kind.types) - 1
                raise ProgramError(f"project: there is no field {index!r} in {kind}; its fields are 0 to {last}")
        fields = Types.TUPLE([kind.types[index] for index in field_indexes])
        return self._called("map", MapFunction, partial(Map, type_info=fields), Projection(field_indexes), fields)

    def get_execution_config(self) -> ExecutionConfig:
        """The settings of the whole job."""
        return self._env.get_config()

    def get_type(self) -> TypeInformation:
        """The declared type of the elements."""
        return self._transformation.type_info

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that this stream belongs to."""
        return self._env

    @overload
    def map(
        self, func: Callable[[T_co], Any] | MapFunction[T_co, Any], output_type: RowTypeInfo
    ) -> DataStream[Row]: ...

    @overload
    def map(
        self, func: Callable[[T_co], OUT] | MapFunction[T_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]: ...

    def map(self, func: object, output_type: TypeInformation | None = None) -> DataStream[Any]:
        """Map each element to one result."""
        return self._called("map", MapFunction, partial(Map, type_info=output_type), func, output_type)

    def filter(self, func: Callable[[T_co], bool] | FilterFunction[T_co]) -> DataStream[T_co]:
        """Keep the elements for which the function is true."""
        return self._called("filter", FilterFunction, Filter, func, self.get_type())

    @overload
    def flat_map(
        self, func: Callable[[T_co], Iterable[Any] | None] | FlatMapFunction[T_co, Any], output_type: RowTypeInfo
    ) -> DataStream[Row]: ...

    @overload
    def flat_map(
        self,
        func: Callable[[T_co], Iterable[OUT] | None] | FlatMapFunction[T_co, OUT],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]: ...

    def flat_map(self, func: object, output_type: TypeInformation | None = None) -> DataStream[Any]:
        """Map each element to any number of results."""
        return self._called("flat_map", FlatMapFunction, partial(FlatMap, type_info=output_type), func, output_type)

    def map_batches(
        self, func: Callable[[Any], Any], output_type: TypeInformation, *, form: BatchForm = "arrow"
    ) -> DataStream[Any]:
        """Map a whole batch of elements to a batch with as many rows.

        Each result has the timestamp of the element in its place. The division of elements into batches is not defined:
        the result for a row must depend only on that row. Not in PyFlink.

        Args:
            func: a function of a ``pyarrow.RecordBatch`` with a column for each field (those of a tuple are ``f0``,
                ``f1``, …), or of a ``pyarrow.Array`` if elements have no fields. It returns a batch or an array of as
                many rows.
            output_type: the type of the results, whose fields are found by name.
            form: ``"pandas"`` or ``"polars"`` for a function that takes and returns frames or series of that library.

        Raises:
            ProgramError: if the type of the elements is not declared.
        """
        return self._on_batches("map_batches", partial(MapBatches, type_info=output_type), func, form, output_type)

    def filter_batches(self, func: Callable[[Any], Any], *, form: BatchForm = "arrow") -> DataStream[T_co]:
        """Keep the rows of a batch for which the function returns true, in an array or series of booleans.

        Args:
            func: a function of a batch, as that of `map_batches`.
            form: as for `map_batches`.

        Raises:
            ProgramError: if the type of the elements is not declared.
        """
        return self._on_batches("filter_batches", FilterBatches, func, form, self.get_type())

    def flat_map_batches(
        self, func: Callable[[Any], Any], output_type: TypeInformation, *, form: BatchForm = "arrow"
    ) -> DataStream[Any]:
        """Map a whole batch of elements to a batch with any number of rows.

        Args:
            func: a function of a batch, as that of `map_batches`. It returns a pair: the results, and for each of them
                the number of the row that it comes from, whose timestamp it gets. These numbers must not decrease.
            output_type: the type of the results.
            form: as for `map_batches`.

        Raises:
            ProgramError: if the type of the elements is not declared.
        """
        step = partial(FlatMapBatches, type_info=output_type)
        return self._on_batches("flat_map_batches", step, func, form, output_type)

    def process(self, func: ProcessFunction[T_co, OUT], output_type: TypeInformation | None = None) -> DataStream[OUT]:
        """Map each element to any number of results with a function that sees its time, and has side outputs.

        It runs in the tasks of the operator upstream. There, ``current_watermark()`` is the watermark of that operator,
        before its results; in the tasks of a source there is none yet, because a source emits its watermarks after all
        elements of a micro-batch.

        Raises:
            ProgramError: if it is not a ``ProcessFunction``.
        """
        check_is(func, ProcessFunction, "process on a stream without keys needs a ProcessFunction")
        kind = partial(Process, type_info=output_type or Types.PICKLED_BYTE_ARRAY())
        call, source = func.process_element, self._transformation
        node = FunctionTransformation("process", source, kind, call, func, output_type, has_side_outputs=True)
        return self._then(node)

    def join(self, other_stream: DataStream[IN]) -> JoinedStreams[T_co, IN]:
        """Join this stream with another one in windows: ``a.join(b).where(…).equal_to(…).window(…).apply(…)``."""
        from eventide.datastream.data_stream.joined import JoinedStreams

        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream[IN]) -> CoGroupedStreams[T_co, IN]:
        """Group the elements of this stream and another one by key and window, even if one side has none."""
        from eventide.datastream.data_stream.joined import CoGroupedStreams

        return CoGroupedStreams(self, other_stream)

    @overload
    def connect(self, ds: DataStream[IN]) -> ConnectedStreams[T_co, IN]: ...

    @overload
    def connect(self, ds: BroadcastStream[IN]) -> BroadcastConnectedStream[T_co, IN]: ...

    def connect(
        self, ds: DataStream[IN] | BroadcastStream[IN]
    ) -> ConnectedStreams[T_co, IN] | BroadcastConnectedStream[T_co, IN]:
        """Connect this stream with another one, of any type: one function handles the elements of both.

        Args:
            ds: the other stream; or the result of `broadcast` with descriptors, for a function with broadcast state.

        Raises:
            ProgramError: if it is not a stream of this environment.
        """
        from eventide.datastream.data_stream.connected import (
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        return ConnectedStreams(self, ds)

    @overload
    def key_by(
        self, key_selector: Callable[[T_co], K] | KeySelector[T_co, K], key_type: TypeInformation | None = None
    ) -> KeyedStream[K, T_co]: ...

    @overload
    def key_by(self, key_selector: str, *more: str) -> KeyedStream[Any, T_co]: ...

    def key_by(
        self, key_selector: object, key_type: TypeInformation | str | None = None, *more: str
    ) -> KeyedStream[Any, T_co]:
        """Partition the elements by a key: text, a number, bytes, a date or time, or a tuple of such values.

        The key is the result of a function of an element; or, beyond PyFlink, one or several fields, by name
        (``key_by("user", "country")``; those of a tuple are ``f0``, ``f1``, …), which is what windows need to run on
        columns; or an expression of ``pyarrow.compute`` over the fields.

        >>> import pyarrow.compute as pc
        >>> from eventide.common import Row, Types
        >>> from eventide.testing import local_environment
        >>> order = Types.ROW_NAMED(["user"], [Types.STRING()])
        >>> orders = local_environment().from_collection([Row("Ann"), Row("ANN")], order)
        >>> counts = orders.key_by(pc.utf8_lower(pc.field("user"))).reduce(lambda one, other: other)
        >>> list(counts.execute_and_collect())
        [Row(user='Ann'), Row(user='ANN')]

        Raises:
            ProgramError: if it is none of these, a field is not there, or its type cannot be the type of a key.
        """
        from eventide.datastream.data_stream.keyed import KeyedStream

        if not isinstance(key_selector, str):
            key_selector = self._env.as_configured(key_selector)
        source = before_broadcast(self._transformation)
        key = key_of("key_by", source, key_selector, key_type, more)
        return KeyedStream(self._env, KeyTransformation(source, key))

    @overload
    def broadcast(self) -> DataStream[T_co]: ...

    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, *other_broadcast_state_descriptors: MapStateDescriptor
    ) -> BroadcastStream[T_co]: ...

    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream[T_co] | BroadcastStream[T_co]:
        """Send all elements of this stream to every subtask.

        With descriptors, they fill broadcast states: connect another stream with the result. Without
        descriptors, the next operator handles each element once in every subtask.

        Raises:
            ProgramError: if one is not a ``MapStateDescriptor``.
        """
        if broadcast_state_descriptor is None:
            return self._redistributed(BROADCAST, BroadcastPartitioner)
        from eventide.datastream.data_stream.connected import BroadcastStream

        return BroadcastStream(self, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def rebalance(self) -> DataStream[T_co]:
        """Distribute elements to all subtasks in turn.

        Operators after a source run in as many tasks as the source has splits; after this call, they run in all
        subtasks. It costs a shuffle.
        """
        return self._redistributed("rebalance", partial(SelectingPartitioner, selector=RebalancePartitioner()))

    def rescale(self) -> DataStream[T_co]:
        """Distribute elements as `rebalance` does: Spark has no neighbouring tasks that would save the shuffle."""
        return self._redistributed("rescale", partial(SelectingPartitioner, selector=RebalancePartitioner()))

    def shuffle(self) -> DataStream[T_co]:
        """Distribute elements in turn as `rebalance` does, so that a repeated micro-batch gives the same results."""
        return self._redistributed("shuffle", partial(SelectingPartitioner, selector=RebalancePartitioner()))

    def global_(self) -> DataStream[T_co]:
        """Send all elements to the first subtask."""
        return self._redistributed("global", partial(SelectingPartitioner, selector=GlobalPartitioner()))

    def forward(self) -> DataStream[T_co]:
        """Leave elements in their task, as by default."""
        return self

    def partition_custom(
        self,
        partitioner: Callable[[K, int], int] | Partitioner[K],
        key_selector: Callable[[T_co], K] | KeySelector[T_co, K],
    ) -> DataStream[T_co]:
        """Choose the subtask of an element by a function of its key and of the number of subtasks.

        That number is the parallelism of the environment, or the one that ``set_parallelism`` sets on the result of
        this call; in PyFlink it is the parallelism of the downstream operator.

        Raises:
            ProgramError: if one of the two is not a function.
        """
        partition = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
        select = key_selector.get_key if isinstance(key_selector, KeySelector) else key_selector
        selector = CustomPartitioner(
            _function_of("partition_custom", partition), _function_of("partition_custom", select), partitioner
        )
        return self._redistributed("partition_custom", partial(SelectingPartitioner, selector=selector))

    def union(self, *streams: DataStream[T_co]) -> DataStream[T_co]:
        """Combine this stream and others of the same type into one; its watermark is the minimum of theirs.

        Raises:
            ProgramError: if the streams have different declared types or belong to another environment.
        """
        inputs = [self._transformation, *(stream._transformation for stream in streams)]
        types = {node.type_info for node in inputs}
        if len(types) > 1:
            raise ProgramError(f"union needs streams of one type; these have {sorted(map(str, types))}")
        check_one_environment("union", self, *streams)
        return self._then(UnionTransformation("union", tuple(inputs), self._transformation.type_info))

    def assign_timestamps_and_watermarks(
        self, watermark_strategy: WatermarkStrategy[T_co] | OlderAssigner[T_co]
    ) -> DataStream[T_co]:
        """Assign timestamps and watermarks, in place of any from upstream.

        Args:
            watermark_strategy: the strategy; or, for older programs, an ``AssignerWithPeriodicWatermarks``, an
                ``AssignerWithPunctuatedWatermarks`` or one of Flink's timestamp extractors, with a deprecation warning.

        Raises:
            ProgramError: if there is no source of timestamps.
        """
        older = older_strategy(watermark_strategy)
        if older is None:
            strategy = spec_of(watermark_strategy, "assign_timestamps_and_watermarks")
        else:
            strategy, replacement = older
            said = f"{type(watermark_strategy).__name__} is of Flink's older API for event time; use {replacement}"
            warnings.warn(said, DeprecationWarning, stacklevel=2)
        if strategy.timestamp_column is not None and not isinstance(strategy.timestamp_column, str):
            raise ProgramError(
                "a Spark Column can give timestamps at from_data_frame only; name the column, or use a function"
            )
        return self._assigned(strategy)

    def _assigned(self, strategy: WatermarkSpec, *, of_source: bool = False) -> DataStream[T_co]:
        """Assign timestamps and watermarks by a strategy that is that of the source, or comes after it."""
        element_type = self.get_type()
        if strategy.timestamp_column is not None and isinstance(element_type, CompositeTypeInfo):
            field_type(element_type, strategy.timestamp_column, "with_timestamp_assigner")
        if not strategy.assigns_timestamps and not self._transformation.has_timestamps:
            raise ProgramError(
                f"the elements of {self._transformation.name!r} have no timestamps, and the strategy "
                f"({strategy.describe()}) does not give them any; add with_timestamp_assigner(...)"
            )
        assigner = strategy.timestamp_assigner
        if isinstance(assigner, ExpressionAssigner):
            strategy = replace(strategy, timestamp_assigner=assigner.of(element_type))
        if isinstance(assigner, FunctionAssigner):
            strategy = replace(
                strategy, timestamp_assigner=FunctionAssigner(self._env.as_configured(assigner.function))
            )
        name = "timestamps and watermarks"
        return self._then(AssignTransformation(name, self._transformation, strategy, of_source=of_source))

    def window_all(self, window_assigner: WindowAssigner[T_co, W]) -> AllWindowedStream[T_co, W]:
        """Put all elements into windows together, in one subtask."""
        from eventide.datastream.data_stream.windowed import AllWindowedStream

        source = self._transformation
        while isinstance(source, KeyTransformation):
            source = source.inputs[0]
        return AllWindowedStream(self._env, before_broadcast(source), window_assigner)

    def time_window_all(
        self, size: Duration | Time | int, slide: Duration | Time | int | None = None
    ) -> AllWindowedStream[T_co, TimeWindow]:
        """Windows of ``size`` over all elements, one every ``slide`` if there is one, of the time characteristic.

        Flink's older name: ``window_all`` says which kind of time is meant.
        """
        from eventide.datastream.data_stream.windowed import time_windows

        return self.window_all(time_windows(self._env.get_stream_time_characteristic(), size, slide))

    def side_output_dead_letters(self, output_tag: OutputTag) -> Self:
        """Emit a dead letter for data that this operator cannot handle, instead of stopping the job.

        Call it on the result of the operator; `get_side_output` with the same tag returns the letters. They are
        counted, as ``numDeadLetters``, even if they are not used. Not in Flink.

        By operator, these data become dead letters:

        - of a source, a record that its format or schema cannot read; and with its strategy, a timestamp that cannot be
          found;
        - of a function, an element for which it raises, or gives a result that is not of the declared type; an element
          has all of its results, state and timers, or none; a timer for which it raises;
        - of an interval join, a pair of elements; both stay, and can be joined with others;
        - of windows, an element that the reduce or aggregate function, the trigger or the assigner cannot take; and a
          window whose function raises when it fires;
        - of ``key_by``, an element whose key cannot be found, or cannot be a key.

        A letter is a `Row` with the fields ``operator``, ``during``, ``error_type``, ``error``, ``element``, ``text``,
        ``key``, ``timestamp``, ``split`` and ``position``. ``element`` is the element as it was; for a source, the
        bytes or text that could not be read, and ``split`` and ``position`` say where: the partition or file, and the
        offset or the number of the row. ``text`` is the element as text.

        Raises:
            ProgramError: if it is not a tag, or the operator of this stream has no dead letters.

        >>> from eventide.testing import local_environment
        >>> bad = OutputTag("bad")
        >>> numbers = local_environment().from_collection(["1", "two"]).map(int).side_output_dead_letters(bad)
        >>> [(letter.element, letter.error_type) for letter in numbers.get_side_output(bad).execute_and_collect()]
        [('two', 'ValueError')]
        """
        check_is(output_tag, OutputTag, "side_output_dead_letters needs an OutputTag")
        node = self._transformation
        if (reason := why_nothing_is_bad(node)) is not None:
            raise ProgramError(f"{node.name!r} cannot have dead letters: {reason}")
        if output_tag.tag_id in _side_outputs(node):
            raise ProgramError(f"{node.name!r} has another side output {output_tag.tag_id!r}; choose another tag")
        for each in _guarded_together(node):
            each.dead_letters = output_tag.tag_id
        return self

    def get_side_output(self, output_tag: OutputTag[T]) -> DataStream[T]:
        """The stream of a side output of the operator, or strategy for missing timestamps, that this stream comes from.

        Raises:
            ProgramError: if this stream does not come from an operator with side outputs directly.
        """
        return DataStream(self._env, self._side_output(output_tag))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Print each element on the driver."""
        return self._into("print", PrintSink(sink_identifier))

    def sink_to(self, sink: Sink[T_co] | Callable[[DataFrame, int], object]) -> DataStreamSink:
        """Hand the elements to a sink, or to a function of a DataFrame and a batch id.

        Raises:
            ProgramError: if it is neither.
        """
        return self._handed_to("sink_to", sink)

    def _handed_to(self, where: str, sink: Sink[T_co] | Callable[[DataFrame, int], object]) -> DataStreamSink:
        if isinstance(sink, FileSink):
            fits = not sink.has_lines and self.get_type() == sink.row_type
            stream = self if fits else self.map(sink.row, sink.row_type)
            return stream._into("file sink", sink.format_sink())
        return self._into("sink", sink if isinstance(sink, Sink) else DataFrameSink(_function_of(where, sink)))

    def add_sink(self, sink_func: Sink[T_co] | Callable[[DataFrame, int], object]) -> DataStreamSink:
        """PyFlink's older name of :meth:`sink_to`."""
        return self._handed_to("add_sink", sink_func)

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T_co]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[T_co]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T_co] | list[T_co]:
        """Run the job, with all other sinks and operators of the program, and give this stream's elements as they come.

        With a ``limit``, wait for up to ``limit`` elements, cancel the job, and return them as a list.

        Raises:
            ProgramError: if the program collects another stream too, or the limit is not positive.
        """
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise ProgramError(f"execute_and_collect needs a limit of 1 element or more, or none, not {limit!r}")
        if self._env.next_job.collects:
            raise ProgramError(
                "execute_and_collect() would give the elements of another CollectSink among those of its stream; call "
                "execute_async(), whose client gives all of them with collected(), or remove that sink"
            )
        self._into("collect", CollectSink())
        client = self._env.start_collecting(job_execution_name, limit)
        elements: CloseableIterator[T_co] = CloseableIterator(client)
        if limit is None:
            return elements
        with elements:
            return list(itertools.islice(elements, limit))

    def to_data_frame(self) -> DataFrame:
        """This stream as an ordinary Spark DataFrame, with a column for each field of its declared type.

        It is a streaming DataFrame, which the caller writes with ``writeStream``, unless it comes only from batch
        DataFrames, or the runtime mode is BATCH.

        Raises:
            ProgramError: if the type is not declared, because pickled objects have no columns.
        """
        return self._env.data_frame_of(SinkTransformation("data frame", self._transformation, CollectSink()))

    def explain(self) -> None:
        """Print the plan of the job for this stream: where functions run, how elements travel, and where state is."""
        self._env.explain(self)

    def _then(self, transformation: Transformation) -> DataStream[Any]:
        return DataStream(self._env, transformation)

    def _called(
        self,
        name: str,
        kind: type[Function],
        step: Callable[..., ChainedOperator],
        func: object,
        output_type: TypeInformation | None,
    ) -> DataStream[Any]:
        func = self._env.as_configured(func)
        call = getattr(func, name) if isinstance(func, kind) else _function_of(name, func)
        has_tags = kind is not FilterFunction
        node = FunctionTransformation(
            name, self._transformation, step, call, func, output_type, has_side_outputs=has_tags
        )
        return self._then(node)

    def _on_batches(
        self,
        name: str,
        step: Callable[..., ChainedOperator],
        func: object,
        form: BatchForm,
        output_type: TypeInformation,
    ) -> DataStream[Any]:
        kind = self.get_type()
        if kind.is_pickled:
            raise ProgramError(
                f"{name} needs elements whose type is declared, and that of {self.get_name()!r} is not; declare it "
                "where they come from, as in map(…, output_type=Types.ROW_NAMED([…], […]))"
            )
        call = on_arrow(name, func, form)
        of_batches = partial(step, input_type=kind)
        return self._then(FunctionTransformation(name, self._transformation, of_batches, call, func, output_type))

    def _into(self, name: str, sink: Sink) -> DataStreamSink:
        transformation = SinkTransformation(name, self._transformation, sink)
        self._env.next_job.add(transformation)
        return DataStreamSink(transformation)

    def _redistributed(self, kind: str, partitioner: Callable[[ElementCodec], StreamPartitioner]) -> DataStream[T_co]:
        type_info, source = self.get_type(), before_broadcast(self._transformation)
        return of_operation(self._env, (source,), Redistribution(kind, partitioner, type_info), type_info)

    def _side_output(self, output_tag: OutputTag) -> Transformation:
        source, tag = self._transformation, output_tag.tag_id
        if source.dead_letters == tag:
            letters = [SideOutputTransformation(node, tag, DEAD_LETTER) for node in _guarded_together(source)]
            return letters[0] if len(letters) == 1 else UnionTransformation("union", tuple(letters), DEAD_LETTER)
        if isinstance(source, AssignTransformation) and source.strategy.null_timestamps == tag:
            return SideOutputTransformation(source, tag, source.type_info)
        origin = source.inputs[0] if isinstance(source, AssignTransformation) else source
        if isinstance(origin, SourceTransformation) and tag in (aside := origin.source.side_outputs()):
            return SideOutputTransformation(origin, tag, aside[tag])
        is_chained = isinstance(source, FunctionTransformation) and source.has_side_outputs
        is_operator = isinstance(source, OperationTransformation) and not isinstance(source.operation, Redistribution)
        if not (is_operator or is_chained):
            raise ProgramError(
                f"{source.name!r} has no side outputs; call get_side_output on the result of a map, a flat_map, a "
                "process function or a window itself, or side_output_dead_letters with this tag before"
            )
        return SideOutputTransformation(source, tag, _side_outputs(source).get(tag, output_tag.type_info))


def before_broadcast(node: Transformation) -> Transformation:
    """The node before a broadcast, for another partitioner after it: only the last partitioner counts, as in Flink."""
    while isinstance(node, OperationTransformation) and node.operation.kind == BROADCAST:
        (node,) = node.inputs
    if isinstance(node, UnionTransformation):
        inputs = [*map(before_broadcast, node.inputs)]
        if any(before is not given for before, given in zip(inputs, node.inputs, strict=True)):
            return UnionTransformation(node.name, tuple(inputs), node.type_info)
    return node


def of_operation(
    env: StreamExecutionEnvironment,
    inputs: tuple[Transformation, ...],
    operation: Operation,
    output_type: TypeInformation | None,
) -> DataStream[Any]:
    """The stream of an operator whose results have timestamps if the elements of all its inputs have them."""
    has_timestamps = all(node.has_timestamps for node in inputs)
    node = OperationTransformation(operation.kind, inputs, output_type, operation, has_timestamps=has_timestamps)
    return DataStream(env, node)


def check_types_of_keys(first: str, one: Key, second: str, other: Key) -> None:
    """Check that keys of two streams can be equal, as far as their types are declared.

    Raises:
        ProgramError: if they cannot.
    """
    undeclared = Types.PICKLED_BYTE_ARRAY()
    if undeclared not in (one.type_info, other.type_info) and one.type_info != other.type_info:
        raise ProgramError(
            f"keys of one type can be equal; {first} has {one.type_info}, {second} has {other.type_info}; declare the "
            "same type for both"
        )


def check_keys_of(first: DataStream[Any], second: DataStream[Any]) -> None:
    """Check that the keys of two keyed streams can be equal; see :func:`check_types_of_keys`."""
    one, other = first._transformation, second._transformation
    if isinstance(one, KeyTransformation) and isinstance(other, KeyTransformation):
        check_types_of_keys("the first stream", one.key, "the second", other.key)


def key_of(
    where: str,
    source: Transformation,
    selector: object,
    key_type: TypeInformation | str | None = None,
    more: Sequence[str] = (),
) -> Key:
    """The key that a program names: a function of an element, with the type of its values; or fields, by name.

    Raises:
        ProgramError: if it is neither, a field is not there, or its type cannot be the type of a key.
    """
    if isinstance(selector, str):
        return _key_of_fields(source, [selector, *([] if key_type is None else [key_type]), *more])
    if is_expression(selector):
        return _key_of_expression(where, source, selector, key_type, more)
    select = selector.get_key if isinstance(selector, KeySelector) else selector
    if not callable(select):
        raise ProgramError(
            f"{where} needs a function of an element, a KeySelector, fields by name, or an expression of "
            f"pyarrow.compute, not {selector!r}"
        )
    if isinstance(key_type, str) or more:
        raise ProgramError(f"{where} takes one function, or the names of fields, not both")
    _check_key_type(key_type)
    return Key(select, key_type or Types.PICKLED_BYTE_ARRAY())


def _key_of_expression(
    where: str, source: Transformation, selector: object, key_type: TypeInformation | str | None, more: Sequence[str]
) -> Key:
    select = ColumnExpression(selector, source.type_info, where)
    if isinstance(key_type, str) or more:
        raise ProgramError(f"{where} takes one expression, or the names of fields, not both")
    if key_type not in (None, select.result_type):
        raise ProgramError(
            f"{where}: {selector} gives {select.result_type}, and the key_type is {key_type}; cast the expression, or "
            "leave key_type out"
        )
    if select.field is not None:
        return _key_of_fields(source, [select.field])
    if isinstance(select.result_type, CompositeTypeInfo):
        raise ProgramError(f"{where}: {selector} gives {select.result_type}; key by its fields, by name")
    _check_key_type(select.result_type)
    return Key(select, select.result_type)


def _key_of_fields(source: Transformation, names: Sequence[Any]) -> Key:
    if not all(isinstance(name, str) for name in names):
        raise ProgramError(f"key_by takes one function, or the names of fields, not {names!r}")
    kind = source.type_info
    if not isinstance(kind, CompositeTypeInfo):  # elements that are dicts or rows of no declared type
        return Key(itemgetter(*names), Types.PICKLED_BYTE_ARRAY())
    types = [field_type(kind, name, "key_by") for name in names]
    for name, field in zip(names, types, strict=True):
        if isinstance(field, CompositeTypeInfo):
            raise ProgramError(f"the field {name!r} is a {field}; name its own fields in a map first, and key by those")
    key_type = types[0] if len(types) == 1 else Types.TUPLE(types)
    _check_key_type(key_type)
    places: Sequence[Any] = names if isinstance(kind, RowTypeInfo) else [kind.field_names.index(n) for n in names]
    return Key(itemgetter(*places), key_type, tuple(names))


def field_type(kind: CompositeTypeInfo, name: str, where: str) -> TypeInformation:
    """The type of a field.

    Raises:
        ProgramError: if there is no such field.
    """
    if name not in kind.field_names:
        raise ProgramError(f"{where}: the elements have no field {name!r}; their fields are {kind.field_names}")
    return kind.field_types[kind.field_names.index(name)]


def type_with_fields(source: Transformation, what: str) -> CompositeTypeInfo:
    """The type of elements whose fields are needed.

    Raises:
        ProgramError: if they have no declared fields.
    """
    kind = source.type_info
    if not isinstance(kind, CompositeTypeInfo):
        raise ProgramError(
            f"{what} needs elements with fields, and the type of those of {source.name!r} is {kind}; declare "
            "output_type=Types.ROW_NAMED([...], [...]), or Types.TUPLE([...]), whose fields are f0, f1, …"
        )
    return kind


def check_one_environment(what: str, *streams: DataStream[Any]) -> None:
    """Check that all streams are of one environment.

    Raises:
        ProgramError: if they are not.
    """
    if any(stream.get_execution_environment() is not streams[0].get_execution_environment() for stream in streams):
        raise ProgramError(f"{what} needs streams of one environment; these were made by two or more")


def check_named_once(names: Sequence[str]) -> None:
    """Check that no two fields of a result have one name.

    Raises:
        ProgramError: if two have.
    """
    if twice := {name for name in names if names.count(name) > 1}:
        raise ProgramError(f"two fields of the result are named {min(twice)!r}: {names}; rename one with .alias()")


def _function_of(where: str, function: object) -> Callable[..., Any]:
    """Return a function, or a function object, if it is one.

    Raises:
        ProgramError: naming the method that needs one.
    """
    if not callable(function):
        raise ProgramError(f"{where} needs a function or a function object, not {function!r}")
    return function


def _check_key_type(key_type: TypeInformation | None) -> None:
    """Refuse types that would change keys on the way: round them, or turn them into something that cannot be a key."""
    check_is(key_type, TypeInformation | None, "a key_type is a type such as Types.STRING()")
    parts = [] if key_type is None else [key_type]
    for part in parts:
        if isinstance(part, CompositeTypeInfo):
            parts += part.field_types
        if part == Types.FLOAT() or isinstance(part, ListTypeInfo | MapTypeInfo):
            raise ProgramError(
                f"{part} cannot be the type of a key or of a part of one: its values are rounded or cannot be hashed; "
                "declare another key_type, such as Types.DOUBLE() or Types.TUPLE([...]), or leave it out"
            )


def _side_outputs(node: Transformation) -> dict[str, Any]:
    return node.side_outputs if isinstance(node, OperationTransformation) else {}


def _guarded_together(node: Transformation) -> list[Transformation]:
    """Return the nodes that share dead letters: a strategy and the source that it belongs to."""
    if isinstance(node, AssignTransformation) and isinstance(node.inputs[0], SourceTransformation):
        return [node.inputs[0], node]
    return [node]
