"""Transactions of the sink on a real broker, without Spark."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from eventide.connectors.kafka.sink_writer import Mark, SinkProducer, Transactions
from eventide.datastream.connectors import KafkaSink
from eventide.errors import DataError, ProgramError, StateError
from eventide.testing import KafkaBroker
from support.kafka_sinks import marks, sink_to, table
from support.kafka_topics import QUIET, new_topic, values

pytestmark = pytest.mark.kafka


def test_records_and_mark_are_there_together(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    sink = sink_to(broker.bootstrap_servers, topic).build()
    assert marks(sink) == []
    for records, mark, seen in [((), 3, []), ((b"a", b"b"), 4, [b"a", b"b"]), ((b"c",), 6, [b"a", b"b", b"c"])]:
        transactions = Transactions(sink)
        transactions.write([table(*records)], Mark(mark, "id"), [topic])
        transactions.close()
        assert (marks(sink), values(broker, topic)) == ([Mark(mark, "id")], seen)


def test_who_has_closed_it_knows_that_readers_see_all(broker: KafkaBroker) -> None:
    """Kafka says that a transaction is committed before its partitions know."""
    topic = new_topic(broker)
    sink = sink_to(broker.bootstrap_servers, topic).build()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    partition = TopicPartition(topic, 0)

    def end(isolation: IsolationLevel) -> int:
        asked = admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=isolation)
        return int(asked[partition].result().offset)

    for n in range(20):
        transactions = Transactions(sink)
        transactions.write([table(b"%d" % n)], Mark(n + 1, "id"), [topic])
        transactions.close()
        assert end(IsolationLevel.READ_COMMITTED) == end(IsolationLevel.READ_UNCOMMITTED) == 2 * (n + 1)
    assert marks(sink) == [Mark(20, "id")]


def test_who_comes_later_ends_what_was_begun_and_keeps_the_other_from_writing(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    sink = sink_to(broker.bootstrap_servers, topic).build()
    older, dead = (
        Transactions(sink),
        Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": str(sink.transactional_id_prefix),
                **QUIET,
            }
        ),
    )
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(topic, b"half")
    dead.flush(10)
    younger = Transactions(sink)
    younger.write([table(b"whole")], Mark(1, "id"), [topic])
    assert values(broker, topic) == [b"whole"]
    with pytest.raises(StateError, match="another run of this job, or another job, uses the transactional id prefix"):
        older.write([table(b"late")], Mark(2, "id"), [topic])
    assert (values(broker, topic), marks(sink)) == ([b"whole"], [Mark(1, "id")])


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "patience_ms"), [("none", "60000"), pytest.param("rebootstrap", "25000", marks=pytest.mark.long)]
)
def test_a_transaction_lives_through_the_death_of_the_broker(
    broker: KafkaBroker, strategy: str, patience_ms: str
) -> None:
    """With the second strategy, the library's call never comes back, and another producer begins anew.

    That takes the whole patience; a broker is back after some 5 s, or 15 s where the machine is busy.
    """
    topic = new_topic(broker)
    sink = sink_to(broker.bootstrap_servers, topic).set_property("metadata.recovery.strategy", strategy)
    sink = sink.set_property("default.api.timeout.ms", patience_ms)
    transactions = Transactions(sink.build())
    transactions.write([table(b"before")], Mark(1, "id"), [topic])
    broker.kill()
    back = threading.Timer(1, broker.start)
    back.start()
    transactions.write([table(b"meanwhile")], Mark(2, "id"), [topic])
    back.join()
    assert (values(broker, topic), marks(sink.build())) == ([b"before", b"meanwhile"], [Mark(2, "id")])


def test_who_gives_up_a_call_finds_out_whether_another_run_has_written_meanwhile(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's call does not come back; another run begins, and writes the micro-batch."""
    topic = new_topic(broker)
    sink = sink_to(broker.bootstrap_servers, topic).build()
    older = Transactions(sink)
    older.write([table(b"first")], Mark(1, "id"), [topic])

    def never_comes_back(*_: object) -> None:
        monkeypatch.undo()
        Transactions(sink).write([table(b"second")], Mark(2, "id"), [topic])
        raise TimeoutError

    monkeypatch.setattr(older, "_in_time", never_comes_back)
    with pytest.raises(StateError, match="another run of this job, or another job, uses the transactional id prefix"):
        older.write([table(b"second")], Mark(2, "id"), [topic])
    assert (values(broker, topic), marks(sink)) == ([b"first", b"second"], [Mark(2, "id")])


def test_nothing_is_seen_of_a_transaction_whose_record_is_refused(broker: KafkaBroker) -> None:
    topic = new_topic(broker, max_message_bytes="1000")
    sink = sink_to(broker.bootstrap_servers, topic).build()
    transactions = Transactions(sink)
    with pytest.raises(DataError, match=f"rejected a record for {topic}: .*too large"):
        transactions.write([table(b"small", b"x" * 5_000)], Mark(1, "id"), [topic])
    assert values(broker, topic) == []
    transactions.write([table(b"small")], Mark(1, "id"), [topic])
    assert (values(broker, topic), marks(sink)) == ([b"small"], [Mark(1, "id")])


def test_a_byte_that_has_changed_on_the_disk_of_kafka_is_an_error_that_names_the_group(tmp_path: Path) -> None:
    """Kafka compares the checksums of its own records after a crash, and not when it starts after an orderly end."""
    folder = tmp_path / "log"
    with KafkaBroker({"log.dirs": str(folder)}) as broker:
        topic = new_topic(broker)
        sink = sink_to(broker.bootstrap_servers, topic).build()
        transactions = Transactions(sink)
        transactions.write([table(b"a")], Mark(7, "the id"), [topic])
        transactions.close()
        broker.stop()
        [file] = [one for one in folder.glob("__consumer_offsets-*/*.log") if b"the id" in one.read_bytes()]
        stored = (7).to_bytes(8) + (-1).to_bytes(4, signed=True)  # the offset, and an epoch that is not given
        content = file.read_bytes()
        assert stored in content
        file.write_bytes(content.replace(stored, (3).to_bytes(8) + stored[8:]))
        broker.start()
        with pytest.raises(StateError, match=rf"group '{sink.transactional_id_prefix}' has the offset 3 with .*the id"):
            marks(sink)


def test_who_may_not_log_in_is_told_at_once(broker: KafkaBroker) -> None:
    topic = new_topic(broker)

    def sink(password: str) -> KafkaSink:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "wren", "sasl.password": password}
        builder = sink_to(broker.sasl_bootstrap_servers, topic)
        for name, value in ({"security.protocol": "SASL_PLAINTEXT"} | login).items():
            builder.set_property(name, value)
        return builder.build()

    transactions = Transactions(sink("right"))
    transactions.write([table(b"a")], Mark(1, "id"), [topic])
    transactions.close()  # readers see it from then on
    assert values(broker, topic) == [b"a"]
    began = time.monotonic()
    with pytest.raises(ProgramError, match="refuses this client"):
        Transactions(sink("wrong"))
    producer = SinkProducer(sink("wrong"))
    producer.send(table(b"a"))
    with pytest.raises(ProgramError, match="refuses this client"):
        producer.arrive()
    assert time.monotonic() - began < 20


def test_more_records_than_a_producer_holds_are_sent(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    sink = sink_to(broker.bootstrap_servers, topic).set_property("queue.buffering.max.messages", "10").build()
    producer = SinkProducer(sink)
    producer.send(table(*(b"%d" % n for n in range(1_000))))
    producer.arrive()
    assert values(broker, topic) == [b"%d" % n for n in range(1_000)]


def test_properties_of_java_are_taken_and_those_without_a_counterpart_refused(broker: KafkaBroker) -> None:
    builder = sink_to(broker.bootstrap_servers, "any")
    builder.set_property("max.request.size", "2000000").set_property("acks", "all").build()
    SinkProducer(builder.build()).close()
    with pytest.raises(ProgramError, match="set partitioner to one of librdkafka's"):
        builder.set_property("partitioner.class", "com.example.Mine").build()
