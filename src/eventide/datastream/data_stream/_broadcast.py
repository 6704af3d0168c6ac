"""Broadcast streams: every subtask has all of their elements, and state that is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from eventide.api.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from eventide.api.state import MapStateDescriptor
from eventide.common.type_variables import OUT, T1_co, T2_co, T_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.data_stream._connected import without_key
from eventide.datastream.data_stream.stream import DataStream
from eventide.errors import ProgramError
from eventide.plan.graph import KeyTransformation, OperationTransformation
from eventide.runtime.process.broadcast import BroadcastOperation, ProcessBeside


class BroadcastStream(Generic[T_co]):
    """A stream whose elements every subtask has; connect another stream with it. Flink: ``BroadcastStream``."""

    def __init__(
        self, input_stream: DataStream[T_co], broadcast_state_descriptors: Sequence[MapStateDescriptor]
    ) -> None:
        for descriptor in broadcast_state_descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise ProgramError(
                    f"broadcast needs descriptors of maps, such as MapStateDescriptor, not {descriptor!r}"
                )
        names = [descriptor.name for descriptor in broadcast_state_descriptors]
        if len(set(names)) < len(names):
            raise ProgramError(f"each broadcast state needs a name of its own; these are called {', '.join(names)}")
        self.input_stream = without_key(input_stream)
        self.broadcast_state_descriptors = list(broadcast_state_descriptors)


class BroadcastConnectedStream(Generic[T1_co, T2_co]):
    """A stream beside a broadcast one; the watermark of what comes out is the lower one of the two.

    Flink: ``BroadcastConnectedStream``.
    """

    def __init__(
        self,
        non_broadcast_stream: DataStream[T1_co],
        broadcast_stream: BroadcastStream[T2_co],
        broadcast_state_descriptors: Sequence[MapStateDescriptor],
    ) -> None:
        environment = non_broadcast_stream.get_execution_environment()
        if environment is not broadcast_stream.input_stream.get_execution_environment():
            raise ProgramError("connect needs streams of one environment; these were made by two")
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
            func: a ``KeyedBroadcastProcessFunction`` where the other stream has keys, else a
                ``BroadcastProcessFunction``.
            output_type: the type of what comes out; a list of types means ``Types.ROW``.

        Raises:
            ProgramError: if it is the wrong one of the two, or neither.
        """
        node = self.non_broadcast_stream._transformation
        has_keys = isinstance(node, KeyTransformation)
        wanted = KeyedBroadcastProcessFunction if has_keys else BroadcastProcessFunction
        if not isinstance(func, wanted):
            raise ProgramError(
                f"process needs a {wanted.__name__} here, because the stream that is not broadcast has "
                f"{'keys' if has_keys else 'no keys'}, not {func!r}"
            )
        if output_type is not None and not isinstance(output_type, TypeInformation):
            output_type = Types.ROW(list(output_type))
        environment = self.non_broadcast_stream.get_execution_environment()
        inputs = node, self.broadcast_stream.input_stream._transformation
        operation = BroadcastOperation(
            ProcessBeside(environment.own_function(func)),
            tuple(self.broadcast_state_descriptors),
            output_type or Types.PICKLED_BYTE_ARRAY(),
        )
        has_timestamps = all(source.has_timestamps for source in inputs)
        operator = OperationTransformation(
            operation.kind, inputs, output_type, operation, has_timestamps=has_timestamps
        )
        return DataStream(environment, operator)
