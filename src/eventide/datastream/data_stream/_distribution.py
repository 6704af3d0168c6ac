"""How elements get to the subtasks of what follows, where a program says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, cast, overload

from eventide.api.functions import KeySelector, Partitioner
from eventide.common.type_variables import K, T_co
from eventide.datastream.data_stream._checks import function_of
from eventide.plan.graph import OperationTransformation, Transformation
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.exchange.partitioners import (
    ByPartitioner,
    DealtOut,
    RebalancePartitioner,
    StreamPartitioner,
    ToAll,
    ToFirst,
)
from eventide.runtime.process.redistribution import Redistribution

if TYPE_CHECKING:
    from eventide.api.state import MapStateDescriptor
    from eventide.datastream.data_stream._broadcast import BroadcastStream
    from eventide.datastream.data_stream.stream import DataStream


class Distribution(Generic[T_co]):
    """The ways of dealing elements out without a key; each but the last costs a shuffle."""

    _transformation: Transformation

    if TYPE_CHECKING:

        def _then(self, transformation: Transformation) -> DataStream[Any]: ...

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
        """Have every subtask see all elements of this stream.

        With descriptors, they fill broadcast states: connect another stream with the result. Without, what follows
        handles each element once in every subtask.

        Raises:
            ProgramError: if one is no ``MapStateDescriptor``.
        """
        if broadcast_state_descriptor is None:
            return self._redistributed("broadcast", ToAll)
        from eventide.datastream.data_stream._broadcast import BroadcastStream

        return BroadcastStream(
            cast("DataStream[T_co]", self), [broadcast_state_descriptor, *other_broadcast_state_descriptors]
        )

    def rebalance(self) -> DataStream[T_co]:
        """Deal elements out to all subtasks in turn.

        Operators after a source run in as many tasks as the source has splits; after this call, in as many as there are
        subtasks. It costs a shuffle.
        """
        return self._redistributed("rebalance", partial(DealtOut, dealing=RebalancePartitioner()))

    def rescale(self) -> DataStream[T_co]:
        """The same as `rebalance`: on Spark there are no pairs of tasks side by side that would save the way."""
        return self._redistributed("rescale", partial(DealtOut, dealing=RebalancePartitioner()))

    def shuffle(self) -> DataStream[T_co]:
        """The same as `rebalance`: dealt out in turn, so that a micro-batch that is run again gives the same."""
        return self._redistributed("shuffle", partial(DealtOut, dealing=RebalancePartitioner()))

    def global_(self) -> DataStream[T_co]:
        """Have the first subtask handle all elements."""
        return self._redistributed("global", partial(DealtOut, dealing=ToFirst()))

    def forward(self) -> DataStream[T_co]:
        """Leave elements in the task where they are, which they do in any case."""
        return cast("DataStream[T_co]", self)

    def partition_custom(
        self,
        partitioner: Callable[[K, int], int] | Partitioner[K],
        key_selector: Callable[[T_co], K] | KeySelector[T_co, K],
    ) -> DataStream[T_co]:
        """Have a function of an element's key, and of how many subtasks there are, say which one handles it.

        These are as many as the parallelism of the environment, or what ``set_parallelism`` makes of it on the result
        of this call; PyFlink asks with the parallelism of the operator after it.

        Raises:
            ProgramError: if one of the two is no function.
        """
        partition = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
        select = key_selector.get_key if isinstance(key_selector, KeySelector) else key_selector
        dealing = ByPartitioner(
            function_of("partition_custom", partition), function_of("partition_custom", select), partitioner
        )
        return self._redistributed("partition_custom", partial(DealtOut, dealing=dealing))

    def _redistributed(self, kind: str, partitioner: Callable[[ElementCodec], StreamPartitioner]) -> DataStream[T_co]:
        node = self._transformation
        operation = Redistribution(kind, partitioner, node.type_info)
        return self._then(
            OperationTransformation(kind, (node,), node.type_info, operation, has_timestamps=node.has_timestamps)
        )
