"""Connected streams: one function handles the elements of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eventide.api.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from eventide.common.type_variables import OUT, T, T1_co, T2_co
from eventide.common.typeinfo import TypeInformation, Types
from eventide.datastream.data_stream.stream import DataStream
from eventide.errors import ProgramError
from eventide.plan.graph import KeyTransformation, OperationTransformation, Transformation
from eventide.runtime.process.functions import FlatMapBoth, MapBoth, ProcessBoth, Processing
from eventide.runtime.process.spec import ProcessOperation

if TYPE_CHECKING:
    from eventide.datastream.data_stream._keyed import KeyedStream
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment


_F = TypeVar("_F")


class ConnectedStreams(Generic[T1_co, T2_co]):
    """Two streams, of any types, whose elements one function handles; with keys, it has state that both share.

    The watermark of what comes out is the lower one of the two. Within a micro-batch, elements of the first stream
    come before those of the second that arrived under the same watermark. Flink: ``ConnectedStreams``.
    """

    def __init__(self, stream1: DataStream[T1_co], stream2: DataStream[T2_co]) -> None:
        if not isinstance(stream2, DataStream):
            raise ProgramError(f"connect needs a stream, not {stream2!r}")
        if stream1.get_execution_environment() is not stream2.get_execution_environment():
            raise ProgramError("connect needs streams of one environment; these were made by two")
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[T1_co], Any] | KeySelector[T1_co, Any] | str,
        key_selector2: Callable[[T2_co], Any] | KeySelector[T2_co, Any] | str,
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams[T1_co, T2_co]:
        """Deal both streams out by key; elements with equal keys meet, whichever stream they come on.

        Raises:
            ProgramError: if one is no key.
        """
        first = _keyed(self.stream1, key_selector1, key_type)
        return ConnectedStreams(first, _keyed(self.stream2, key_selector2, key_type))

    def map(
        self, func: CoMapFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Turn each element into one other; None stands for nothing.

        Raises:
            ProgramError: if it is no ``CoMapFunction``.
        """
        if not isinstance(func, CoMapFunction):
            raise ProgramError(f"map on connected streams needs a CoMapFunction, not {func!r}")
        return self._processed(MapBoth(self._own(func)), output_type)

    def flat_map(
        self, func: CoFlatMapFunction[T1_co, T2_co, OUT], output_type: TypeInformation | None = None
    ) -> DataStream[OUT]:
        """Turn each element into any number of others.

        Raises:
            ProgramError: if it is no ``CoFlatMapFunction``.
        """
        if not isinstance(func, CoFlatMapFunction):
            raise ProgramError(f"flat_map on connected streams needs a CoFlatMapFunction, not {func!r}")
        return self._processed(FlatMapBoth(self._own(func)), output_type)

    def process(
        self,
        func: CoProcessFunction[T1_co, T2_co, OUT] | KeyedCoProcessFunction[Any, T1_co, T2_co, OUT],
        output_type: TypeInformation | None = None,
    ) -> DataStream[OUT]:
        """Hand each element to a function that sees its time; with keys, it has state and timers for each.

        Raises:
            ProgramError: if it is neither, or needs keys where there are none.
        """
        if not isinstance(func, CoProcessFunction | KeyedCoProcessFunction):
            raise ProgramError(
                f"process on connected streams needs a CoProcessFunction or a KeyedCoProcessFunction, not {func!r}"
            )
        if isinstance(func, KeyedCoProcessFunction) and not self._has_keys():
            raise ProgramError(
                f"{type(func).__name__} is a KeyedCoProcessFunction, and these streams have no keys; "
                "call key_by(selector1, selector2) before, or write a CoProcessFunction"
            )
        return self._processed(ProcessBoth(self._own(func)), output_type)

    def _own(self, function: _F) -> _F:
        return self.stream1.get_execution_environment().own_function(function)

    def _has_keys(self) -> bool:
        return all(isinstance(stream._transformation, KeyTransformation) for stream in (self.stream1, self.stream2))

    def _processed(self, processing: Processing, output_type: TypeInformation | None) -> DataStream[Any]:
        streams: tuple[DataStream[Any], DataStream[Any]] = self.stream1, self.stream2
        if not self._has_keys():
            streams = without_key(self.stream1), without_key(self.stream2)
        inputs = tuple(stream._transformation for stream in streams)
        return processed(inputs, processing, self.stream1.get_execution_environment(), output_type)


def _keyed(
    stream: DataStream[T], selector: Callable[[T], Any] | KeySelector[T, Any] | str, key_type: TypeInformation | None
) -> KeyedStream[Any, T]:
    """A stream by another key than it may have."""
    stream = without_key(stream)
    return stream.key_by(selector) if isinstance(selector, str) else stream.key_by(selector, key_type)


def processed(
    inputs: tuple[Transformation, ...],
    processing: Processing,
    env: StreamExecutionEnvironment,
    output_type: TypeInformation | None,
) -> DataStream[Any]:
    """The stream of what a function makes of the elements of some streams."""
    operation = ProcessOperation(processing, output_type or Types.PICKLED_BYTE_ARRAY())
    has_timestamps = all(node.has_timestamps for node in inputs)
    operator = OperationTransformation(processing.kind, inputs, output_type, operation, has_timestamps=has_timestamps)
    return DataStream(env, operator)


def without_key(stream: DataStream[T]) -> DataStream[T]:
    """The stream before its key."""
    node = stream._transformation
    while isinstance(node, KeyTransformation):
        (node,) = node.inputs
    return stream if node is stream._transformation else DataStream(stream.get_execution_environment(), node)
