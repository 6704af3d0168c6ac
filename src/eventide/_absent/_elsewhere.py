"""Names that a program may import from a module that does not define them, and where each of them is defined.

PyFlink's modules hand out what they import, and programs rely on it: ``from pyflink.datastream.window import Time``.
Names of Flink 1 lead to what has taken their place. `tests/parity` holds the first table against what it has recorded
of PyFlink's modules.
"""

from __future__ import annotations

_COMMON, _STREAM = "eventide.common", "eventide.datastream"

_HOMES = {
    f"{_COMMON}.completable_future": "CompletableFuture",
    f"{_COMMON}.configuration": "Configuration",
    f"{_COMMON}.constants": "MAX_LONG_VALUE MIN_LONG_VALUE",
    f"{_COMMON}.execution_config": "ExecutionConfig",
    f"{_COMMON}.job": "JobExecutionResult JobID JobStatus",
    f"{_COMMON}.serialization": "BulkWriterFactory DeserializationSchema Encoder SerializationSchema",
    f"{_COMMON}.serializer": "TypeSerializer",
    f"{_COMMON}.time": "Duration Time",
    f"{_COMMON}.type_variables": "IN IN1 IN2 K KEY OUT T V W W2",
    f"{_COMMON}.typeinfo": "RowTypeInfo TypeInformation Types typeinfo",
    f"{_COMMON}.types": "Row",
    f"{_COMMON}.watermark_strategy": "TimestampAssigner WatermarkStrategy",
    "eventide.metrics": "MetricGroup",
    f"{_STREAM}.async_retry_strategies": "async_retry_strategies",
    f"{_STREAM}.connectors.base": "DeliveryGuarantee Sink Source",
    f"{_STREAM}.connectors.file_system": "StreamFormat",
    f"{_STREAM}.formats.avro": "AvroRowDeserializationSchema AvroRowSerializationSchema AvroSchema",
    f"{_STREAM}.formats.csv": "CsvRowDeserializationSchema CsvRowSerializationSchema",
    f"{_STREAM}.formats.json": "JsonRowDeserializationSchema JsonRowSerializationSchema",
    f"{_STREAM}.functions": "AggregateFunction AllWindowFunction AsyncRetryPredicate AsyncRetryStrategy "
    "BroadcastProcessFunction CoFlatMapFunction CoMapFunction CoProcessFunction FilterFunction FlatMapFunction "
    "Function KeyedBroadcastProcessFunction KeyedCoProcessFunction KeyedProcessFunction KeySelector MapFunction "
    "Partitioner ProcessAllWindowFunction ProcessFunction ProcessWindowFunction ReduceFunction RuntimeContext "
    "SourceFunction WindowFunction",
    f"{_STREAM}.output_tag": "OutputTag",
    f"{_STREAM}.slot_sharing_group": "SlotSharingGroup",
    f"{_STREAM}.state": "AggregatingState AggregatingStateDescriptor BroadcastState ListState ListStateDescriptor "
    "MapState MapStateDescriptor ReadOnlyBroadcastState ReducingState ReducingStateDescriptor State StateDescriptor "
    "ValueState ValueStateDescriptor",
    f"{_STREAM}.time_domain": "TimeDomain",
    f"{_STREAM}.timerservice": "TimerService",
    f"{_STREAM}.window": "CountSlidingWindowAssigner CountTumblingWindowAssigner CountWindowSerializer "
    "GlobalWindowSerializer MergingWindowAssigner TimeWindowSerializer Trigger WindowAssigner",
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
        "datastream.formats.avro": "BulkWriterFactory DeserializationSchema",
        "datastream.formats.csv": "DeserializationSchema SerializationSchema",
        "datastream.formats.json": "DeserializationSchema SerializationSchema typeinfo",
        "datastream.formats.orc": "Configuration",
        "datastream.formats.parquet": "AvroSchema Configuration StreamFormat",
        "datastream.functions": "AggregatingState AggregatingStateDescriptor BroadcastState IN IN1 IN2 KEY ListState "
        "ListStateDescriptor MapState MapStateDescriptor MetricGroup OUT ReadOnlyBroadcastState ReducingState "
        "ReducingStateDescriptor TimeDomain TimerService ValueState ValueStateDescriptor W W2",
        "datastream.output_tag": "RowTypeInfo",
        "datastream.state": "Duration IN K OUT T Time TypeInformation Types V",
        "datastream.stream_execution_environment": "SlotSharingGroup Types",
        "datastream.window": "IN KEY MAX_LONG_VALUE MIN_LONG_VALUE MetricGroup OUT OutputTag ReduceFunction "
        "ReducingState ReducingStateDescriptor RuntimeContext State StateDescriptor T Time TypeSerializer Types "
        "ValueStateDescriptor W W2",
    }.items()
}
"""By module, below ``eventide``: names that it hands out, and the module that each of them is defined in."""

_RETENTION = "ExternalizedCheckpointRetention"
_CLEANUP = {
    "ExternalizedCheckpointCleanup": (f"{_STREAM}.externalized_checkpoint_retention.{_RETENTION}", _RETENTION),
}
_BACKENDS = {
    name: (f"{_STREAM}._state_backends_of_flink_1.{name}", f"{successor}, and set_checkpoint_storage_dir(...)")
    for name, successor in (
        ("MemoryStateBackend", "HashMapStateBackend"),
        ("FsStateBackend", "HashMapStateBackend"),
        ("RocksDBStateBackend", "EmbeddedRocksDBStateBackend"),
    )
}
_VERSIONS = {
    f"{name}{version}": (f"{_STREAM}.connectors.kafka.{name}", name)
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
