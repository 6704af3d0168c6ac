"""Tests of pipelines: programs without Spark, scripted sources, operators by hand, a Kafka broker."""

from eventide.testing.harness import End, Idle, OperatorHarness, ScriptedSource, local_environment
from eventide.testing.kafka_broker import KafkaBroker

__all__ = ["End", "Idle", "KafkaBroker", "ScriptedSource", "OperatorHarness", "local_environment"]
