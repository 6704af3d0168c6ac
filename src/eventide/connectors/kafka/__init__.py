"""Kafka as source and as sink (PyFlink: ``pyflink.datastream.connectors.kafka``), with ``eventide[kafka]``.

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
    "KafkaSource": "_source",
    "KafkaSourceBuilder": "_source",
    "FlinkKafkaConsumer": "_flink_kafka",
    "FlinkKafkaProducer": "_flink_kafka",
    "Semantic": "_flink_kafka",
    "KafkaOffsetsInitializer": "_offsets",
    "KafkaOffsetResetStrategy": "_offsets",
    "KafkaTopicPartition": "_offsets",
    "PartitionOffsetsRetriever": "_offsets",
    "KafkaRecordDeserializationSchema": "_records",
    "ConsumerRecord": "_records",
    "KafkaSink": "sink",
    "KafkaSinkBuilder": "sink",
    "KafkaRecordSerializationSchema": "sink",
    "KafkaRecordSerializationSchemaBuilder": "sink",
    "KafkaTopicSelector": "sink",
    "KafkaPartitioner": "sink",
    "HeaderProvider": "sink",
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

hand_out_names(__name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
