"""Streams, windows, functions and state (PyFlink: ``pyflink.datastream``).

Names are imported when they are first used: a worker that needs a trigger does not load the fluent API.
"""

from typing import TYPE_CHECKING

from eventide._absent import hand_out_names, homes_of

if TYPE_CHECKING:
    from eventide.api.functions import *
    from eventide.api.functions.output_tag import *
    from eventide.api.functions.timers import *
    from eventide.api.windows import *
    from eventide.connectors.file_system import *
    from eventide.datastream.async_data_stream import *
    from eventide.datastream.checkpoint_config import CheckpointConfig
    from eventide.datastream.checkpoint_storage import *
    from eventide.datastream.checkpointing_mode import *
    from eventide.datastream.data_stream import *
    from eventide.datastream.execution_mode import *
    from eventide.datastream.externalized_checkpoint_retention import *
    from eventide.datastream.slot_sharing_group import *
    from eventide.datastream.state_backend import *
    from eventide.datastream.stream_execution_environment import StreamExecutionEnvironment
    from eventide.datastream.time_characteristic import *

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
    "FilePathFilter",
    "FileProcessingMode",
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

hand_out_names(__name__, homes_of(__all__))
