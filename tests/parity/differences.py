"""Differences of names that eventide has from PyFlink, by their path below `pyflink`: half a sentence each."""

from __future__ import annotations

_EMPTY = "always empty: there is neither Kryo nor a class of Java"
_NAME_IS_SHOWN = "without effect: the `name` is shown"
_AS_SET = "returns the checkpoint's setting, which has no effect"
_VALUE = "a description that is taken without effect"
_NEW = "gives a new strategy that keeps all the rest"
_CLEAN_UP = "whichever is set, state that expires leaves the checkpoint with the next micro-batch"
_ONE_BY_ONE = "elements are distributed in turn, so that a repeated micro-batch has the same results"


def _members(owner: str, names: str, why: str) -> dict[str, str]:
    return {f"{owner}.{name}": why for name in names.split()}


_CONFIG = "common.execution_config.ExecutionConfig"
_CHECKPOINTS = "datastream.checkpoint_config.CheckpointConfig"
_ENVIRONMENT = "datastream.stream_execution_environment.StreamExecutionEnvironment"
_STREAM = "datastream.data_stream.DataStream"
_STRATEGY = "common.watermark_strategy.WatermarkStrategy"
_FILES = "datastream.connectors.file_system"
_KAFKA = "datastream.connectors.kafka"
_TTL = "datastream.state.StateTtlConfig"

DIFFERENCES = {
    # common
    "common.completable_future.CompletableFuture": "is Python's `concurrent.futures.Future`",
    "common.config_options.ConfigOption": "has `key` and `default_value` as attributes",
    "common.input_dependency_constraint.InputDependencyConstraint": "no setting takes it, in PyFlink neither",
    **_members(
        _CONFIG, "get_default_kryo_serializer_classes get_registered_kryo_types get_registered_pojo_types", _EMPTY
    ),
    f"{_CONFIG}.set_auto_watermark_interval": "is the interval of micro-batches, and 0 by default: as soon as can be",
    **_members(
        "common.job_status.JobStatus",
        "CREATED FAILING CANCELLING SUSPENDED RECONCILING",
        "is there to be named; no job is in it",
    ),
    "common.restart_strategy.RestartStrategies": "a job that fails goes on from its checkpoint; has "
    "`exponential_delay_restart` too",
    "common.restart_strategy.RestartStrategies.fall_back_restart": "is what `restart-strategy.type` says, and nothing "
    "by default",
    "common.serialization.Encoder": "text is `str(element)`, `('wren', 1)` where PyFlink writes `(wren,1)`",
    **_members(
        "common.serialization", "SerializationSchema DeserializationSchema", "for functions; no source or sink takes it"
    ),
    "common.serializer.TypeSerializer": "never needed: windows are stored as they are",
    "common.typeinfo.Types.BIG_DEC": "holds 20 digits before the point, 18 after it; takes a precision and scale too",
    "common.typeinfo.Types.BIG_INT": "holds 38 digits",
    "common.typeinfo.Types.SHORT": "a number that is too large is refused; PyFlink cuts off its upper bits",
    **_members("common.typeinfo", "TupleTypeInfo RowTypeInfo", "as text, `TUPLE(STRING, INT)` and the like"),
    **_members("common.types.Row", "of_kind set_row_kind", "only INSERT under a declared type; others keep their kind"),
    **_members(_STRATEGY, "with_timestamp_assigner with_idleness", _NEW),
    # Kafka
    **_members(
        f"{_KAFKA}.KafkaSourceBuilder",
        "set_property set_properties",
        "names are librdkafka's, and those of the Java client that have a counterpart",
    ),
    f"{_KAFKA}.FlinkKafkaConsumer": "a `KafkaSource` under an older name; has Java's other methods, too",
    f"{_KAFKA}.FlinkKafkaProducer": "a `KafkaSink` under an older name; exactly once needs `transactional.id`",
    f"{_KAFKA}.KafkaSourceBuilder.set_topic_pattern": "a regular expression is Python's",
    f"{_STRATEGY}.with_watermark_alignment": "compares watermarks at each micro-batch, whatever the interval",
    # environment
    **_members(_ENVIRONMENT, "enable_checkpointing get_checkpoint_interval", "every micro-batch is a checkpoint"),
    **_members(_ENVIRONMENT, "is_unaligned_checkpoints_enabled is_force_unaligned_checkpoints", _AS_SET),
    **_members(
        _ENVIRONMENT, "get_checkpointing_mode get_checkpointing_consistency_mode", "exactly once, whatever is set"
    ),
    f"{_ENVIRONMENT}.configure": "knows the options that 'From PyFlink' names, and warns of the others",
    f"{_ENVIRONMENT}.get_execution_environment": "makes a session with Spark's options, and takes one",
    f"{_ENVIRONMENT}.from_source": "applies the timestamp assigner of its strategy",
    **_members(
        _ENVIRONMENT, "add_jars add_classpaths", "ignores jars whose work eventide does itself, and refuses others"
    ),
    f"{_ENVIRONMENT}.add_python_file": "a folder that is a package is imported by its own name",
    f"{_ENVIRONMENT}.add_python_archive": "takes `.tar`, `.tar.gz` and `.tgz` files too",
    f"{_ENVIRONMENT}.set_python_requirements": "pip installs them on this machine, for all executors",
    f"{_ENVIRONMENT}.close": "the session stays, because others may use it",
    "common.job_client.JobClient.stop_with_savepoint": "closes no windows first; open ones are in the savepoint",
    f"{_CHECKPOINTS}.set_checkpointing_mode": "without effect: exactly once, whatever is set; a warning says so",
    **_members(
        _CHECKPOINTS,
        "is_fail_on_checkpointing_errors set_fail_on_checkpointing_errors",
        "sets the tolerable number of failures, which has no effect",
    ),
    f"{_CHECKPOINTS}.set_externalized_checkpoint_retention": "a checkpoint stays where it is, whatever is set",
    "datastream.checkpoint_storage.JobManagerCheckpointStorage": "a directory, if it names one; else a temporary one",
    "datastream.checkpoint_storage.FileSystemCheckpointStorage": "its directory is used; its sizes make no difference",
    **_members(
        "datastream.state_backend",
        "StateBackend HashMapStateBackend EmbeddedRocksDBStateBackend PredefinedOptions",
        _VALUE,
    ),
    **_members("datastream.slot_sharing_group", "MemorySize SlotSharingGroup", _VALUE),
    # streams
    **_members("datastream.data_stream", "DataStream.set_description DataStreamSink.set_description", _NAME_IS_SHOWN),
    f"{_STREAM}.set_parallelism": "without effect on chained functions",
    f"{_STREAM}.print": "prints `str(element)`, on the driver",
    f"{_STREAM}.shuffle": _ONE_BY_ONE,
    f"{_STREAM}.rescale": _ONE_BY_ONE,
    f"{_STREAM}.process": "without keys, runs in the tasks of the operator before it",
    f"{_STREAM}.sink_to": "takes a function of a DataFrame and a batch id too",
    f"{_STREAM}.add_sink": "is `sink_to` under an older name; no class of Java is taken",
    f"{_STREAM}.execute_and_collect": "with a limit, cancels the job when it has that number of elements",
    f"{_STREAM}.key_by": "a key can be hashed, and equals itself",
    f"{_STREAM}.partition_custom": "has the parallelism of the environment",
    "datastream.data_stream.KeyedStream.execute_and_collect": "gives the elements, without their keys beside them",
    **_members("datastream.data_stream.KeyedStream", "min_by max_by", "takes `first=False` too, as in Java"),
    "datastream.data_stream.KeyedStream.count_window": "fires after every `slide` elements, as in Java",
    **_members(
        "datastream.async_data_stream.AsyncDataStream",
        "unordered_wait unordered_wait_with_retry",
        "waits within the micro-batch, and keeps the order",
    ),
    "datastream.formats.orc.OrcBulkWriters.for_row_type": "all but the type is taken without effect",
    "datastream.formats.parquet.ParquetBulkWriters.for_row_type": "takes `hadoop_config` without effect; in UTC always",
    "datastream.functions.SourceFunction": "is written in Python, with `run(ctx)` and `cancel()`, as in Java",
    # windows and state
    **_members(
        "datastream.window",
        "TimeWindowSerializer CountWindowSerializer GlobalWindowSerializer",
        "never needed: windows are stored as they are",
    ),
    **_members("datastream.window", "ContinuousEventTimeTrigger ContinuousProcessingTimeTrigger", "merges, as in Java"),
    **_members("datastream.window", "TimeWindow CountWindow GlobalWindow", "hashes as the tuple of its fields"),
    **_members(
        f"{_TTL}.Builder",
        "cleanup_full_snapshot cleanup_incrementally cleanup_in_rocksdb_compact_filter",
        _CLEAN_UP,
    ),
    "datastream.window.CountTumblingWindowAssigner": "functions see a `GlobalWindow`, as in Java",
    f"{_TTL}.CleanupStrategies": _CLEAN_UP,
    # connectors
    "datastream.connectors.base.Source": "describes splits in Python; sources of your own are subclasses",
    "datastream.connectors.base.Sink": "describes what Spark writes; subclasses are eventide's own",
    "datastream.connectors.base.DeliveryGuarantee": "`KafkaSink` asks for it; files are written exactly once",
    f"{_KAFKA}.KafkaSink": "written by librdkafka; exactly once, a micro-batch is one transaction of the driver's",
    f"{_KAFKA}.KafkaSinkBuilder.set_delivery_guarantee": "`NONE` is the same as `AT_LEAST_ONCE`",
    f"{_KAFKA}.KafkaSinkBuilder.set_property": "takes librdkafka's; those that only Java has are refused",
    f"{_KAFKA}.KafkaRecordSerializationSchema": "a description; the builder has Java's other steps, too",
    f"{_FILES}.FileSource": "reads with Arrow, in Python",
    f"{_FILES}.FileSink": "Spark writes the files, named after their micro-batch",
    f"{_FILES}.FileSink.BaseBuilder.with_bucket_check_interval": "taken without effect",
    **_members(
        _FILES,
        "BucketAssigner RollingPolicy OutputFileConfig",
        _VALUE + "; a warning says so where it is not the default",
    ),
    f"{_FILES}.StreamingFileSink": "is `FileSink` under an older name",
}
