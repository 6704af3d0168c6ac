"""State that survives a restart: its descriptors and its interfaces (PyFlink: ``pyflink.datastream.state``)."""

from eventide.api.state._descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from eventide.api.state._interfaces import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ListState,
    MapState,
    MergingState,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    ValueState,
)
from eventide.api.state._ttl import StateTtlConfig

__all__ = [
    "State",
    "ValueState",
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
