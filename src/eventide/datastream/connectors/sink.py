"""Sinks: descriptions of where results go, which a host carries out."""

from eventide.connectors.sink import CollectSink, DataFrameSink, FormatSink, PrintSink, Sink

__all__ = ["CollectSink", "DataFrameSink", "FormatSink", "PrintSink", "Sink"]
