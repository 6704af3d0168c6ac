"""Where streams come from and go to: descriptions only, no client library is imported here."""

from typing import TYPE_CHECKING

from eventide._absent import no_such_name
from eventide.datastream.connectors.base import DeliveryGuarantee
from eventide.datastream.connectors.collection import CollectionSource
from eventide.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from eventide.datastream.connectors.number_seq import NumberSequenceSource
from eventide.datastream.connectors.sink import (
    CollectSink,
    DataFrameSink,
    FormatSink,
    PrintSink,
    Sink,
)
from eventide.datastream.connectors.source import IDLE, Beginning, PartRange, Source, TimestampedBatch

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
    "FormatSink",
    "NumberSequenceSource",
    "OutputFileConfig",
    "PartRange",
    "PrintSink",
    "RollingPolicy",
    "Sink",
    "Source",
    "StreamFormat",
    "StreamingFileSink",
    "TimestampedBatch",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name)
