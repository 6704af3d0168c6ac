"""PyFlink's names that a module of eventide does not define: found in their own modules, or refused with a reason.

`hand_out_names` gives a module its ``__getattr__``. It finds names that the module hands out lazily, names that
PyFlink's module re-exports, and names of Flink 1. To any other name it answers with an AttributeError, so that
``hasattr`` is false. An ``import`` statement would swallow this error and its reason; it then looks for a submodule of
that name, and `AbsentNames`, a finder of modules, raises an ImportError with the reason. `says_what_is_absent` does the
same for members of a class. Type checkers see none of this: to them, absent names do not exist.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from inspect import getattr_static
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, NoReturn, TypeVar

__all__ = [
    "MEMBERS",
    "MODULES",
    "NAMES",
    "OLDER_NAMES",
    "REEXPORTS",
    "AbsentNames",
    "hand_out_names",
    "homes_of",
    "says_what_is_absent",
]

_C = TypeVar("_C", bound=type)

_ROOT = "eventide."


def sentence(name: str, reason: str) -> str:
    """Say of a name that it is absent, and why."""
    return f"{name} is not in eventide: {reason}. See 'From PyFlink' and 'Parity' in eventide's documentation."


class AbsentNames(MetaPathFinder):
    """A finder that says why a module, or a name in it, is absent. It is asked last, so it slows down no import."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find nothing.

        Raises:
            ImportError: PyFlink has a module or a name here, and eventide has neither.
        """
        name = fullname.removeprefix(_ROOT)
        if name != fullname and name in MODULES:
            raise ModuleNotFoundError(sentence(fullname, MODULES[name]))
        if name != fullname and name.rpartition(".")[2] in NAMES:
            raise ImportError(sentence(fullname, NAMES[name.rpartition(".")[2]]))


def hand_out_names(module: str, lazy: Mapping[str, str] | None = None) -> None:
    """Give a module a ``__getattr__`` that finds the names which the module itself does not define.

    A type checker, which would take any name of a module that defines a ``__getattr__``, does not see it. ``dir`` lists
    the lazy names too.

    Args:
        module: The full name of the module.
        lazy: The names that this module hands out and loads when they are first used, with the modules that have them.
    """
    inside = module.removeprefix(_ROOT)
    older = OLDER_NAMES.get(inside, {})
    homes = {**REEXPORTS.get(inside, {}), **(lazy or {})}

    def __getattr__(name: str) -> object:  # noqa: N807 - the name that tracebacks show
        if name == "__path__":
            return []  # only where there is a path, an import statement asks the finders for a name as a submodule
        if name in older:
            home, successor = older[name]
            warnings.warn(f"{module}.{name} is of Flink 1; use {successor}", DeprecationWarning, stacklevel=2)
        elif name in homes:
            home = homes[name] if homes[name].endswith(f".{name}") else f"{homes[name]}:{name}"
        elif name in NAMES:
            raise AttributeError(sentence(f"{module}.{name}", NAMES[name]))
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = resolve_name(home)
        setattr(sys.modules[module], name, found)  # an import statement asks twice
        return found

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[module]), *(lazy or {})})

    vars(sys.modules[module]).update(__getattr__=__getattr__, __dir__=__dir__)


def says_what_is_absent(cls: _C) -> _C:
    """Let a class say why it has not all the members that PyFlink's class of this name has."""
    for member, reason in MEMBERS[cls.__qualname__].items():
        if member not in vars(cls):
            setattr(cls, member, _AbsentMember(sentence(f"{cls.__qualname__}.{member}", reason)))
    inherited: Any = cls.__dir__

    def present(self: object) -> list[str]:
        return [name for name in inherited(self) if not isinstance(getattr_static(self, name, None), _AbsentMember)]

    cls.__dir__ = present  # type: ignore[assignment, method-assign]
    return cls


class _AbsentMember:
    """An attribute that is not there, on the class and on its objects: ``hasattr`` is false."""

    def __init__(self, said: str) -> None:
        self._said = said

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(self._said)


# Names that a program may import from a module that does not define them, and where each of them is defined.
#
# PyFlink's modules hand out what they import, and programs rely on it: ``from pyflink.datastream.window import Time``.
# Names of Flink 1 lead to what has taken their place. `tests/parity` holds the first table against what it has recorded
# of PyFlink's modules.
_HOMES = {
    "eventide.common.completable_future": "CompletableFuture",
    "eventide.common.config_options": "ConfigOption ConfigOptions",
    "eventide.common.configuration": "Configuration",
    "eventide.common.constants": "MAX_LONG_VALUE MIN_LONG_VALUE",
    "eventide.common.execution_config": "ExecutionConfig",
    "eventide.common.execution_mode": "ExecutionMode",
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
    "eventide.datastream.connectors.file_system": "BulkFormat BulkWriterFactory DefaultRollingPolicy FilePathFilter "
    "FileProcessingMode StreamFormat",
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
        "common.execution_config": "ExecutionMode InputDependencyConstraint RestartStrategies "
        "RestartStrategyConfiguration",
        "common.job_client": "CompletableFuture JobExecutionResult JobID JobStatus",
        "common.job_execution_result": "JobID",
        # In Flink 1, schemas were defined here.
        "common.serialization": f"{_SCHEMAS.format('SerializationSchema')} {_SCHEMAS.format('DeserializationSchema')} "
        "typeinfo",
        "common.serializer": "T",
        "datastream.async_data_stream": "async_retry_strategies",
        "datastream.async_retry_strategies": "AsyncRetryPredicate AsyncRetryStrategy OUT",
        # In Flink 1, all connectors were one module.
        "datastream.connectors": "DefaultRollingPolicy DeserializationSchema Duration Encoder RowTypeInfo "
        "SerializationSchema SourceFunction TypeInformation typeinfo",
        "datastream.connectors.hybrid_source": "Source",
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
        "WindowAssigner WindowFunction AggregatingStateDescriptor ValueState ValueStateDescriptor typeinfo",
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
        "datastream.stream_execution_environment": "SlotSharingGroup StateBackend Types",
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
    "common": {
        "ExecutionMode": ("eventide.common.execution_mode.ExecutionMode", "env.set_runtime_mode(...)"),
    },
    "common.serialization": {
        "SimpleStringEncoder": (
            "eventide.common.serialization.Encoder.simple_string_encoder",
            "Encoder.simple_string_encoder()",
        )
    },
    "datastream": {**_CLEANUP, **_BACKENDS},
    "datastream.checkpoint_config": _CLEANUP,
    "datastream.state_backend": _BACKENDS,
    "datastream.connectors": _VERSIONS,
    "datastream.connectors.kafka": _VERSIONS,
}
"""By module, below ``eventide``: names of Flink 1, the full name of what each leads to, and what to write instead."""


# Why a PyFlink name is not here, and what to do instead: half a sentence each, which follows a colon.
#
# Members are those of a class, by its name; names are those of modules and facades; modules are whole ones. A name that
# comes to eventide leaves this table: `tests/parity` finds one that stands in both.
_JAVA = "it is for Java objects, and eventide has none"
_CONNECTOR = (
    "it wraps a Flink connector, written in Java; read with env.from_data_frame(...) over a Spark source, "
    "write with sink_to(...), which takes a FormatSink or a function of a DataFrame and a batch id"
)
_JDBC = (
    "it wraps a Flink connector, written in Java; write with sink_to(function), where function(rows, batch_id) "
    'calls rows.write.jdbc(url, table, mode="append"), or a driver for Python such as sqlite3, and read with '
    "env.from_data_frame(spark.read.jdbc(url, table), ...); see A database out in the guide on sources and sinks"
)
_DYNAMIC = (
    "it asks a service in Java which clusters there are; read each with a KafkaSource of its own, and union(...) them"
)
_INTERNAL = "it is internal to PyFlink, and programs do not use it"
_ACCUMULATORS = "Python functions have no accumulators, in PyFlink or here; get_metrics() returns the counters"
_LISTING = (
    "files are found and begun by eventide, in the order in which they were last changed; FileSource has "
    "set_split_by(...)"
)
_COLUMNS = "values travel as columns of Arrow; to_arrow(...) and from_arrow(...) are the way there and back"
_TYPES = "types are made with Types, such as Types.SQL_DATE(), and compare by value, so ask for == and not for a class"
_CACHE = "Spark caches results as DataFrames; call to_data_frame().cache() on a bounded stream in BATCH mode"
_COMPACTION = "a sink merges no small files; `eventide compact DIRECTORY` does, or a table format"
_AVRO = (
    "Spark reads and writes Avro, with its package for it: env.from_data_frame(...) over a DataFrame, and "
    'sink_to(FormatSink("avro", {...}))'
)
_ARRAYS = "each column of arrays has a separator of its own; name it in add_array_column(name, separator)"
_METRICS = "triggers count nothing of their own; a window function does, with get_metrics_group() of its RuntimeContext"
_INPUT_FORMAT = "an InputFormat is an object of Java; use a FileSource, or a Spark DataFrame"
_TO_JAVA = "it moves values between Python and Java, and here they stay in Python"
_GATEWAY = "there is no gateway to a Flink JVM; Spark's session is SparkSession.active()"
_SERIALIZER = "windows are stored as they are, so no serializer is asked for"

MODULES = {
    "table": "SQL and the Table API stay in Flink; use Spark SQL, with to_data_frame() of a stream and "
    "env.from_data_frame(...) as the ways there and back",
    "java_gateway": _GATEWAY,
    "fn_execution": "it runs functions in Flink's workers; here, Spark's Python workers run them",
    "util": _INTERNAL,
    "serializers": _INTERNAL,
    "common.utils": _JAVA,
    "common.io": _INPUT_FORMAT,
    "datastream.utils": _TO_JAVA,
    "datastream.connectors.cassandra": _CONNECTOR,
    "datastream.connectors.dynamic_kafka": _DYNAMIC,
    "datastream.connectors.elasticsearch": _CONNECTOR,
    "datastream.connectors.jdbc": _JDBC,
    "datastream.connectors.kinesis": _CONNECTOR,
    "datastream.connectors.pulsar": _CONNECTOR,
    "datastream.connectors.rabbitmq": _CONNECTOR,
}

_NAMES = {
    _JDBC: "JdbcConnectionOptions JdbcExecutionOptions JdbcSink",
    _DYNAMIC: "DynamicKafkaSource DynamicKafkaSourceBuilder KafkaMetadataService KafkaStreamSetSubscriber "
    "KafkaStreamSubscriber SingleClusterTopicMetadataService StreamPatternSubscriber",
    _DYNAMIC + "; whole records are read by the class of this name in eventide.datastream.connectors.kafka": (
        "KafkaRecordDeserializationSchema"
    ),
    _CONNECTOR: "PulsarSource PulsarSourceBuilder RMQConnectionConfig RMQSink RMQSource StartCursor StopCursor",
    _AVRO: "AvroBulkWriters AvroInputFormat GenericRecordAvroTypeInfo",
    "Parquet has types of its own; read with ParquetColumnarRowInputFormat": "AvroParquetReaders",
    "Parquet has types of its own; write with ParquetBulkWriters": "AvroParquetWriters",
    "it wraps an assigner of Java; subclass AssignerWithPeriodicWatermarks": "AssignerWithPeriodicWatermarksWrapper",
    "it wraps a class of Java; state lies in Spark's state store": "CustomStateBackend",
    "it wraps a class of Java; name the directory of the checkpoint with "
    "get_checkpoint_config().set_checkpoint_storage_dir(...)": "CustomCheckpointStorage",
    _CACHE: "CachedDataStream",
    "it wraps a class of Java; hand sink_to(...) a Sink, or a function of a DataFrame and a batch id": "SinkFunction",
    "Flink has it in Java only; hand sink_to(...) a Sink, or a function of a DataFrame and a batch id": (
        "RichSinkFunction"
    ),
    "Flink has it in Java only; a source that reads in several subtasks is a Source with several splits": (
        "ParallelSourceFunction RichParallelSourceFunction"
    ),
    "Flink has it in Java only; every kind of function has open(...) and close(), and its Rich... class has "
    "get_runtime_context()": "AbstractRichFunction",
    "Flink 1 had it, for Java objects": "from_j_flink_time to_j_flink_time",
    "a function has no state other than that of its keys and of a broadcast stream": "OperatorStateStore",
    "call RollingPolicy.on_checkpoint_rolling_policy()": "OnCheckpointRollingPolicy",
    _COMPACTION: "FileCompactor FileCompactStrategy",
    _LISTING: "FileEnumeratorProvider FileSplitAssignerProvider",
    _TYPES: "BasicArrayTypeInfo BasicType InstantTypeInfo LocalTimeTypeInfo ObjectArrayTypeInfo PrimitiveArrayTypeInfo",
    "it gives a row type of the Table API another form; declare Types.ROW_NAMED(...)": "ExternalTypeInfo",
    _GATEWAY: "get_gateway",
    _JAVA: "add_jars_to_context_class_loader convert_py4j_exception from_j_duration get_field get_field_value "
    "get_j_env_configuration invoke_method is_instance_of is_local_deployment JavaFunctionWrapper JavaObjectWrapper "
    "load_java_class to_j_duration to_jarray",
    _TO_JAVA: "convert_to_python_obj create_hadoop_configuration create_java_properties",
    _INPUT_FORMAT: "InputFormat",
    _INTERNAL: "AsyncFunctionDescriptor FlinkKafkaConsumerBase FlinkKafkaProducerBase FunctionWrapper "
    "InternalIterableAllWindowFunction InternalIterableProcessAllWindowFunction InternalIterableProcessWindowFunction "
    "InternalIterableWindowFunction InternalProcessAllWindowContext InternalProcessWindowContext "
    "InternalSingleValueAllWindowFunction InternalSingleValueProcessAllWindowFunction "
    "InternalSingleValueProcessWindowFunction InternalSingleValueWindowFunction InternalWindowFunction "
    "long_to_int_with_bit_mixing Min mod_inverse NullByteKeySelector PassThroughAllWindowFunction "
    "PassThroughWindowFunction PickleSerializer Public ReduceFunctionWrapper ResultTypeQueryable "
    "RowDataBulkWriterFactory StreamTransformer SupportsPreprocessing WindowOperationDescriptor WINDOW_STATE_NAME",
}
NAMES = {name: reason for reason, names in _NAMES.items() for name in names.split()}

MEMBERS = {
    "StreamExecutionEnvironment": {
        "register_cached_file": "add_python_archive(...) brings files to where functions run",
        "create_input": "an InputFormat is an object of Java; use from_source(...) with a FileSource, or "
        "from_data_frame(...)",
        "get_default_local_parallelism": "Spark's master sets it: get_parallelism() is the number of cores",
        "set_default_local_parallelism": 'Spark\'s master sets it: Configuration().set_string("spark.master", '
        '"local[4]") for get_execution_environment(...), or set_parallelism(...)',
        "_j_stream_execution_environment": _JAVA,
    },
    "DataStream": {"cache": _CACHE, "_j_data_stream": _JAVA},
    "KeyedStream": {"AccumulateType": _INTERNAL},
    "Trigger.TriggerContext": {"get_metric_group": _METRICS},
    "StateTtlConfig.CleanupStrategies": dict.fromkeys(
        ["EMPTY_STRATEGY", "CleanupStrategy", "EmptyCleanupStrategy"], _INTERNAL
    ),
    "CsvSchemaBuilder": {
        "disable_array_element_separator": _ARRAYS,
        "remove_array_element_separator": _ARRAYS,
        "set_array_element_separator": _ARRAYS,
        "set_allow_comments": "Arrow knows no comments in CSV files; take them out with a filter over lines of text",
        "set_any_property_name": "every column has a name; FileSource.csv(...) takes them from the first file",
    },
    "JobClient": {
        "get_accumulators": _ACCUMULATORS,
    },
    "JobExecutionResult": {"get_accumulator_result": _ACCUMULATORS, "get_all_accumulator_results": _ACCUMULATORS},
    "TypeInformation": {
        "get_java_type_info": _JAVA,
        "from_internal_type": _COLUMNS,
        "need_conversion": _COLUMNS,
        "to_internal_type": _COLUMNS,
    },
    "BasicTypeInfo": {
        f"{name}_TYPE_INFO": "call Types.STRING(), or the like"
        for name in (
            *("STRING", "CHAR", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"),
            *("BIG_INT", "BIG_DEC", "INSTANT"),
        )
    },
    "DateTypeInfo": {"EPOCH_ORDINAL": _COLUMNS},
    "TimeTypeInfo": {"EPOCH_ORDINAL": _COLUMNS},
    "RowKind": {"to_j_row_kind": _JAVA},
    "OutputTag": {"get_java_output_tag": _JAVA},
    "MemorySize": {"get_java_memory_size": _JAVA},
    "SlotSharingGroup": {"get_java_slot_sharing_group": _JAVA},
    "FileSink": {
        "get_transformer": _INTERNAL,
        "DefaultRowFormatBuilder": _INTERNAL,
        "DefaultBulkFormatBuilder": _INTERNAL,
    },
    "KafkaSink": {"get_transformer": _INTERNAL},
    "FileSink.BaseBuilder": {"disable_compact": _COMPACTION, "enable_compact": _COMPACTION},
    "FileSourceBuilder": {"set_file_enumerator": _LISTING, "set_split_assigner": _LISTING},
    "WindowAssigner": {"get_window_serializer": _SERIALIZER},
    "ContinuousEventTimeTrigger": {"register_next_fire_timestamp": _INTERNAL},
    "ContinuousProcessingTimeTrigger": {"register_next_fire_timestamp": _INTERNAL},
}
