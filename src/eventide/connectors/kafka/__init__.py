"""Kafka as source and as sink (PyFlink: ``pyflink.datastream.connectors.kafka``), with the extra ``kafka``.

Names are imported when they are first used: a worker that writes does not load what reads.
"""

from typing import TYPE_CHECKING

from eventide._absent import hand_out_names

if TYPE_CHECKING:
    from eventide.connectors.kafka._flink_kafka import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
    from eventide.connectors.kafka._offsets import (
        KafkaOffsetResetStrategy,
        KafkaOffsetsInitializer,
        KafkaTopicPartition,
        PartitionOffsetsRetriever,
    )
    from eventide.connectors.kafka._records import ConsumerRecord, KafkaRecordDeserializationSchema
    from eventide.connectors.kafka._source import KafkaSource, KafkaSourceBuilder
    from eventide.connectors.kafka.sink import (
        HeaderProvider,
        KafkaPartitioner,
        KafkaRecordSerializationSchema,
        KafkaRecordSerializationSchemaBuilder,
        KafkaSink,
        KafkaSinkBuilder,
        KafkaTopicSelector,
    )

_MODULES = {
    "_source": "KafkaSource KafkaSourceBuilder",
    "_flink_kafka": "FlinkKafkaConsumer FlinkKafkaProducer Semantic",
    "_offsets": "KafkaOffsetsInitializer KafkaOffsetResetStrategy KafkaTopicPartition PartitionOffsetsRetriever",
    "_records": "KafkaRecordDeserializationSchema ConsumerRecord",
    "sink": "KafkaSink KafkaSinkBuilder KafkaRecordSerializationSchema KafkaRecordSerializationSchemaBuilder "
    "KafkaTopicSelector KafkaPartitioner HeaderProvider",
}

__all__ = [
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaOffsetsInitializer",
    "KafkaOffsetResetStrategy",
    "KafkaTopicPartition",
    "PartitionOffsetsRetriever",
    "KafkaRecordDeserializationSchema",
    "ConsumerRecord",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaTopicSelector",
    "KafkaPartitioner",
    "HeaderProvider",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "Semantic",
]

hand_out_names(__name__, {name: f"{__name__}.{at}" for at, names in _MODULES.items() for name in names.split()})
