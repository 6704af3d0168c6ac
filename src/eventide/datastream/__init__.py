"""Streams, windows, functions and state (PyFlink: ``pyflink.datastream``).

Names are imported when they are first used: a worker that needs a trigger does not load the fluent API.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from eventide._absent import no_such_name

if TYPE_CHECKING:
    from eventide.datastream.async_data_stream import AsyncDataStream
    from eventide.datastream.checkpoint_config import CheckpointConfig
    from eventide.datastream.checkpoint_storage import (
        CheckpointStorage,
        FileSystemCheckpointStorage,
        JobManagerCheckpointStorage,
    )
    from eventide.datastream.checkpointing_mode import CheckpointingMode
    from eventide.datastream.data_stream import (
        AllWindowedStream,
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
        DataStream,
        DataStreamSink,
        KeyedStream,
        WindowedStream,
    )
    from eventide.datastream.execution_mode import RuntimeExecutionMode
    from eventide.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
    from eventide.datastream.functions import (
        AggregateFunction,
        AllWindowFunction,
        AscendingTimestampExtractor,
        AssignerWithPeriodicWatermarks,
        AssignerWithPunctuatedWatermarks,
        AsyncFunction,
        AsyncRetryPredicate,
        AsyncRetryStrategy,
        BoundedOutOfOrdernessTimestampExtractor,
        BroadcastProcessFunction,
        CoFlatMapFunction,
        CoMapFunction,
        CoProcessFunction,
        FilterFunction,
        FlatMapFunction,
        Function,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        KeyedStateStore,
        KeySelector,
        MapFunction,
        Partitioner,
        ProcessAllWindowFunction,
        ProcessFunction,
        ProcessWindowFunction,
        ReduceFunction,
        RuntimeContext,
        SourceContext,
        SourceFunction,
        WindowFunction,
    )
    from eventide.datastream.output_tag import OutputTag
    from eventide.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
    from eventide.datastream.state_backend import (
        EmbeddedRocksDBStateBackend,
        HashMapStateBackend,
        PredefinedOptions,
        StateBackend,
    )
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment
    from eventide.datastream.time_characteristic import TimeCharacteristic
    from eventide.datastream.time_domain import TimeDomain
    from eventide.datastream.timerservice import TimerService
    from eventide.datastream.window import (
        CountWindow,
        GlobalWindow,
        MergingWindowAssigner,
        TimeWindow,
        Trigger,
        TriggerResult,
        Window,
        WindowAssigner,
    )

_MODULES = {
    "StreamExecutionEnvironment": "eventide.datastream.stream_execution_environment",
    "CheckpointConfig": "eventide.datastream.checkpoint_config",
    "RuntimeExecutionMode": "eventide.datastream.execution_mode",
    "TimeCharacteristic": "eventide.datastream.time_characteristic",
    "DataStream": "eventide.datastream.data_stream",
    "KeyedStream": "eventide.datastream.data_stream",
    "WindowedStream": "eventide.datastream.data_stream",
    "AllWindowedStream": "eventide.datastream.data_stream",
    "DataStreamSink": "eventide.datastream.data_stream",
    "OutputTag": "eventide.datastream.output_tag",
    "Function": "eventide.datastream.functions",
    "MapFunction": "eventide.datastream.functions",
    "FlatMapFunction": "eventide.datastream.functions",
    "FilterFunction": "eventide.datastream.functions",
    "KeySelector": "eventide.datastream.functions",
    "Partitioner": "eventide.datastream.functions",
    "ReduceFunction": "eventide.datastream.functions",
    "AggregateFunction": "eventide.datastream.functions",
    "ProcessFunction": "eventide.datastream.functions",
    "KeyedProcessFunction": "eventide.datastream.functions",
    "CoMapFunction": "eventide.datastream.functions",
    "CoFlatMapFunction": "eventide.datastream.functions",
    "CoProcessFunction": "eventide.datastream.functions",
    "KeyedCoProcessFunction": "eventide.datastream.functions",
    "BroadcastProcessFunction": "eventide.datastream.functions",
    "KeyedBroadcastProcessFunction": "eventide.datastream.functions",
    "BroadcastStream": "eventide.datastream.data_stream",
    "BroadcastConnectedStream": "eventide.datastream.data_stream",
    "CheckpointingMode": "eventide.datastream.checkpointing_mode",
    "ExternalizedCheckpointRetention": "eventide.datastream.externalized_checkpoint_retention",
    "AsyncFunction": "eventide.datastream.functions",
    "AsyncRetryPredicate": "eventide.datastream.functions",
    "AsyncRetryStrategy": "eventide.datastream.functions",
    "AsyncDataStream": "eventide.datastream.async_data_stream",
    "TimeDomain": "eventide.datastream.time_domain",
    "TimerService": "eventide.datastream.timerservice",
    "ConnectedStreams": "eventide.datastream.data_stream",
    "WindowFunction": "eventide.datastream.functions",
    "AllWindowFunction": "eventide.datastream.functions",
    "ProcessWindowFunction": "eventide.datastream.functions",
    "ProcessAllWindowFunction": "eventide.datastream.functions",
    "SourceFunction": "eventide.datastream.functions",
    "AscendingTimestampExtractor": "eventide.datastream.functions",
    "AssignerWithPeriodicWatermarks": "eventide.datastream.functions",
    "AssignerWithPunctuatedWatermarks": "eventide.datastream.functions",
    "BoundedOutOfOrdernessTimestampExtractor": "eventide.datastream.functions",
    "SourceContext": "eventide.datastream.functions",
    "RuntimeContext": "eventide.datastream.functions",
    "KeyedStateStore": "eventide.datastream.functions",
    "Window": "eventide.datastream.window",
    "TimeWindow": "eventide.datastream.window",
    "CountWindow": "eventide.datastream.window",
    "GlobalWindow": "eventide.datastream.window",
    "WindowAssigner": "eventide.datastream.window",
    "MergingWindowAssigner": "eventide.datastream.window",
    "TriggerResult": "eventide.datastream.window",
    "Trigger": "eventide.datastream.window",
    "CheckpointStorage": "eventide.datastream.checkpoint_storage",
    "JobManagerCheckpointStorage": "eventide.datastream.checkpoint_storage",
    "FileSystemCheckpointStorage": "eventide.datastream.checkpoint_storage",
    "SlotSharingGroup": "eventide.datastream.slot_sharing_group",
    "MemorySize": "eventide.datastream.slot_sharing_group",
    "StateBackend": "eventide.datastream.state_backend",
    "HashMapStateBackend": "eventide.datastream.state_backend",
    "EmbeddedRocksDBStateBackend": "eventide.datastream.state_backend",
    "PredefinedOptions": "eventide.datastream.state_backend",
}

__all__ = [
    "StreamExecutionEnvironment",
    "CheckpointConfig",
    "RuntimeExecutionMode",
    "TimeCharacteristic",
    "DataStream",
    "KeyedStream",
    "WindowedStream",
    "AllWindowedStream",
    "DataStreamSink",
    "OutputTag",
    "Function",
    "MapFunction",
    "FlatMapFunction",
    "FilterFunction",
    "KeySelector",
    "Partitioner",
    "ReduceFunction",
    "AggregateFunction",
    "ProcessFunction",
    "KeyedProcessFunction",
    "CoMapFunction",
    "CoFlatMapFunction",
    "CoProcessFunction",
    "KeyedCoProcessFunction",
    "BroadcastProcessFunction",
    "KeyedBroadcastProcessFunction",
    "BroadcastStream",
    "BroadcastConnectedStream",
    "CheckpointingMode",
    "ExternalizedCheckpointRetention",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "AsyncDataStream",
    "TimeDomain",
    "TimerService",
    "ConnectedStreams",
    "WindowFunction",
    "AllWindowFunction",
    "ProcessWindowFunction",
    "ProcessAllWindowFunction",
    "SourceFunction",
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPunctuatedWatermarks",
    "BoundedOutOfOrdernessTimestampExtractor",
    "SourceContext",
    "RuntimeContext",
    "KeyedStateStore",
    "Window",
    "TimeWindow",
    "CountWindow",
    "GlobalWindow",
    "WindowAssigner",
    "MergingWindowAssigner",
    "TriggerResult",
    "Trigger",
    "CheckpointStorage",
    "JobManagerCheckpointStorage",
    "FileSystemCheckpointStorage",
    "SlotSharingGroup",
    "MemorySize",
    "StateBackend",
    "HashMapStateBackend",
    "EmbeddedRocksDBStateBackend",
    "PredefinedOptions",
]


if not TYPE_CHECKING:  # otherwise a type checker would take any name

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise no_such_name(__name__, name)
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
