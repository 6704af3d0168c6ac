"""Kafka as source and as sink (PyFlink: ``pyflink.datastream.connectors.kafka``), with ``eventide[kafka]``.

Names are imported when they are first used: a worker that writes does not load what reads.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from eventide._absent import no_such_name

if TYPE_CHECKING:
    from eventide.datastream.connectors.kafka._builder import KafkaSourceBuilder
    from eventide.datastream.connectors.kafka._offsets import (
        KafkaOffsetResetStrategy,
        KafkaOffsetsInitializer,
        KafkaTopicPartition,
        PartitionOffsetsRetriever,
    )
    from eventide.datastream.connectors.kafka._record_serialization import (
        HeaderProvider,
        KafkaPartitioner,
        KafkaRecordSerializationSchema,
        KafkaRecordSerializationSchemaBuilder,
        KafkaTopicSelector,
    )
    from eventide.datastream.connectors.kafka._records import ConsumerRecord, KafkaRecordDeserializationSchema
    from eventide.datastream.connectors.kafka._sink import KafkaSink, KafkaSinkBuilder
    from eventide.datastream.connectors.kafka._source import KafkaSource

_MODULES = {
    "KafkaSource": "_source",
    "KafkaSourceBuilder": "_builder",
    "KafkaOffsetsInitializer": "_offsets",
    "KafkaOffsetResetStrategy": "_offsets",
    "KafkaTopicPartition": "_offsets",
    "PartitionOffsetsRetriever": "_offsets",
    "KafkaRecordDeserializationSchema": "_records",
    "ConsumerRecord": "_records",
    "KafkaSink": "_sink",
    "KafkaSinkBuilder": "_sink",
    "KafkaRecordSerializationSchema": "_record_serialization",
    "KafkaRecordSerializationSchemaBuilder": "_record_serialization",
    "KafkaTopicSelector": "_record_serialization",
    "KafkaPartitioner": "_record_serialization",
    "HeaderProvider": "_record_serialization",
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
]


if not TYPE_CHECKING:  # otherwise a type checker would take any name

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise no_such_name(__name__, name)
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
