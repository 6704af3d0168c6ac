"""State that survives a restart: its descriptors and its interfaces (PyFlink: ``pyflink.datastream.state``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventide.api.functions import AggregateFunction, ReduceFunction
from eventide.api.keyed_state import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    KeyedStateStore,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    MergingState,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
    VectorizedMapState,
    VectorizedValueState,
)
from eventide.api.time_to_live import StateTtlConfig
from eventide.common.type_variables import ACC, IN, OUT, T
from eventide.common.typeinfo import TypeInformation
from eventide.errors import ProgramError

__all__ = [
    "State",
    "ValueState",
    "VectorizedMapState",
    "VectorizedValueState",
    "AppendingState",
    "MergingState",
    "ListState",
    "MapState",
    "ReadOnlyBroadcastState",
    "BroadcastState",
    "ReducingState",
    "AggregatingState",
    "StateTtlConfig",
    "StateDescriptor",
    "ValueStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "AggregatingStateDescriptor",
]


class ReducingStateDescriptor(StateDescriptor[ReducingState[T]]):
    """Describes a `ReducingState`.

    Args:
        name: The name.
        reduce_function: A `ReduceFunction`, or a plain function of two values.
        type_info: The type of the values.

    Raises:
        ProgramError: `reduce_function` is neither.

    >>> from eventide.common import Types
    >>> ReducingStateDescriptor("earliest", min, Types.LONG()).get_reduce_function().reduce(3, 2)
    2
    """

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        type_info: TypeInformation[T],
    ) -> None:
        super().__init__(name, type_info)
        self._reduce_function = ReduceFunction.of(reduce_function)

    def get_reduce_function(self) -> ReduceFunction[T]:
        """Return the function, as a `ReduceFunction` in any case."""
        return self._reduce_function

    def bind(self, store: KeyedStateStore) -> ReducingState[T]:
        return store.get_reducing_state(self)


class AggregatingStateDescriptor(StateDescriptor[AggregatingState[IN, OUT]]):
    """Describes an `AggregatingState`.

    Args:
        name: The name.
        agg_function: The `AggregateFunction`.
        state_type_info: The type of its accumulator, which is what is stored.

    Raises:
        ProgramError: `agg_function` is not an `AggregateFunction`.
    """

    def __init__(
        self, name: str, agg_function: AggregateFunction[IN, ACC, OUT], state_type_info: TypeInformation[ACC]
    ) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise ProgramError(f"state {name!r}: expected an AggregateFunction, got {agg_function!r}")
        self._agg_function: AggregateFunction[IN, Any, OUT] = agg_function

    def get_agg_function(self) -> AggregateFunction[IN, Any, OUT]:
        """Return the function."""
        return self._agg_function

    def bind(self, store: KeyedStateStore) -> AggregatingState[IN, OUT]:
        return store.get_aggregating_state(self)
