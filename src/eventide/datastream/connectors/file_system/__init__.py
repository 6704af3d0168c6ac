"""Files as source and as sink (PyFlink: ``pyflink.datastream.connectors.file_system``)."""

from eventide.datastream.connectors.file_system._format import BulkFormat, StreamFormat
from eventide.datastream.connectors.file_system._sink import (
    BulkWriterFactory,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from eventide.datastream.connectors.file_system._source import FileSource, FileSourceBuilder

__all__ = [
    "FileSource",
    "FileSourceBuilder",
    "BulkFormat",
    "StreamFormat",
    "FileSink",
    "BulkWriterFactory",
    "OutputFileConfig",
    "RollingPolicy",
]
