"""Records between two offsets, exactly: whatever is in a log, and whatever is not in it any more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from eventide.common import SimpleStringSchema
from eventide.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder
from eventide.datastream.connectors.source import Counted, PartRange, TimestampedBatch
from eventide.errors import DataError, ProgramError
from eventide.testing import KafkaBroker
from support.kafka_topics import QUIET, new_topic, produce

pytestmark = pytest.mark.kafka


def source_of(broker: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics(topic)
        .set_value_only_deserializer(SimpleStringSchema())
    )


def elements(source: KafkaSource, part: str, start: int, end: int) -> list[str]:
    return [value for values in by_part(source, [PartRange(part, start, end)]).values() for value in values]


def by_part(source: KafkaSource, ranges: Sequence[PartRange]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {way.part: [] for way in ranges}
    for part, items in source.read_together(ranges):
        for item in items:
            assert isinstance(item, TimestampedBatch)
            assert len(item.rows) == len(item.timestamps)
            found[part] += item.rows.column(0).to_pylist()
    return found


def delete_records(broker: KafkaBroker, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    [future] = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    assert future.result(30).low_watermark == before


def numbered(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"value": b"%d" % i, "partition": 0, "timestamp": 1_000 + i} for i in range(first, first + count)]


def test_a_range_is_what_lies_between_its_offsets_with_the_timestamps_of_the_records(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(20))
    [item] = source_of(broker, topic).build().read(f"{topic}-0", 5, 8)
    assert item.rows.to_pydict() == {"value": ["5", "6", "7"]}
    assert item.timestamps.to_pylist() == [1_005, 1_006, 1_007]
    assert list(source_of(broker, topic).build().read(f"{topic}-0", 8, 8)) == []


def test_many_partitions_are_read_at_once_each_in_order(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 7)
    produce(broker, topic, [{"value": b"%d" % i, "partition": i % 7} for i in range(7_000)])
    source = source_of(broker, topic).build()
    found = by_part(source, [PartRange(f"{topic}-{p}", p, 900 + p) for p in range(7)])
    assert found == {f"{topic}-{p}": [str(i * 7 + p) for i in range(p, 900 + p)] for p in range(7)}


def test_many_small_ranges_take_no_longer_than_a_few(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 50)
    produce(broker, topic, [{"value": b"%d" % i, "partition": i % 50} for i in range(500)])
    source = source_of(broker, topic).build()
    ranges = [PartRange(f"{topic}-{p}", 0, 10) for p in range(50)]
    by_part(source, ranges)  # with a consumer that has been made
    began = time.monotonic()
    assert sum(map(len, by_part(source, ranges).values())) == 500
    assert time.monotonic() - began < 1.0  # one after the other, with fetches that wait, it would be 25 s


def test_partitions_of_several_topics_are_read_at_once(broker: KafkaBroker) -> None:
    one, two = new_topic(broker, 2), new_topic(broker, 2)
    for topic in (one, two):
        produce(broker, topic, [{"value": f"{topic} {i}".encode(), "partition": i % 2} for i in range(10)])
    source = source_of(broker, one).build()
    found = by_part(source, [PartRange(f"{topic}-{p}", 0, 5) for topic in (one, two) for p in range(2)])
    assert found == {f"{t}-{p}": [f"{t} {i}" for i in range(p, 10, 2)] for t in (one, two) for p in range(2)}


def test_markers_and_aborted_records_of_transactions_end_a_range_too(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic, **QUIET})
    producer.init_transactions(30)
    producer.begin_transaction()
    for i in range(3):
        producer.produce(topic, b"kept %d" % i)
    producer.commit_transaction(30)
    producer.begin_transaction()
    for i in range(2):
        producer.produce(topic, b"aborted %d" % i)
    producer.flush(30)
    producer.abort_transaction(30)
    committed = source_of(broker, topic).set_property("isolation.level", "read_committed").build()
    assert committed.latest_position(f"{topic}-0") == 7
    kept = ["kept 0", "kept 1", "kept 2"]
    assert elements(committed, f"{topic}-0", 0, 7) == kept
    assert elements(committed, f"{topic}-0", 0, 4) == kept
    assert elements(committed, f"{topic}-0", 3, 4) == []  # a marker alone
    assert elements(committed, f"{topic}-0", 4, 7) == []  # what was aborted, and its marker, at the end of the log
    uncommitted = source_of(broker, topic).build()  # as in Flink, where nothing else is said
    assert elements(uncommitted, f"{topic}-0", 0, 7) == [*kept, "aborted 0", "aborted 1"]


def test_an_open_transaction_ends_what_a_read_committed_source_plans(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(3))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic, **QUIET})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(30)
    part = f"{topic}-0"
    committed = source_of(broker, topic).set_property("isolation.level", "read_committed").build()
    uncommitted = source_of(broker, topic).build()
    assert committed.next_positions({part: 0}, None) == {part: 3}
    assert uncommitted.next_positions({part: 0}, None) == {part: 4}
    producer.commit_transaction(30)
    while committed.next_positions({part: 3}, None) == {part: 3}:
        time.sleep(0.05)  # the marker is written after the commit
    assert committed.next_positions({part: 3}, None) == {part: 5}
    assert elements(committed, part, 3, 5) == ["open"]
    for source in (committed, uncommitted):
        source.stop()


def test_records_that_kafka_has_deleted_are_an_error(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(100))
    delete_records(broker, topic, 40)
    source = source_of(broker, topic).build()
    with pytest.raises(
        DataError, match=f"offsets 10 to 39 of {topic}-0 are gone before they were read: .* begins at 40"
    ):
        elements(source, f"{topic}-0", 10, 90)
    assert elements(source, f"{topic}-0", 40, 42) == ["40", "41"]


def test_records_that_kafka_has_deleted_are_counted_if_that_is_no_error(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(100))
    delete_records(broker, topic, 40)
    source = source_of(broker, topic).set_fail_on_data_loss(False).build()
    *batches, counted = source.read(f"{topic}-0", 10, 90)
    assert [value for batch in batches for value in batch.rows.column(0).to_pylist()] == list(map(str, range(40, 90)))
    assert counted == Counted({"numRecordsLost": ["count", 30]})
    assert list(source.read(f"{topic}-0", 10, 20)) == [Counted({"numRecordsLost": ["count", 10]})]


def test_a_topic_that_is_deleted_while_it_is_read_is_an_error_that_says_so(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(10))
    source = source_of(broker, topic).build()
    assert elements(source, f"{topic}-0", 0, 10) == list(map(str, range(10)))
    broker.delete_topic(topic)
    with pytest.raises(
        DataError, match=f"offsets 0 to 9 of {topic}-0 are gone before they were read: the topic was del"
    ):
        elements(source, f"{topic}-0", 0, 10)


def test_a_range_after_the_end_of_its_partition_is_an_error(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbered(10))
    with pytest.raises(DataError, match=f"offsets 10 to 19 of {topic}-0 are gone .* the partition ends at 10"):
        elements(source_of(broker, topic).build(), f"{topic}-0", 5, 20)


def test_what_compaction_took_away_is_no_error(broker: KafkaBroker) -> None:
    topic = new_topic(
        broker, cleanup_policy="compact", min_cleanable_dirty_ratio="0.001", segment_ms="100", segment_bytes="1048576"
    )
    keyed = [{"key": b"k%d" % (i % 3), "value": b"%d" % i, "partition": 0} for i in range(300)]
    source = source_of(broker, topic).build()
    part = f"{topic}-0"
    deadline = time.monotonic() + 60
    produce(broker, topic, keyed)
    while len(elements(source, part, 0, 300)) == 300 and time.monotonic() < deadline:
        time.sleep(0.5)
        produce(broker, topic, keyed[:3])  # rolls the segment, so that what lies before can be compacted
    found = elements(source, part, 0, 300)
    assert len(found) < 300
    assert elements(source, part, 10, 50) == [value for value in found if 10 <= int(value) < 50]


def test_a_property_that_is_none_is_a_program_error(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    source = source_of(broker, topic).set_property("no.such", "1").build()
    with pytest.raises(ProgramError, match=r'No such configuration property: "no\.such"'):
        elements(source, f"{topic}-0", 0, 1)
    with pytest.raises(ProgramError, match=r'No such configuration property: "no\.such"'):
        source.splits()
