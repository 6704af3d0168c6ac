"""Files as source and as sink (PyFlink: ``pyflink.datastream.connectors.file_system``)."""

from eventide.connectors.file_system._source import FileSource, FileSourceBuilder
from eventide.connectors.file_system.files import FilePathFilter, FileProcessingMode
from eventide.connectors.file_system.format import BulkFormat, StreamFormat
from eventide.connectors.file_system.sink import (
    BucketAssigner,
    BulkWriterFactory,
    DefaultRollingPolicy,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)

__all__ = [
    "FileSource",
    "FileSourceBuilder",
    "FilePathFilter",
    "FileProcessingMode",
    "BulkFormat",
    "StreamFormat",
    "FileSink",
    "StreamingFileSink",
    "BucketAssigner",
    "BulkWriterFactory",
    "OutputFileConfig",
    "RollingPolicy",
    "DefaultRollingPolicy",
]
