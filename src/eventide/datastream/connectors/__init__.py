"""Sources and sinks of streams: descriptions only, without an import of a client library."""

from typing import TYPE_CHECKING

from eventide._absent import hand_out_names
from eventide.api.source import IDLE, Beginning, PartRange, SideOutput, Source, TimestampedBatch, Unreadable
from eventide.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from eventide.connectors.sink import CollectSink, DataFrameSink, DeliveryGuarantee, FormatSink, PrintSink, Sink
from eventide.connectors.sources import CollectionSource, HybridSource, NumberSequenceSource

if TYPE_CHECKING:
    from eventide.connectors.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, KafkaSink, KafkaSource, Semantic

_KAFKA = "eventide.connectors.kafka"
_MODULES = dict.fromkeys(["KafkaSink", "KafkaSource", "FlinkKafkaConsumer", "FlinkKafkaProducer", "Semantic"], _KAFKA)
"""The modules of the names that are loaded on first use."""

__all__ = [
    "IDLE",
    "Beginning",
    "BucketAssigner",
    "CollectSink",
    "CollectionSource",
    "DataFrameSink",
    "DeliveryGuarantee",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "FormatSink",
    "HybridSource",
    "KafkaSink",
    "KafkaSource",
    "NumberSequenceSource",
    "OutputFileConfig",
    "PartRange",
    "PrintSink",
    "RollingPolicy",
    "Semantic",
    "SideOutput",
    "Sink",
    "Source",
    "StreamFormat",
    "StreamingFileSink",
    "TimestampedBatch",
    "Unreadable",
]

hand_out_names(__name__, _MODULES)
