"""Sinks on Spark: files, Kafka, and results for the program."""
