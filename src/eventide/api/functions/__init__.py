"""The functions that users write (PyFlink: ``pyflink.datastream.functions``)."""

from eventide.api.functions._aggregate import AggregateFunction
from eventide.api.functions._basic import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
    associative,
    not_associative,
)
from eventide.api.functions._broadcast import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from eventide.api.functions._context import RuntimeContext
from eventide.api.functions._join import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from eventide.api.functions._process import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from eventide.api.functions._rich import (
    RichAggregateFunction,
    RichAllWindowFunction,
    RichAsyncFunction,
    RichCoFlatMapFunction,
    RichCoGroupFunction,
    RichCoMapFunction,
    RichFilterFunction,
    RichFlatJoinFunction,
    RichFlatMapFunction,
    RichFunction,
    RichJoinFunction,
    RichMapFunction,
    RichReduceFunction,
    RichSourceFunction,
    RichWindowFunction,
)
from eventide.api.functions._source import SourceContext, SourceFunction
from eventide.api.functions._window import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from eventide.api.functions.asynchronous import AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from eventide.api.functions.timestamps import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
)
from eventide.api.keyed_state import KeyedStateStore

__all__ = [
    "Function",
    "MapFunction",
    "FilterFunction",
    "FlatMapFunction",
    "KeySelector",
    "Partitioner",
    "ReduceFunction",
    "associative",
    "not_associative",
    "AggregateFunction",
    "ProcessFunction",
    "KeyedProcessFunction",
    "CoMapFunction",
    "CoFlatMapFunction",
    "CoProcessFunction",
    "KeyedCoProcessFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "KeyedBroadcastProcessFunction",
    "JoinFunction",
    "FlatJoinFunction",
    "CoGroupFunction",
    "ProcessJoinFunction",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "WindowFunction",
    "AllWindowFunction",
    "ProcessWindowFunction",
    "ProcessAllWindowFunction",
    "SourceFunction",
    "SourceContext",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPunctuatedWatermarks",
    "AscendingTimestampExtractor",
    "BoundedOutOfOrdernessTimestampExtractor",
    "RichFunction",
    "RichMapFunction",
    "RichFilterFunction",
    "RichFlatMapFunction",
    "RichReduceFunction",
    "RichAggregateFunction",
    "RichCoMapFunction",
    "RichCoFlatMapFunction",
    "RichJoinFunction",
    "RichFlatJoinFunction",
    "RichCoGroupFunction",
    "RichWindowFunction",
    "RichAllWindowFunction",
    "RichAsyncFunction",
    "RichSourceFunction",
    "RuntimeContext",
    "KeyedStateStore",
]
