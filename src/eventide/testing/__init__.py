"""For those who test their pipelines: programs without Spark, scripted sources, operators by hand, servers."""

from eventide.testing.environment import local_environment
from eventide.testing.harness import OperatorHarness
from eventide.testing.kafka_broker import KafkaBroker
from eventide.testing.scripted_source import End, Idle, ScriptedSource
from eventide.testing.spark_cluster import SparkCluster

__all__ = ["End", "Idle", "KafkaBroker", "ScriptedSource", "OperatorHarness", "SparkCluster", "local_environment"]
