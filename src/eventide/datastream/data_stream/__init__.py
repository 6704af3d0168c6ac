"""The fluent API: streams, keyed streams, windowed streams."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.datastream.data_stream.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from eventide.datastream.data_stream.keyed import KeyedStream
from eventide.datastream.data_stream.sink import CloseableIterator, DataStreamSink
from eventide.datastream.data_stream.stream import DataStream
from eventide.datastream.data_stream.windowed import AllWindowedStream, WindowedStream

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
