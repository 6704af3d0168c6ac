"""Where a Kafka source begins, stops and goes on, and what it says where the cluster is not what it was."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from eventide.common import SimpleStringSchema
from eventide.connectors.kafka._cluster import Cluster
from eventide.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from eventide.datastream.connectors.source import Beginning
from eventide.errors import DataError, ProgramError, StateError
from eventide.testing import KafkaBroker
from support.kafka_topics import QUIET, new_topic, produce

pytestmark = pytest.mark.kafka


@pytest.fixture
def build() -> Iterator[Callable[[KafkaSourceBuilder], KafkaSource]]:
    """Builds sources, and stops them at the end."""
    built: list[KafkaSource] = []

    def one(builder: KafkaSourceBuilder) -> KafkaSource:
        built.append(builder.build())
        return built[-1]

    yield one
    for source in built:
        source.stop()


def on(broker: KafkaBroker) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_value_only_deserializer(SimpleStringSchema())
    )


@pytest.fixture
def admin(broker: KafkaBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})


def add_partitions(admin: AdminClient, topic: str, count: int) -> None:
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(30)


def committed(admin: AdminClient, group: str, topic: str, partition: int = 0) -> int | None:
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
    [found] = admin.list_consumer_group_offsets([asked])[group].result(30).topic_partitions
    return found.offset if found.offset >= 0 else None


def commit(admin: AdminClient, offsets: ConsumerGroupTopicPartitions) -> None:
    """Commit offsets of a group; a broker that has only just started may not do so at once."""
    [wanted] = offsets.topic_partitions

    def is_committed() -> bool:
        admin.alter_consumer_group_offsets([offsets])[offsets.group_id].result(30)
        return committed(admin, offsets.group_id, wanted.topic) == wanted.offset

    wait_until(is_committed)


def wait_until(holds: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


Build = Callable[[KafkaSourceBuilder], KafkaSource]


def fill(broker: KafkaBroker, topic: str, *counts: int) -> None:
    """Write some records into each partition, with the timestamps 1000, 2000 and so on."""
    for partition, count in enumerate(counts):
        produce(
            broker, topic, [{"value": b"", "partition": partition, "timestamp": 1_000 * (i + 1)} for i in range(count)]
        )


def starts(source: KafkaSource) -> list[int]:
    return [beginning.start for beginning in source.beginnings(source.parts({})).values()]


def test_each_partition_is_a_split_known_from_the_start(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker, 12)
    source = build(on(broker).set_topics(topic))
    assert source.splits() == source.parts({}) == [f"{topic}-{p}" for p in range(12)]


def test_a_pattern_fits_whole_names_and_no_internal_topics(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker)
    broker.create_topic(f"{topic}.more")
    assert build(on(broker).set_topic_pattern(f"{topic}.*")).splits() == [f"{topic}-0", f"{topic}.more-0"]
    assert build(on(broker).set_topic_pattern(topic[1:])).splits() == []
    assert not any(part.startswith("__") for part in build(on(broker).set_topic_pattern(".*")).splits())


def test_partitions_may_be_chosen(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker, 3)
    chosen = {KafkaTopicPartition(topic, 2), KafkaTopicPartition(topic, 0)}
    assert build(on(broker).set_partitions(chosen)).splits() == [f"{topic}-0", f"{topic}-2"]


def test_a_topic_that_is_not_there_is_an_error(broker: KafkaBroker, build: Build) -> None:
    with pytest.raises(DataError, match="has no 'nowhere': create it before the job starts, or use set_topic_pattern"):
        build(on(broker).set_topics("nowhere")).splits()
    topic = new_topic(broker)
    with pytest.raises(DataError, match=f"has no {topic}-5: "):
        build(on(broker).set_partitions({KafkaTopicPartition(topic, 5)})).splits()


def test_a_bounded_source_does_not_wait_for_topics(broker: KafkaBroker, build: Build) -> None:
    bounded = on(broker).set_topic_pattern("nowhere.*").set_bounded(KafkaOffsetsInitializer.latest())
    with pytest.raises(DataError, match=r"has nothing that matches the pattern 'nowhere\.\*'"):
        build(bounded).splits()


def test_where_partitions_start(broker: KafkaBroker, build: Build, admin: AdminClient) -> None:
    topic = new_topic(broker, 2)
    fill(broker, topic, 10, 5)
    group = f"group of {topic}"
    offsets = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 4)])
    commit(admin, offsets)
    found = {
        str(initializer): starts(
            build(on(broker).set_topics(topic).set_group_id(group).set_starting_offsets(initializer))
        )
        for initializer in (
            KafkaOffsetsInitializer.earliest(),
            KafkaOffsetsInitializer.latest(),
            KafkaOffsetsInitializer.timestamp(4_500),
            KafkaOffsetsInitializer.timestamp(7_000),
            KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST),
            KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 1): 2}),
        )
    }
    assert list(found.values()) == [[0, 0], [10, 5], [4, 4], [6, 5], [4, 5], [4, 2]]


def test_an_offset_that_the_broker_cannot_tell_now_is_asked_for_again(
    broker: KafkaBroker, build: Build, admin: AdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker)
    fill(broker, topic, 10)
    group = f"group of {topic}"
    offsets = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 4)])
    commit(admin, offsets)
    ask, asked = AdminClient.list_consumer_group_offsets, []

    def ask_in_vain(admin: AdminClient, *args: Any, **settings: Any) -> Any:
        asked.append(args)
        if len(asked) > 1:
            return ask(admin, *args, **settings)
        answer: Future[Any] = Future()
        unknown = SimpleNamespace(topic=topic, partition=0, offset=-1001, error=KafkaError(KafkaError.NOT_COORDINATOR))
        answer.set_result(SimpleNamespace(topic_partitions=[unknown]))
        return {group: answer}

    monkeypatch.setattr(AdminClient, "list_consumer_group_offsets", ask_in_vain)
    how = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST)
    assert starts(build(on(broker).set_topics(topic).set_group_id(group).set_starting_offsets(how))) == [4]
    assert len(asked) == 2


def test_partitions_that_come_later_are_read_from_their_beginning(
    broker: KafkaBroker, build: Build, admin: AdminClient
) -> None:
    topic = new_topic(broker)
    fill(broker, topic, 3)
    soon = on(broker).set_topics(topic).set_property("partition.discovery.interval.ms", "10")
    source = build(soon.set_starting_offsets(KafkaOffsetsInitializer.latest()))
    assert starts(source) == [3]
    add_partitions(admin, topic, 2)
    fill(broker, topic, 0, 4)
    known = {f"{topic}-0": 3}
    wait_until(lambda: source.parts(known) == [f"{topic}-0", f"{topic}-1"])
    assert source.beginnings([f"{topic}-1"])[f"{topic}-1"].start == 0


def test_partitions_that_come_while_a_job_stands_still_are_read_from_their_beginning(
    broker: KafkaBroker, build: Build, admin: AdminClient
) -> None:
    topic = new_topic(broker)
    latest = on(broker).set_topics(topic).set_starting_offsets(KafkaOffsetsInitializer.latest())
    identity = build(latest).beginnings([f"{topic}-0"])[f"{topic}-0"].identity
    assert identity is not None
    add_partitions(admin, topic, 2)
    fill(broker, topic, 0, 4)
    source = build(latest)
    source.resume({f"{topic}-0": identity})
    assert source.parts({f"{topic}-0": 0}) == [f"{topic}-0", f"{topic}-1"]
    assert source.beginnings([f"{topic}-1"]) == {f"{topic}-1": Beginning(0, None, identity)}


def test_topics_that_come_after_a_job_has_found_none_are_read_from_their_beginning(
    broker: KafkaBroker, build: Build, tmp_path: Path
) -> None:
    """Whether the job goes on or starts again: what is written meanwhile is not passed over."""
    topic = f"late-{uuid.uuid4().hex}"
    latest = on(broker).set_topic_pattern(f"{topic}.*").set_starting_offsets(KafkaOffsetsInitializer.latest())

    def parts_and_starts(place: str) -> tuple[list[str], list[int]]:
        source = build(latest).for_job("orders", str(tmp_path / place))
        source.resume({})
        try:
            return source.parts({}), starts(source)
        finally:
            source.stop()

    assert parts_and_starts("job") == ([], [])
    broker.create_topic(topic, 1)
    fill(broker, topic, 4)
    assert parts_and_starts("job") == ([f"{topic}-0"], [0])
    assert parts_and_starts("new job") == ([f"{topic}-0"], [4])


def test_new_partitions_are_looked_for_as_often_as_was_said(
    broker: KafkaBroker, build: Build, admin: AdminClient
) -> None:
    topic = new_topic(broker)
    never = build(on(broker).set_topics(topic).set_property("partition.discovery.interval.ms", "-1"))
    by_default = build(on(broker).set_topics(topic))
    bounded = build(
        on(broker)
        .set_topics(topic)
        .set_property("partition.discovery.interval.ms", "1")
        .set_bounded(KafkaOffsetsInitializer.latest())
    )
    sources = (never, by_default, bounded)
    assert [source.parts({}) for source in sources] == [[f"{topic}-0"]] * 3
    add_partitions(admin, topic, 2)
    fresh = on(broker).set_topics(topic)
    wait_until(lambda: len(build(fresh).splits()) == 2)
    assert [source.parts({f"{topic}-0": 0}) for source in sources] == [[f"{topic}-0"]] * 3


def test_stops_are_found_with_the_starts(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker, 2)
    fill(broker, topic, 10, 5)
    bounded = on(broker).set_topics(topic).set_bounded(KafkaOffsetsInitializer.timestamp(7_000))
    source = build(bounded.set_starting_offsets(KafkaOffsetsInitializer.timestamp(9_000)))
    found = source.beginnings(source.parts({}))
    assert [(begins.start, begins.stop) for begins in found.values()] == [(8, 8), (5, 5)]
    source = build(bounded.set_starting_offsets(KafkaOffsetsInitializer.earliest()))
    found = source.beginnings(source.parts({}))
    assert [(begins.start, begins.stop) for begins in found.values()] == [(0, 6), (0, 5)]
    assert len({begins.identity for begins in found.values()} - {None}) == 1


def test_a_limit_is_shared_among_the_partitions(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker, 3)
    fill(broker, topic, 10, 2, 0)
    source = build(on(broker).set_topics(topic))
    at = dict.fromkeys(source.splits(), 0)
    assert list(source.next_positions(at, None).values()) == [10, 2, 0]
    assert list(source.next_positions(at, 6).values()) == [4, 2, 0]
    assert source.latest_positions() == source.next_positions(at, None)
    assert source.next_positions({}, 5) == {}


def test_what_a_limit_leaves_in_each_partition_is_known_without_asking_again(
    broker: KafkaBroker, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker, 3)
    fill(broker, topic, 10, 2, 0)
    source = build(on(broker).set_topics(topic))
    reached = source.next_positions(dict.fromkeys(source.splits(), 0), 6)
    asked: list[int] = []
    end_offsets = Cluster.end_offsets
    monkeypatch.setattr(
        Cluster, "end_offsets", lambda self, places: asked.append(len(places)) or end_offsets(self, places)
    )
    assert source.pending_records(reached, is_limited=True) == {f"{topic}-0": 6, f"{topic}-1": 0, f"{topic}-2": 0}
    assert asked == []
    assert source.pending_records(reached, is_limited=True)[f"{topic}-0"] == 6
    assert asked == [3], "all partitions in one request, where no plan has just asked"


def test_offsets_are_committed_to_the_group_without_waiting(
    broker: KafkaBroker, build: Build, admin: AdminClient
) -> None:
    topic = new_topic(broker)
    group = f"group of {topic}"
    source = build(on(broker).set_topics(topic).set_group_id(group))
    began = time.monotonic()
    for at in range(20):
        source.commit({f"{topic}-0": at})
    assert time.monotonic() - began < 1
    source.stop()  # what is still to be committed is
    assert committed(admin, group, topic) == 19


def test_offsets_are_not_committed_where_they_are_not_wanted(
    broker: KafkaBroker, build: Build, admin: AdminClient
) -> None:
    topic = new_topic(broker)
    group = f"group of {topic}"
    source = build(on(broker).set_topics(topic).set_group_id(group).set_property("commit.offsets.on.checkpoint", False))
    source.commit({f"{topic}-0": 5})
    source.stop()
    build(on(broker).set_topics(topic)).commit({f"{topic}-0": 5})
    assert committed(admin, group, topic) is None


@pytest.mark.long
def test_a_topic_that_is_deleted_is_an_error_that_names_it(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker)
    fill(broker, topic, 3)
    source = build(on(broker).set_topics(topic).set_property("partition.discovery.interval.ms", "10"))
    part = f"{topic}-0"
    assert source.parts({part: 0}) == [part]
    broker.delete_topic(topic)
    with pytest.raises(DataError, match=f"the topic '{topic}' was deleted. The job has read {part} up to offset 2"):
        source.parts({part: 2})
    with pytest.raises(DataError, match=f"the topic '{topic}' was deleted. The job has read {part} up to offset 2"):
        source.next_positions({part: 2}, None)


def test_a_topic_that_is_deleted_may_be_passed_over(broker: KafkaBroker, build: Build) -> None:
    gone, stays = new_topic(broker), new_topic(broker)
    source = build(
        on(broker)
        .set_topics(gone, stays)
        .set_property("partition.discovery.interval.ms", "10")
        .set_fail_on_data_loss(False)
    )
    assert source.parts({}) == sorted([f"{gone}-0", f"{stays}-0"])
    broker.delete_topic(gone)
    assert source.parts({f"{gone}-0": 2, f"{stays}-0": 0}) == [f"{stays}-0"]


def test_a_topic_that_was_made_anew_is_an_error_that_names_it(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker, 2)
    part = f"{topic}-0"
    running = build(on(broker).set_topics(topic))
    identity = running.beginnings(running.parts({}))[part].identity
    assert identity is not None
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    fill(broker, topic, 10, 10)
    said = f"the topic '{topic}' of Kafka at {broker.bootstrap_servers} was deleted and created again: .* id "
    said += re.escape(identity)
    with pytest.raises(StateError, match=said):
        build(on(broker).set_topics(topic)).resume({part: identity})
    time.sleep(1)  # a running job looks at the topics once in a second, where there is something to read
    with pytest.raises(StateError, match=said):
        running.next_positions({part: 2, f"{topic}-1": 2}, None)


def test_fewer_partitions_are_an_error(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker)
    source = build(on(broker).set_topics(topic))
    with pytest.raises(
        DataError, match=f"its topic has fewer partitions now. The job has read {topic}-1 up to offset 7"
    ):
        source.parts({f"{topic}-0": 0, f"{topic}-1": 7})


def test_a_partition_that_ends_before_what_was_read_is_an_error(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker)
    fill(broker, topic, 3)
    source = build(on(broker).set_topics(topic))
    with pytest.raises(
        DataError, match=f"fewer records than the job has read: {topic}-0 ends at 3, before 10. Records were lost"
    ):
        source.next_positions({f"{topic}-0": 10}, None)


def test_who_is_not_there_is_waited_for_as_long_as_was_said(build: Build) -> None:
    nobody = KafkaSource.builder().set_bootstrap_servers("127.0.0.1:1").set_topics("a")
    nobody.set_value_only_deserializer(SimpleStringSchema()).set_property("default.api.timeout.ms", "1000")
    said = r"Kafka at 127.0.0.1:1 gave no answer for \d+ s, when asked for the topics a: .*Connection refused"
    with pytest.raises(DataError, match=said):
        build(nobody).splits()
    with pytest.raises(
        DataError, match=r"no answer for 1 s, when asked for the records of a-0: .*(Conn|brokers are down)"
    ):
        list(build(nobody).read("a-0", 0, 1))


def test_who_logs_in_with_another_password_is_not_let_in(broker: KafkaBroker, build: Build) -> None:
    topic = new_topic(broker)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required username='wren' password='{}';"

    def source(password: str) -> KafkaSource:
        builder = on(broker).set_topics(topic).set_bootstrap_servers(broker.sasl_bootstrap_servers)
        builder.set_properties({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"})
        return build(builder.set_property("sasl.jaas.config", login.format(password).replace("'", '"')))

    assert source("right").splits() == [f"{topic}-0"]
    began = time.monotonic()
    with pytest.raises(ProgramError, match=r"refuses this client: .*Authentication failed.* Look at security.protocol"):
        source("wrong").splits()
    with pytest.raises(ProgramError, match=r"refuses this client: .*Authentication failed"):
        list(source("wrong").read(f"{topic}-0", 0, 1))
    assert time.monotonic() - began < 30
