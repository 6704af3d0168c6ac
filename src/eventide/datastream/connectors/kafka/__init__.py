"""Kafka as source (PyFlink: ``pyflink.datastream.connectors.kafka``), with ``eventide[kafka]``."""

from typing import TYPE_CHECKING

from eventide._absent import no_such_name
from eventide.datastream.connectors.kafka._builder import KafkaSourceBuilder
from eventide.datastream.connectors.kafka._offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    PartitionOffsetsRetriever,
)
from eventide.datastream.connectors.kafka._records import ConsumerRecord, KafkaRecordDeserializationSchema
from eventide.datastream.connectors.kafka._settings import BAD_RECORD_TYPE
from eventide.datastream.connectors.kafka._source import KafkaSource

__all__ = [
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaOffsetsInitializer",
    "KafkaOffsetResetStrategy",
    "KafkaTopicPartition",
    "PartitionOffsetsRetriever",
    "KafkaRecordDeserializationSchema",
    "ConsumerRecord",
    "BAD_RECORD_TYPE",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name)
