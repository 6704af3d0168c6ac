"""The fluent API: streams, keyed streams, windowed streams."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.datastream.data_stream._broadcast import BroadcastConnectedStream, BroadcastStream
from eventide.datastream.data_stream._connected import ConnectedStreams
from eventide.datastream.data_stream._keyed import KeyedStream
from eventide.datastream.data_stream._sink import CloseableIterator, DataStreamSink
from eventide.datastream.data_stream._windowed import AllWindowedStream, WindowedStream
from eventide.datastream.data_stream.stream import DataStream

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
