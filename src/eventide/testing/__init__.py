"""For those who test their pipelines: programs without Spark, sources that play a script, operators by hand, Kafka."""

from eventide.testing.environment import local_environment
from eventide.testing.harness import OperatorHarness
from eventide.testing.kafka_broker import KafkaBroker
from eventide.testing.scripted_source import End, Idle, ScriptedSource

__all__ = ["End", "Idle", "KafkaBroker", "ScriptedSource", "OperatorHarness", "local_environment"]
