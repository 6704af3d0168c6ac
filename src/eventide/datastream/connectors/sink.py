"""Where results go: descriptions that a host carries out."""

from eventide.connectors.sink import CollectSink, DataFrameSink, FormatSink, PrintSink, Sink

__all__ = ["CollectSink", "DataFrameSink", "FormatSink", "PrintSink", "Sink"]
