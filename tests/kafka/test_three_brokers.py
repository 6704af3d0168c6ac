"""Of three brokers one is gone, and then too many: what is written is there once, and what is read is whole."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest

from eventide.common import SimpleStringSchema
from eventide.connectors.kafka.library import GRACE_S
from eventide.connectors.kafka.sink_writer import Mark, Transactions
from eventide.datastream.connectors.kafka import KafkaSource
from eventide.datastream.connectors.source import PartRange
from support.kafka_cluster import KafkaCluster
from support.kafka_sinks import marks, sink_to, table
from support.kafka_topics import produce, values

pytestmark = [pytest.mark.kafka, pytest.mark.kill]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster() as running:
        yield running


@pytest.fixture
def topic(cluster: KafkaCluster) -> str:
    name = f"topic-{uuid.uuid4().hex[:12]}"
    cluster.create_topic(name, 3)
    return name


def test_with_one_of_three_brokers_gone_a_job_reads_and_writes_as_before(cluster: KafkaCluster, topic: str) -> None:
    sink = sink_to(cluster.bootstrap_servers, topic).build()
    transactions = Transactions(sink)
    transactions.write([table(b"0")], Mark(1, "id"), [topic])
    for number, node in enumerate((2, 3), start=1):
        cluster.kill(node)
        transactions.write([table(b"%d" % number)], Mark(number + 1, "id"), [topic])
        assert sorted(values(cluster, topic)) == [b"%d" % n for n in range(number + 1)]
        cluster.start(node)
    assert marks(sink) == [Mark(3, "id")]


def test_where_too_few_copies_are_in_sync_a_transaction_waits_and_is_there_once(
    cluster: KafkaCluster, topic: str
) -> None:
    sink = sink_to(cluster.bootstrap_servers, topic).build()
    transactions = Transactions(sink)
    transactions.write([table(b"before")], Mark(1, "id"), [topic])
    cluster.kill(2, 3)
    back = threading.Timer(3, cluster.start, (2, 3))
    back.start()
    transactions.write([table(b"meanwhile")], Mark(2, "id"), [topic])
    back.join()
    assert (sorted(values(cluster, topic)), marks(sink)) == ([b"before", b"meanwhile"], [Mark(2, "id")])


def test_a_partition_whose_only_copy_is_on_a_broker_that_is_away_is_waited_for(cluster: KafkaCluster) -> None:
    name = f"topic-{uuid.uuid4().hex[:12]}"
    cluster.create_topic(name, copies_on=[2])
    produce(cluster, name, [{"value": b"0"}])
    cluster.kill(2)
    cluster.wait_until_leaderless(name)
    back = threading.Timer(GRACE_S + 3, cluster.start, (2,))
    back.start()
    builder = KafkaSource.builder().set_bootstrap_servers(cluster.bootstrap_servers).set_topics(name)
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    parts = source.parts({})
    assert [begins.start for begins in source.beginnings(parts).values()] == [0]
    source.stop()
    back.join()


def test_a_range_is_read_whole_though_the_leader_of_a_partition_goes_meanwhile(
    cluster: KafkaCluster, topic: str
) -> None:
    produce(cluster, topic, [{"value": str(n).encode(), "partition": n % 3} for n in range(3_000)])
    builder = KafkaSource.builder().set_bootstrap_servers(cluster.bootstrap_servers).set_topics(topic)
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    parts = [PartRange(part, 0, 1_000) for part in source.parts({})]
    found: list[str] = []
    for node in (2, 3):
        cluster.kill(node)
        for _, items in source.read_together(parts):
            found += [value for item in items for value in item.rows.column(0).to_pylist()]
        cluster.start(node)
    assert sorted(map(int, found)) == sorted([*range(3_000)] * 2)
    source.stop()
