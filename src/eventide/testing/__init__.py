"""For those who test their pipelines: the program without Spark, sources that play a script, operators by hand."""

from eventide.testing.environment import local_environment
from eventide.testing.harness import OperatorHarness
from eventide.testing.scripted_source import End, Idle, ScriptedSource

__all__ = ["End", "Idle", "ScriptedSource", "OperatorHarness", "local_environment"]
