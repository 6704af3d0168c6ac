"""Why a name of PyFlink's is not here, and what to do instead: half a sentence each, which follows a colon.

Members are those of a class, by its name; names are those of modules and facades; modules are whole ones. A name that
comes to eventide leaves this table: `tests/parity` finds one that stands in both.
"""

from __future__ import annotations

_JAVA = "it is about an object of Java, and names of eventide stand for none"
_CONNECTOR = (
    "it wraps a connector of Flink's, written in Java; read with env.from_data_frame(...) over a source of Spark's, "
    "write with sink_to(...), which takes a FormatSink or a function of a DataFrame and a batch id"
)
_JDBC = (
    "it wraps a connector of Flink's, written in Java; write with sink_to(function), where function(rows, batch_id) "
    'calls rows.write.jdbc(url, table, mode="append"), or a driver for Python such as sqlite3, and read with '
    "env.from_data_frame(spark.read.jdbc(url, table), ...); see A database out in the guide on sources and sinks"
)
_DYNAMIC = (
    "it asks a service in Java which clusters there are; read each with a KafkaSource of its own, and union(...) them"
)
_INTERNAL = "it is a part that PyFlink makes for itself, and programs have no use for it"
_SAVEPOINT = (
    "a savepoint is written of a job that has stopped: cancel() it, or let it end with set_available_now(), and call "
    "`eventide savepoint CHECKPOINT TARGET`"
)
_ACCUMULATORS = "functions in Python have no accumulators, in PyFlink neither; what is counted, get_metrics() says"
_LISTING = (
    "files are found and begun by eventide, in the order in which they were last changed; FileSource has "
    "set_split_by(...)"
)
_COLUMNS = "values travel as columns of Arrow; to_arrow(...) and from_arrow(...) are the way there and back"
_TYPES = "types are made with Types, such as Types.SQL_DATE(), and compare by value, so ask for == and not for a class"
_CACHE = "Spark keeps results as DataFrames; to_data_frame().cache() does, of a bounded stream in BATCH mode"
_COMPACTION = "Spark does not put small files together; let a job of its own, or a table format, do that"
_AVRO = (
    "Spark reads and writes Avro, with its package for it: env.from_data_frame(...) over a DataFrame, and "
    'sink_to(FormatSink("avro", {...}))'
)
_ARRAYS = "each column of arrays has a separator of its own; name it in add_array_column(name, separator)"
_METRICS = "triggers count nothing of their own; a window function does, with get_metrics_group() of its RuntimeContext"
_INPUT_FORMAT = "an InputFormat is an object of Java; use a FileSource, or a DataFrame of Spark's"
_TO_JAVA = "it moves values between Python and Java, and here they stay in Python"
_GATEWAY = "there is no gateway to a JVM of Flink's; Spark's session is SparkSession.active()"
_SERIALIZER = "windows are stored as they are, so no serializer is asked for"

MODULES = {
    "table": "SQL and the Table API stay in Flink; use Spark SQL, with to_data_frame() of a stream and "
    "env.from_data_frame(...) as the ways there and back",
    "java_gateway": _GATEWAY,
    "fn_execution": "it is what runs functions within Flink's workers; here, Spark's Python workers do",
    "util": _INTERNAL,
    "serializers": _INTERNAL,
    "common.utils": _JAVA,
    "common.io": _INPUT_FORMAT,
    "datastream.utils": _TO_JAVA,
    "datastream.connectors.cassandra": _CONNECTOR,
    "datastream.connectors.dynamic_kafka": _DYNAMIC,
    "datastream.connectors.elasticsearch": _CONNECTOR,
    "datastream.connectors.hybrid_source": "a source does not follow another one here; union(...) reads both at once, "
    "or let a program read the first with set_available_now(), and another the second",
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
    "a function has no state beside that of its keys and of a broadcast stream": "OperatorStateStore",
    "call RollingPolicy.default_rolling_policy()": "DefaultRollingPolicy",
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
        "get_default_local_parallelism": "Spark's master says it: get_parallelism() is the number of cores",
        "set_default_local_parallelism": 'Spark\'s master says it: Configuration().set_string("spark.master", '
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
        "stop_with_savepoint": _SAVEPOINT,
        "trigger_savepoint": _SAVEPOINT,
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
