"""Tests of pipelines: programs without Spark, scripted sources, operators by hand, a Kafka broker."""

from eventide.testing.harness import OperatorHarness, local_environment
from eventide.testing.kafka_broker import KafkaBroker
from eventide.testing.scripted_source import End, Idle, ScriptedSource

__all__ = ["End", "Idle", "KafkaBroker", "ScriptedSource", "OperatorHarness", "local_environment"]
