"""Names that a program may import from a module that does not define them, and where each of them is defined.

PyFlink's modules hand out what they import, and programs rely on it: ``from pyflink.datastream.window import Time``.
Names of Flink 1 lead to what has taken their place. `tests/parity` holds the first table against what it has recorded
of PyFlink's modules.
"""

from __future__ import annotations

from collections.abc import Iterable

_HOMES = {
    "eventide.common.completable_future": "CompletableFuture",
    "eventide.common.config_options": "ConfigOption ConfigOptions",
    "eventide.common.configuration": "Configuration",
    "eventide.common.constants": "MAX_LONG_VALUE MIN_LONG_VALUE",
    "eventide.common.execution_config": "ExecutionConfig",
    "eventide.common.input_dependency_constraint": "InputDependencyConstraint",
    "eventide.common.job": "JobClient JobExecutionResult JobID JobStatus",
    "eventide.common.restart_strategy": "RestartStrategies RestartStrategyConfiguration",
    "eventide.common.serialization": "BulkWriterFactory ByteArraySchema DeserializationSchema Encoder "
    "SerializationSchema SimpleStringSchema",
    "eventide.common.serializer": "TypeSerializer",
    "eventide.common.time": "Duration Instant Time",
    "eventide.common.timestamp_assigner": "RecordTimestampAssigner TimestampAssigner VectorizedTimestampAssigner",
    "eventide.common.type_variables": "IN IN1 IN2 K KEY OUT T V W W2",
    "eventide.common.typeinfo": "RowTypeInfo TypeInformation Types typeinfo",
    "eventide.common.types": "Row RowKind",
    "eventide.common.watermark": "MAX_WATERMARK UNINITIALIZED Watermark",
    "eventide.common.watermark_generator": "BatchWatermarkOutput VectorizedWatermarkGenerator WatermarkGenerator "
    "WatermarkGeneratorContext WatermarkOutput",
    "eventide.common.watermark_generators": "AscendingTimestampsWatermarks BoundedOutOfOrdernessWatermarks "
    "NoWatermarksGenerator PunctuatedWatermarks TimeLagWatermarks WatermarksWithIdleness",
    "eventide.common.watermark_strategy": "NullTimestamps WatermarkStrategy",
    "eventide.metrics": "MetricGroup",
    "eventide.datastream.async_data_stream": "AsyncDataStream",
    "eventide.datastream.async_retry_strategies": "async_retry_strategies",
    "eventide.datastream.checkpoint_config": "CheckpointConfig",
    "eventide.datastream.checkpoint_storage": "CheckpointStorage FileSystemCheckpointStorage "
    "JobManagerCheckpointStorage",
    "eventide.datastream.checkpointing_mode": "CheckpointingMode",
    "eventide.datastream.connectors.base": "DeliveryGuarantee Sink Source",
    "eventide.datastream.connectors.file_system": "BulkFormat BulkWriterFactory FilePathFilter FileProcessingMode "
    "StreamFormat",
    "eventide.datastream.data_stream": "AllWindowedStream BroadcastConnectedStream BroadcastStream ConnectedStreams "
    "DataStream DataStreamSink KeyedStream WindowedStream",
    "eventide.datastream.execution_mode": "RuntimeExecutionMode",
    "eventide.datastream.externalized_checkpoint_retention": "ExternalizedCheckpointRetention",
    "eventide.datastream.formats.avro": "AvroRowDeserializationSchema AvroRowSerializationSchema AvroSchema",
    "eventide.datastream.formats.csv": "CsvRowDeserializationSchema CsvRowSerializationSchema",
    "eventide.datastream.formats.json": "JsonRowDeserializationSchema JsonRowSerializationSchema",
    "eventide.datastream.functions": "AggregateFunction AllWindowFunction AscendingTimestampExtractor "
    "AssignerWithPeriodicWatermarks AssignerWithPunctuatedWatermarks AsyncFunction AsyncRetryPredicate "
    "AsyncRetryStrategy BoundedOutOfOrdernessTimestampExtractor BroadcastProcessFunction CoFlatMapFunction "
    "CoMapFunction CoProcessFunction FilterFunction FlatMapFunction Function KeyedBroadcastProcessFunction "
    "KeyedCoProcessFunction KeyedProcessFunction KeyedStateStore KeySelector MapFunction Partitioner "
    "ProcessAllWindowFunction ProcessFunction ProcessWindowFunction ReduceFunction RichAggregateFunction "
    "RichAllWindowFunction RichAsyncFunction RichCoFlatMapFunction RichCoGroupFunction RichCoMapFunction "
    "RichFilterFunction RichFlatJoinFunction RichFlatMapFunction RichFunction RichJoinFunction RichMapFunction "
    "RichReduceFunction RichSourceFunction RichWindowFunction RuntimeContext SourceContext SourceFunction "
    "WindowFunction",
    "eventide.datastream.output_tag": "OutputTag",
    "eventide.datastream.slot_sharing_group": "MemorySize SlotSharingGroup",
    "eventide.datastream.state": "AggregatingState AggregatingStateDescriptor BroadcastState ListState "
    "ListStateDescriptor MapState MapStateDescriptor ReadOnlyBroadcastState ReducingState ReducingStateDescriptor "
    "State StateDescriptor ValueState ValueStateDescriptor",
    "eventide.datastream.state_backend": "EmbeddedRocksDBStateBackend HashMapStateBackend PredefinedOptions "
    "StateBackend",
    "eventide.datastream.stream_execution_environment": "StreamExecutionEnvironment",
    "eventide.datastream.time_characteristic": "TimeCharacteristic",
    "eventide.datastream.time_domain": "TimeDomain",
    "eventide.datastream.timerservice": "TimerService",
    "eventide.datastream.window": "CountSlidingWindowAssigner CountTumblingWindowAssigner CountWindow "
    "CountWindowSerializer GlobalWindow GlobalWindowSerializer MergingWindowAssigner TimeWindow TimeWindowSerializer "
    "Trigger TriggerResult Window WindowAssigner",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

_SCHEMAS = "AvroRow{0} CsvRow{0} JsonRow{0}"

REEXPORTS = {
    module: {name: _HOME[name] for name in names.split()}
    for module, names in {
        "common.config_options": "T",
        "common.job_client": "CompletableFuture JobExecutionResult JobID JobStatus",
        "common.job_execution_result": "JobID",
        # In Flink 1, schemas were defined here.
        "common.serialization": f"{_SCHEMAS.format('SerializationSchema')} {_SCHEMAS.format('DeserializationSchema')}",
        "common.serializer": "T",
        "datastream.async_data_stream": "async_retry_strategies",
        "datastream.async_retry_strategies": "AsyncRetryPredicate AsyncRetryStrategy OUT",
        "datastream.connectors.number_seq": "Source",
        "datastream.connectors.file_system": "Duration Encoder Sink Source",
        "datastream.connectors.kafka": "DeliveryGuarantee DeserializationSchema Row SerializationSchema Sink Source "
        "SourceFunction TypeInformation Types typeinfo",
        "datastream.data_stream": "AggregateFunction AllWindowFunction BroadcastProcessFunction CoFlatMapFunction "
        "CoMapFunction CoProcessFunction CountSlidingWindowAssigner CountTumblingWindowAssigner CountWindowSerializer "
        "ExecutionConfig FilterFunction FlatMapFunction Function GlobalWindowSerializer KeyedBroadcastProcessFunction "
        "KeyedCoProcessFunction KeyedProcessFunction KeySelector ListStateDescriptor MapFunction MapStateDescriptor "
        "MergingWindowAssigner OutputTag Partitioner ProcessAllWindowFunction ProcessFunction ProcessWindowFunction "
        "ReduceFunction ReducingState ReducingStateDescriptor Row RowTypeInfo RuntimeContext Sink SlotSharingGroup "
        "StateDescriptor TimeWindowSerializer TimestampAssigner Trigger TypeInformation Types WatermarkStrategy "
        "WindowAssigner WindowFunction AggregatingStateDescriptor typeinfo",
        "datastream.formats.avro": "SerializationSchema TypeInformation BulkWriterFactory DeserializationSchema",
        "datastream.formats.csv": "BulkWriterFactory DeserializationSchema SerializationSchema StreamFormat "
        "TypeInformation",
        "datastream.formats.json": "TypeInformation DeserializationSchema SerializationSchema typeinfo",
        "datastream.formats.orc": "BulkWriterFactory Configuration",
        "datastream.formats.parquet": "BulkFormat BulkWriterFactory AvroSchema Configuration StreamFormat",
        "datastream.functions": "AggregatingState AggregatingStateDescriptor BroadcastState IN IN1 IN2 KEY ListState "
        "ListStateDescriptor MapState MapStateDescriptor MetricGroup OUT ReadOnlyBroadcastState ReducingState "
        "ReducingStateDescriptor TimeDomain TimerService ValueState ValueStateDescriptor W W2",
        "datastream.output_tag": "TypeInformation Types RowTypeInfo",
        "datastream.state": "Duration IN K OUT T Time TypeInformation Types V",
        "datastream.stream_execution_environment": "SlotSharingGroup Types",
        "datastream.window": "IN KEY MAX_LONG_VALUE MIN_LONG_VALUE MetricGroup OUT OutputTag ReduceFunction "
        "ReducingState ReducingStateDescriptor RuntimeContext State StateDescriptor T Time TypeSerializer Types "
        "ValueStateDescriptor W W2",
    }.items()
}
"""By module, below ``eventide``: names that it hands out, and the module that each of them is defined in."""


def homes_of(names: Iterable[str]) -> dict[str, str]:
    """Return, by name, the module that defines each of the names."""
    return {name: _HOME[name] for name in names}


_CLEANUP = {
    "ExternalizedCheckpointCleanup": (
        "eventide.datastream.externalized_checkpoint_retention.ExternalizedCheckpointRetention",
        "ExternalizedCheckpointRetention",
    )
}
_BACKENDS = {
    name: (f"eventide.datastream._hints.{name}", f"{use}, and set_checkpoint_storage_dir(...)")
    for name, use in (
        ("MemoryStateBackend", "HashMapStateBackend"),
        ("FsStateBackend", "HashMapStateBackend"),
        ("RocksDBStateBackend", "EmbeddedRocksDBStateBackend"),
    )
}
_VERSIONS = {
    f"{name}{version}": (f"eventide.datastream.connectors.kafka.{name}", name)
    for name in ("FlinkKafkaConsumer", "FlinkKafkaProducer")
    for version in ("09", "010", "011")
}

OLDER_NAMES: dict[str, dict[str, tuple[str, str]]] = {
    "datastream": {**_CLEANUP, **_BACKENDS},
    "datastream.checkpoint_config": _CLEANUP,
    "datastream.state_backend": _BACKENDS,
    "datastream.connectors": _VERSIONS,
    "datastream.connectors.kafka": _VERSIONS,
}
"""By module, below ``eventide``: names of Flink 1, the full name of what each leads to, and what to write instead."""
