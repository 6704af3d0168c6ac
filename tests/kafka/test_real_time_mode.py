"""Refusals of a job by Spark's real-time mode: `docs/guide/real-time-mode.md` has the table, and says what follows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from benchmarks.connector import connector
from eventide.testing import KafkaBroker
from support.kafka_topics import new_topic, produce

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

JOB = Path(__file__).parents[1] / "support" / "real_time_job.py"
_NOT_ALLOWED = "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"
_BEFORE_IT_LOOKS = ["STDS_FAILED_TO_READ_OPERATOR_METADATA"]
ANSWERS = {
    "Spark's own columns": None,
    "functions on elements": [_NOT_ALLOWED, "MapInArrowExec"],
    "windows, state and timers": _BEFORE_IT_LOOKS,
    "sources in Python": [
        "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED",
        "PythonMicroBatchStreamWithTriggerAvailableNow",
    ],
    "sinks": [_NOT_ALLOWED, "ForeachBatchSink"],
    "functions on elements, unchecked": None,
    "windows, state and timers, unchecked": _BEFORE_IT_LOOKS,
}


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="the writer of PySpark has no trigger(realTime=...) before 4.2")
@pytest.mark.long
def test_real_time_mode_refuses_each_part_of_a_job_that_is_python(broker: KafkaBroker, tmp_path: Path) -> None:
    """If this fails, Spark takes more than it did, or refuses it in other words: see what has become possible."""
    topic = new_topic(broker, 2)
    produce(
        broker, topic, [{"key": b"a", "value": b"1", "partition": n % 2, "timestamp": 1_000 * n} for n in range(20)]
    )
    jars = ",".join(map(str, connector()[1]))
    command = [sys.executable, str(JOB), jars, broker.bootstrap_servers, topic, str(tmp_path)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3_000:]
    assert json.loads(ended.stdout.splitlines()[-1]) == ANSWERS
