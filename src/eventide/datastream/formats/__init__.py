"""Formats of files: CSV, JSON lines, Parquet (PyFlink: ``pyflink.datastream.formats``)."""
