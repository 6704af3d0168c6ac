"""The Kafka consumer and producer of Flink 1, based on `KafkaSource` and `KafkaSink`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Self

from eventide.api.functions.timestamps import OlderAssigner, older_strategy
from eventide.common.accepted import has_no_effect
from eventide.common.serialization import DeserializationSchema, SerializationSchema
from eventide.common.type_variables import T_contra
from eventide.common.typeinfo import TypeInformation
from eventide.common.watermark_strategy import WatermarkStrategy
from eventide.connectors.function_source import SourceFace
from eventide.connectors.kafka._offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from eventide.connectors.kafka._properties import as_text
from eventide.connectors.kafka._records import KafkaRecordDeserializationSchema
from eventide.connectors.kafka._source import KafkaSource, KafkaSourceBuilder
from eventide.connectors.kafka.sink import KafkaRecordSerializationSchema, KafkaSink
from eventide.connectors.sink import DeliveryGuarantee
from eventide.errors import ProgramError, check_is

_RESET, _DISCOVERY, _COMMIT = "auto.offset.reset", "partition.discovery.interval.ms", "commit.offsets.on.checkpoint"
_OLDER_DISCOVERY = "flink.partition-discovery.interval-millis"
_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "smallest": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "largest": KafkaOffsetResetStrategy.LATEST,
    "none": KafkaOffsetResetStrategy.NONE,
}


class FlinkKafkaConsumer(SourceFace):
    """Reads topics of Kafka, for `env.add_source`: a `KafkaSource` with the methods of Flink 1.

    As in Flink, partitions start at the group's committed offsets, and without those as ``auto.offset.reset`` says, by
    default at their end. New partitions are discovered only with the property
    ``flink.partition-discovery.interval-millis``. PyFlink: ``FlinkKafkaConsumer``.

    >>> from eventide.common import SimpleStringSchema
    >>> consumer = FlinkKafkaConsumer("orders", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"})
    >>> consumer.set_start_from_earliest().as_source()
    KafkaSource(orders at localhost:9092)
    """

    def __init__(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        deserialization_schema: DeserializationSchema | KafkaRecordDeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        """Make a consumer.

        Args:
            topics: A topic, several topics, or a compiled regular expression for their names.
            deserialization_schema: Makes elements from values or, as in Java, from whole records.
            properties: ``bootstrap.servers``, ``group.id``, and others of the client.

        Raises:
            ProgramError: A topic or the schema is of another type, or a property is not text.
        """
        self._properties = {name: as_text(name, value) for name, value in properties.items()}
        builder = KafkaSourceBuilder()
        if isinstance(deserialization_schema, KafkaRecordDeserializationSchema):
            self._deserializer = deserialization_schema
        else:
            self._deserializer = KafkaRecordDeserializationSchema.value_only(deserialization_schema)
        self._topics = topics
        self._subscribed(builder)
        self._starting: KafkaOffsetsInitializer | None = None
        self._strategy: WatermarkStrategy = WatermarkStrategy.no_watermarks()

    def set_start_from_earliest(self) -> Self:
        """Start at the first available records."""
        return self._start(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> Self:
        """Start at the ends of partitions."""
        return self._start(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> Self:
        """Start at the first records at or after a timestamp, in milliseconds since the epoch (UTC)."""
        return self._start(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> Self:
        """Start at the group's committed offsets; this is the default."""
        self._starting = None
        return self

    def set_start_from_specific_offsets(self, specific_startup_offsets: Mapping[KafkaTopicPartition, int]) -> Self:
        """Start at given offsets, and other partitions at the group's committed offsets. As in Java."""
        return self._start(KafkaOffsetsInitializer.offsets(specific_startup_offsets, self._reset_strategy()))

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> Self:
        """Set whether handled offsets are committed to the group; by default, they are."""
        self._properties[_COMMIT] = as_text(_COMMIT, bool(commit_on_checkpoints))
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> Self:
        """Accepted for compatibility with PyFlink: a job that continues reads the partitions that its program names."""
        what = "disable_filter_restored_partitions_with_subscribed_topics"
        has_no_effect(what, "a job that goes on reads the partitions that its program names")
        return self

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy | OlderAssigner) -> Self:
        """Give each partition timestamps and its own watermark, by a strategy or an assigner of Flink 1.

        Raises:
            ProgramError: It is neither.
        """
        older = older_strategy(watermark_strategy)
        strategy = watermark_strategy if older is None else older[0]
        if not isinstance(strategy, WatermarkStrategy):
            raise ProgramError(f"assign_timestamps_and_watermarks needs a strategy, not {watermark_strategy!r}")
        self._strategy = strategy
        return self

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the elements."""
        return self._deserializer.get_produced_type()

    def get_watermark_strategy(self) -> WatermarkStrategy:
        """Return the strategy of :meth:`assign_timestamps_and_watermarks`; by default, no watermarks."""
        return self._strategy

    def as_source(self) -> KafkaSource:
        """Return the `KafkaSource` with these settings.

        Raises:
            ProgramError: Servers or the group are missing, or a property has no equivalent here.
        """
        properties = dict(self._properties)
        properties.setdefault(_DISCOVERY, properties.pop(_OLDER_DISCOVERY, "-1"))
        properties.pop(_RESET, None)
        builder = self._subscribed(KafkaSourceBuilder()).set_properties(properties)
        return builder.set_starting_offsets(self._initializer()).set_deserializer(self._deserializer).build()

    def _subscribed(self, builder: KafkaSourceBuilder) -> KafkaSourceBuilder:
        if isinstance(self._topics, re.Pattern):
            return builder.set_topic_pattern(self._topics)
        return builder.set_topics(*([self._topics] if isinstance(self._topics, str) else self._topics))

    def _start(self, initializer: KafkaOffsetsInitializer) -> Self:
        self._starting = initializer
        return self

    def _initializer(self) -> KafkaOffsetsInitializer:
        if self._starting is not None:
            return self._starting
        strategy = self._reset_strategy()
        if self._properties.get("group.id"):
            return KafkaOffsetsInitializer.committed_offsets(strategy)
        if strategy is KafkaOffsetResetStrategy.NONE:
            raise ProgramError("auto.offset.reset=none starts at what a group has committed: set the property group.id")
        is_first = strategy is KafkaOffsetResetStrategy.EARLIEST
        return KafkaOffsetsInitializer.earliest() if is_first else KafkaOffsetsInitializer.latest()

    def _reset_strategy(self) -> KafkaOffsetResetStrategy:
        text = self._properties.get(_RESET, "latest").strip().lower()
        if text not in _RESETS:
            raise ProgramError(f"the property {_RESET} is earliest, latest or none, not {text!r}")
        return _RESETS[text]


class Semantic(Enum):
    """How often a `FlinkKafkaProducer` writes an element when a job fails in between; see `DeliveryGuarantee`."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class FlinkKafkaProducer(KafkaSink[T_contra]):
    """Writes elements to a topic of Kafka, for ``add_sink``: a `KafkaSink` with the methods of Flink 1.

    ``Semantic.EXACTLY_ONCE`` needs the property ``transactional.id``, a name that no other sink of the cluster has.
    Flink derives such names from the names of operators. PyFlink: ``FlinkKafkaProducer``.

    >>> from eventide.common import SimpleStringSchema
    >>> producer = FlinkKafkaProducer("lines", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"})
    >>> producer.delivery_guarantee.name
    'AT_LEAST_ONCE'
    """

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema[T_contra],
        producer_config: Mapping[str, str],
        kafka_producer_pool_size: int = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        """Make a producer.

        Args:
            topic: The topic of all elements.
            serialization_schema: Makes values from elements; records have no keys.
            producer_config: ``bootstrap.servers``, and others of the client.
            kafka_producer_pool_size: Accepted without effect: one producer writes one transaction after the other.
            semantic: How often elements are written; at least once by default.

        Raises:
            ProgramError: An argument is of another type, or a needed property is missing.
        """
        check_is(semantic, Semantic, "a FlinkKafkaProducer needs a Semantic")
        properties = dict(producer_config)
        prefix = properties.pop("transactional.id", None)
        if semantic is Semantic.EXACTLY_ONCE and prefix is None:
            raise ProgramError(
                "Semantic.EXACTLY_ONCE needs a name of this sink's own in the cluster, which stays the same when the "
                "job is restarted: set the property transactional.id"
            )
        records = KafkaRecordSerializationSchema.builder().set_topic(topic)
        serializer = records.set_value_serialization_schema(serialization_schema).build()
        builder = KafkaSink.builder().set_record_serializer(serializer)
        builder.set_delivery_guarantee(DeliveryGuarantee[semantic.name])
        if prefix is not None:
            builder.set_transactional_id_prefix(prefix)
        for name, value in properties.items():
            builder.set_property(name, value)
        super().__init__(**vars(builder.build()))

    def set_log_failures_only(self, log_failures_only: bool) -> Self:
        """Refuse to lose elements: a record that Kafka does not accept fails the job.

        Raises:
            ProgramError: Failures are to be logged only.
        """
        if log_failures_only:
            raise ProgramError("a record that Kafka rejects stops the job; do not call set_log_failures_only(True)")
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> Self:
        """Accepted for compatibility with PyFlink: a micro-batch ends when Kafka has its records."""
        if not flush_on_checkpoint:
            has_no_effect("set_flush_on_checkpoint(False)", "a micro-batch ends when Kafka has its records")
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> Self:
        """Accepted for compatibility with PyFlink: a record has the timestamp of its element, if there is one."""
        if not write_timestamp_to_kafka:
            why = "a record has the timestamp of its element, if there is one"
            has_no_effect("set_write_timestamp_to_kafka(False)", why)
        return self

    def ignore_failures_after_transaction_timeout(self) -> Self:
        """Accepted for compatibility: a transaction that timed out is written again with its micro-batch."""
        why = "a transaction that timed out is written again with its micro-batch"
        has_no_effect("ignore_failures_after_transaction_timeout", why)
        return self
