"""The fluent API: streams, keyed streams, windowed streams."""

from eventide._absent import hand_out_names
from eventide.datastream.data_stream.connected import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from eventide.datastream.data_stream.keyed import KeyedStream
from eventide.datastream.data_stream.stream import CloseableIterator, DataStream, DataStreamSink
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

hand_out_names(__name__)
