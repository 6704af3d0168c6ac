"""Exactly once, whatever is killed and wherever: the driver of the job, and the broker."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from eventide.testing import KafkaBroker
from kafka_sink_job import texts
from kafka_topics import QUIET, new_topic, values

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill]

JOB = Path(__file__).parents[1] / "kafka_sink_job.py"


class Job:
    """One life of the job after the other, on one checkpoint."""

    def __init__(self, broker: KafkaBroker, folder: Path, batches: int) -> None:
        self.topic = new_topic(broker)
        self.broker = broker
        self.batches = batches
        self._arguments = [self.topic, f"prefix-{self.topic}", str(folder / "checkpoint"), str(batches)]
        self._log = folder / "log"

    def start(self, *kill: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(JOB), self.broker.bootstrap_servers, *self._arguments, *kill]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def ends(self, life: subprocess.Popen[bytes], timeout: float = 300) -> int:
        """Wait for the end of a life, and end what it has started."""
        try:
            return life.wait(timeout)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(life.pid, signal.SIGKILL)

    def said(self) -> str:
        return self._log.read_text()[-3_000:]

    def expected(self) -> list[bytes]:
        return [text.encode() for batch in range(self.batches) for text in texts(batch)]


def test_each_record_is_there_once_wherever_the_driver_was_killed(broker: KafkaBroker, tmp_path: Path) -> None:
    job = Job(broker, tmp_path, batches=3)
    lives = [
        ("committed", "1", 0),  # the first mark, of which the checkpoint does not know
        ("committed", "2", 3),  # the records of the first micro-batch, of which Spark does not know
        ("sent", "1", 3),  # those of the second, half done
        ("marked", "1", 3),
        ("begun", "2", 6),  # nothing of the third
    ]
    for place, number, visible in lives:
        assert job.ends(job.start(place, number)) == -signal.SIGKILL, job.said()
        assert len(values(broker, job.topic)) == visible, place
    assert job.ends(job.start()) == 0, job.said()
    assert values(broker, job.topic) == job.expected()


def test_a_mark_that_has_expired_stops_a_job_that_cannot_know(broker: KafkaBroker, tmp_path: Path) -> None:
    job = Job(broker, tmp_path, batches=2)
    assert job.ends(job.start("committed", "2")) == -signal.SIGKILL, job.said()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    admin.delete_consumer_groups([f"prefix-{job.topic}"])[f"prefix-{job.topic}"].result()
    assert job.ends(job.start()) == 1
    assert "micro-batch 0 is repeated, and Kafka no longer knows whether its records are there" in job.said()
    assert values(broker, job.topic) == job.expected()[:3]


def test_each_record_is_there_once_whatever_is_killed_whenever(
    broker: KafkaBroker, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """`--kills=50` for the long series."""
    job = Job(broker, tmp_path, batches=60)
    chosen = random.Random(11)
    for _ in range(pytestconfig.getoption("--kills")):
        life = job.start()
        before = len(values(broker, job.topic))
        while life.poll() is None and len(values(broker, job.topic)) == before:
            time.sleep(0.05)
        time.sleep(chosen.uniform(0, 0.5))
        if chosen.random() < 0.5:
            broker.kill()
            time.sleep(chosen.uniform(0, 1))
            broker.start()
            time.sleep(chosen.uniform(0, 3))
        if life.poll() is None:
            os.killpg(life.pid, signal.SIGKILL)
        job.ends(life)
    assert job.ends(job.start()) == 0, job.said()
    assert values(broker, job.topic) == job.expected()
