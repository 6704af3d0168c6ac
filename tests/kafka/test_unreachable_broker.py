"""A Kafka broker that runs, and that no packet reaches for a minute: exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventide.common import SimpleStringSchema
from eventide.connectors.kafka.sink_writer import Mark, Transactions
from eventide.datastream.connectors.kafka import KafkaSource
from eventide.datastream.connectors.source import PartRange
from support.distant_broker import DistantBroker
from support.kafka_sinks import Numbered, marks, sink_to, table
from support.kafka_topics import new_topic, produce, values
from support.namespaces import Namespace, namespace

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.kill]

CUT_S = 40


@pytest.fixture(scope="module")
def place() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@contextmanager
def cut_for_long(place: Namespace) -> Iterator[None]:
    """Cut a link, and restore it while the block still works."""
    place.cut()
    back = threading.Timer(CUT_S, place.restore)
    back.start()
    try:
        yield
        assert not back.is_alive(), "this must not be possible without the broker"
    finally:
        back.join()


@pytest.fixture(scope="module")
def distant_broker(place: Namespace) -> Iterator[DistantBroker]:
    with DistantBroker(place) as running:
        yield running


def test_a_transaction_that_cannot_reach_its_broker_waits_and_is_written_once(
    distant_broker: DistantBroker, place: Namespace
) -> None:
    topic = new_topic(distant_broker)
    sink = sink_to(distant_broker.bootstrap_servers, topic).build()
    transactions = Transactions(sink)
    transactions.write([table(b"before")], Mark(1, "id"), [topic])
    with cut_for_long(place):
        transactions.write([table(b"meanwhile")], Mark(2, "id"), [topic])
    assert (values(distant_broker, topic), marks(sink)) == ([b"before", b"meanwhile"], [Mark(2, "id")])


def test_a_range_that_cannot_be_read_is_waited_for_and_read_whole(
    distant_broker: DistantBroker, place: Namespace
) -> None:
    topic = new_topic(distant_broker)
    produce(distant_broker, topic, [b"%d" % n for n in range(1_000)])
    builder = KafkaSource.builder().set_bootstrap_servers(distant_broker.bootstrap_servers).set_topics(topic)
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    parts = [PartRange(part, 0, 1_000) for part in source.parts({})]
    with cut_for_long(place):
        rows = [value for _, items in source.read_together(parts) for item in items for value in item.rows.column(0)]
    assert [int(value.as_py()) for value in rows] == [*range(1_000)]
    source.stop()


def test_a_job_waits_for_a_broker_that_nothing_reaches_and_each_record_is_there_once(
    distant_broker: DistantBroker, place: Namespace, tmp_path: Path
) -> None:
    """A job that stops with an error names the broker, and continues when it is started anew."""
    job = Numbered(distant_broker, tmp_path, batches=6)
    life = job.start()
    while not values(distant_broker, job.topic):
        assert life.poll() is None, job.said()
        time.sleep(0.1)
    with cut_for_long(place):
        code = job.ends(life)
    if code:
        assert f"Kafka at {distant_broker.bootstrap_servers}" in job.said()
        assert job.ends(job.start()) == 0, job.said()
    assert values(distant_broker, job.topic) == job.expected()
