"""Exactly once, whatever is killed and wherever: the driver of the job, and the broker."""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from eventide.testing import KafkaBroker
from support.kafka_sinks import Killable, Numbered, by_key, disordered
from support.kafka_topics import QUIET, contents, new_topic, produce, values

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill]

KILLS_OF_A_RUN = 5


class FromTopicToTopic(Killable):
    """Windows and a join between topics."""

    def __init__(self, broker: KafkaBroker, folder: Path, orders: str, payments: str) -> None:
        name = f"results-{uuid.uuid4().hex[:12]}"
        self._topics = [f"{name}-windows", f"{name}-pairs"]
        for topic in self._topics:
            broker.create_topic(topic, 3)
        super().__init__(broker, "kafka_to_kafka_job.py", folder, name, str(folder / "checkpoint"), orders, payments)

    def written(self) -> list[dict[bytes, list[bytes]]]:
        """The values of each key, in their order, of the one topic and of the other."""
        return [by_key(contents(self.broker, topic)) for topic in self._topics]

    def dies(self, chosen: random.Random, *, with_broker: bool) -> None:
        """Start it, and kill it at some moment after it has written something; the broker before it, if it shall."""
        life = self.start()
        before = self._written_so_far()
        while life.poll() is None and self._written_so_far() == before:
            time.sleep(0.05)
        time.sleep(chosen.uniform(0, 2))
        if with_broker:
            self.broker.kill()
            time.sleep(chosen.uniform(0, 1))
            self.broker.start()
            time.sleep(chosen.uniform(0, 3))
        with suppress(ProcessLookupError):
            os.killpg(life.pid, signal.SIGKILL)
        life.wait()

    def _written_so_far(self) -> int:
        return sum(len(contents(self.broker, topic)) for topic in self._topics)


def test_each_record_is_there_once_wherever_the_driver_was_killed(
    broker: KafkaBroker, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """At the first place, or with `--kills=5` at all of them."""
    job = Numbered(broker, tmp_path, batches=3)
    lives = [
        ("committed", "1", 0),  # the first mark, of which the checkpoint does not know
        ("committed", "2", 3),  # the records of the first micro-batch, of which Spark does not know
        ("sent", "1", 3),  # those of the second, half done
        ("marked", "1", 3),
        ("begun", "2", 6),  # nothing of the third
    ]
    for place, number, visible in lives[: pytestconfig.getoption("--kills")]:
        assert job.ends(job.start(place, number)) == -signal.SIGKILL, job.said()
        assert len(values(broker, job.topic)) == visible, place
    assert job.ends(job.start()) == 0, job.said()
    assert values(broker, job.topic) == job.expected()


def test_a_mark_that_has_expired_stops_a_job_that_cannot_know(broker: KafkaBroker, tmp_path: Path) -> None:
    job = Numbered(broker, tmp_path, batches=2)
    assert job.ends(job.start("committed", "2")) == -signal.SIGKILL, job.said()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    admin.delete_consumer_groups([f"prefix-{job.topic}"])[f"prefix-{job.topic}"].result()
    assert job.ends(job.start()) == 1
    assert "micro-batch 0 is repeated, and Kafka no longer knows whether its records are there" in job.said()
    assert values(broker, job.topic) == job.expected()[:3]


def test_windows_and_joins_from_topic_to_topic_are_exact_whatever_is_killed_whenever(
    broker: KafkaBroker, tmp_path: Path, pytestconfig: pytest.Config, injected: Counter[str]
) -> None:
    """A reader of committed records sees those of an undisturbed run, byte for byte; `--kills=50` for long."""
    orders, payments = (new_topic(broker, partitions=2) for _ in range(2))
    for seed, topic in enumerate((orders, payments)):
        produce(broker, topic, disordered(random.Random(seed)))
    kills = pytestconfig.getoption("--kills")
    quiet = FromTopicToTopic(broker, tmp_path / "quiet", orders, payments)
    assert quiet.ends(quiet.start()) == 0, quiet.said()
    expected = quiet.written()
    assert all(len(of_key) > 5 for of_topic in expected for of_key in of_topic.values())
    chosen = random.Random(pytestconfig.getoption("--seed"))
    for series in range(0, kills, KILLS_OF_A_RUN):
        job = FromTopicToTopic(broker, tmp_path / f"killed-{series}", orders, payments)
        for kill in range(min(KILLS_OF_A_RUN, kills - series)):
            job.dies(chosen, with_broker=kill % 2 == 0)
        assert job.ends(job.start()) == 0, job.said()
        assert job.written() == expected, f"run {series}"
        injected["killed"] += kill + 1
