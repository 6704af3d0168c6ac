"""eventide: the event-time system of Apache Flink for PySpark, with PyFlink's API."""

__version__ = "0.1.0"
