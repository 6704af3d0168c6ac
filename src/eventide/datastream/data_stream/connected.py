"""Connected streams: one function handles the elements of two, one of which may be broadcast to every subtask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eventide.api.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from eventide.api.state import MapStateDescriptor
from eventide.common.type_variables import OUT, T, T1_co, T2_co, T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.data_stream.stream import DataStream, check_keys_of, check_one_environment, of_operation
from eventide.errors import ProgramError, check_is
from eventide.plan.graph import KeyTransformation, Transformation
from eventide.runtime.process.broadcast import BroadcastOperation, BroadcastProcess
from eventide.runtime.process.functions import ElementFunction, ProcessBoth, Processing
from eventide.runtime.process.operation import ProcessOperation

if TYPE_CHECKING:
    from eventide.datastream.data_stream.keyed import KeyedStream
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment


_F = TypeVar("_F")


class ConnectedStreams(Generic[T1_co, T2_co]):
    """Two streams, of any types, whose elements one function handles; with keys, they share its state.

    The watermark of the results is the lower one of the two. Within a micro-batch, elements of the first stream
    come before those of the second that arrived under the same watermark. Flink: ``ConnectedStreams``.
    """

    def __init__(self, stream1: DataStream[T1_co], stream2: DataStream[T2_co]) -> None:
        check_is(stream2, DataStream, "connect needs a stream")
        check_one_environment("connect", stream1, stream2)
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[T1_co], Any] | KeySelector[T1_co, Any] | str,
        key_selector2: Callable[[T2_co], Any] | KeySelector[T2_co, Any] | str,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams[T1_co, T2_co]:
        """Partition both streams by key; elements with equal keys meet, from either stream.

        Raises:
            ProgramError: if one is not a key.
        """
        first = _keyed(self.stream1, key_selector1, key_type)
        return ConnectedStreams(first, _keyed(self.stream2, key_selector2, key_type))

    def map(
        self, func: CoMapFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Map each element to one result; None emits nothing.

        Raises:
            ProgramError: if it is not a ``CoMapFunction``.
        """
        check_is(func, CoMapFunction, "map on connected streams needs a CoMapFunction")
        return self._processed(ElementFunction(func, "map of two inputs"), output_type)

    def flat_map(
        self, func: CoFlatMapFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Map each element to any number of results.

        Raises:
            ProgramError: if it is not a ``CoFlatMapFunction``.
        """
        check_is(func, CoFlatMapFunction, "flat_map on connected streams needs a CoFlatMapFunction")
        return self._processed(ElementFunction(func, "flat_map of two inputs"), output_type)

    def process(
        self,
        func: CoProcessFunction[T1_co, T2_co, OUT] | KeyedCoProcessFunction[Any, T1_co, T2_co, OUT],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Hand each element to a function that sees its time; with keys, it has state and timers for each.

        Raises:
            ProgramError: if it is neither, or needs keys and there are none.
        """
        needs = "process on connected streams needs a CoProcessFunction or a KeyedCoProcessFunction"
        check_is(func, CoProcessFunction | KeyedCoProcessFunction, needs)
        if isinstance(func, KeyedCoProcessFunction) and not self._has_keys():
            raise ProgramError(
                f"{type(func).__name__} is a KeyedCoProcessFunction, and these streams have no keys; "
                "call key_by(selector1, selector2) before, or write a CoProcessFunction"
            )
        return self._processed(ProcessBoth(func), output_type)

    def _has_keys(self) -> bool:
        return all(isinstance(stream._transformation, KeyTransformation) for stream in (self.stream1, self.stream2))

    def _processed(self, processing: Processing, output_type: TypeInformation | None) -> DataStream[Any]:
        streams: tuple[DataStream[Any], DataStream[Any]] = self.stream1, self.stream2
        if self._has_keys():
            check_keys_of(self.stream1, self.stream2)
        else:
            streams = without_key(self.stream1), without_key(self.stream2)
        inputs = tuple(stream._transformation for stream in streams)
        return processed(inputs, processing, self.stream1.get_execution_environment(), output_type)


class BroadcastStream(Generic[T_co]):
    """A stream whose elements go to every subtask; connect another stream with it. Flink: ``BroadcastStream``."""

    def __init__(
        self, input_stream: DataStream[T_co], broadcast_state_descriptors: Sequence[MapStateDescriptor]
    ) -> None:
        for descriptor in broadcast_state_descriptors:
            check_is(descriptor, MapStateDescriptor, "broadcast needs descriptors of maps, such as MapStateDescriptor")
        names = [descriptor.name for descriptor in broadcast_state_descriptors]
        if len(set(names)) < len(names):
            raise ProgramError(f"each broadcast state needs a name of its own; these are called {', '.join(names)}")
        self.input_stream = without_key(input_stream)
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)


class BroadcastConnectedStream(Generic[T1_co, T2_co]):
    """A stream beside a broadcast one; the watermark of the results is the lower one of the two.

    Flink: ``BroadcastConnectedStream``.
    """

    def __init__(
        self,
        non_broadcast_stream: DataStream[T1_co],
        broadcast_stream: BroadcastStream[T2_co],
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        check_one_environment("connect", non_broadcast_stream, broadcast_stream.input_stream)
        self.non_broadcast_stream = non_broadcast_stream
        self.broadcast_stream = broadcast_stream
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)

    def process(
        self,
        func: BroadcastProcessFunction[T1_co, T2_co, OUT] | KeyedBroadcastProcessFunction[Any, T1_co, T2_co, OUT],
        output_type: TypeInformation | Sequence[TypeInformation] | None = None,
    ) -> DataStream[OUT]:
        """Hand the elements of both streams to a function with broadcast state.

        Args:
            func: a ``KeyedBroadcastProcessFunction`` if the other stream has keys, else a ``BroadcastProcessFunction``.
            output_type: the type of the results; a list of types means ``Types.ROW``.

        Raises:
            ProgramError: if it is the wrong one of the two, or neither.
        """
        node = self.non_broadcast_stream._transformation
        has_keys = isinstance(node, KeyTransformation)
        wanted = KeyedBroadcastProcessFunction if has_keys else BroadcastProcessFunction
        keys = "keys" if has_keys else "no keys"
        needs = f"process needs a {wanted.__name__} here, because the stream that is not broadcast has {keys}"
        check_is(func, wanted, needs)
        if output_type is not None and not isinstance(output_type, TypeInformation):
            output_type = Types.ROW(list(output_type))
        environment = self.non_broadcast_stream.get_execution_environment()
        inputs = node, self.broadcast_stream.input_stream._transformation
        operation = BroadcastOperation(
            BroadcastProcess(func),
            tuple(self.broadcast_state_descriptors),
            output_type or Types.PICKLED_BYTE_ARRAY(),
        )
        return of_operation(environment, inputs, operation, output_type)


def _keyed(
    stream: DataStream[T], selector: Callable[[T], Any] | KeySelector[T, Any] | str, key_type: TypeInformation | None
) -> KeyedStream[Any, T]:
    """Partition a stream by a key, in place of any key that it has."""
    stream = without_key(stream)
    return stream.key_by(selector) if isinstance(selector, str) else stream.key_by(selector, key_type)


def processed(
    inputs: tuple[Transformation, ...],
    processing: Processing,
    env: StreamExecutionEnvironment,
    output_type: TypeInformation | None,
    kind: type[ProcessOperation] = ProcessOperation,
) -> DataStream[Any]:
    """The stream of the results of a function of several streams."""
    return of_operation(env, inputs, kind(processing, output_type or Types.PICKLED_BYTE_ARRAY()), output_type)


def without_key(stream: DataStream[T]) -> DataStream[T]:
    """The stream before its key."""
    node = stream._transformation
    while isinstance(node, KeyTransformation):
        (node,) = node.inputs
    return stream if node is stream._transformation else DataStream(stream.get_execution_environment(), node)
