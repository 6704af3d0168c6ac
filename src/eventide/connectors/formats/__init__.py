"""Formats of files and of messages: CSV, JSON, Parquet, ORC, Avro (PyFlink: ``pyflink.datastream.formats``)."""
