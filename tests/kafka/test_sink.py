"""The sink on Spark, with a real broker: what readers find in the topics."""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from eventide.aggregates import count
from eventide.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.datastream.connectors import DeliveryGuarantee, KafkaSink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSinkBuilder
from eventide.datastream.formats.json import JsonRowSerializationSchema
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError, ProgramError, StateError, UserFunctionError
from eventide.testing import KafkaBroker, ScriptedSource
from support.kafka_topics import QUIET, contents, new_topic, values

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

EXACTLY, AT_LEAST = DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE
PAIR = Types.ROW_NAMED(["user", "at"], [Types.STRING(), Types.LONG()])


def again(checkpoint: Path | None, parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism).set_available_now()
    if checkpoint is not None:
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    return env


def script(env: StreamExecutionEnvironment, *batches: list[Any], type_info: Any = None) -> DataStream:
    rows = [[("split", element) for element in batch] for batch in batches]
    source = ScriptedSource(["split"], rows, type_info or Types.STRING(), bounded=False)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "script")


def lines(topic: str) -> Any:
    return (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(SimpleStringSchema())
    )


def sink(
    broker: KafkaBroker, records: Any, guarantee: DeliveryGuarantee, prefix: str | None = None
) -> KafkaSinkBuilder:
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers).set_delivery_guarantee(guarantee)
    builder.set_transactional_id_prefix(prefix or f"sink-{uuid.uuid4().hex[:8]}")
    return builder.set_record_serializer(records.build()).set_property("default.api.timeout.ms", "60000")


def test_a_restarted_job_adds_what_is_new(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    topics = {guarantee: new_topic(broker) for guarantee in DeliveryGuarantee}
    batches: list[list[str]] = []
    for batch in (["a", "b"], ["c"], ["d", "e", "f"]):
        batches.append(batch)
        env = again(tmp_path / "checkpoint")
        stream = script(env, *batches)
        for guarantee, topic in topics.items():
            stream.sink_to(sink(broker, lines(topic), guarantee, f"sink-{topic}").build())
        env.execute()
    for topic in topics.values():
        assert values(broker, topic) == [b"a", b"b", b"c", b"d", b"e", b"f"]


@pytest.mark.parametrize("guarantees", [[EXACTLY], [AT_LEAST], [EXACTLY, AT_LEAST]], ids=str)
def test_all_parts_of_a_record_arrive(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, guarantees: list[DeliveryGuarantee]
) -> None:
    """An only sink takes the columns of the source itself, one of two is given frames."""
    outs = {new_topic(broker, partitions=3): guarantee for guarantee in guarantees}
    rows = [(f"u{n}", 1_000 + n) for n in range(6)]
    env = again(tmp_path / "checkpoint")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    stream = script(env, rows, type_info=PAIR).assign_timestamps_and_watermarks(strategy)
    for out, guarantee in outs.items():
        records = (
            KafkaRecordSerializationSchema.builder()
            .set_topic(out)
            .set_key_serialization_schema(_User())
            .set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(PAIR).build())
            .set_partitioner(lambda row, key, value, topic, partitions: partitions[row.at % 3])
            .set_header_provider(lambda row: {"user": row.user, "none": None})
        )
        stream.sink_to(sink(broker, records, guarantee).build())
    env.execute()
    for out in outs:
        found = contents(broker, out)
        assert sorted((m.timestamp()[1], m.partition(), m.key(), m.value(), m.headers()) for m in found) == [
            (
                at,
                at % 3,
                user.encode(),
                f'{{"user":"{user}","at":{at}}}'.encode(),
                [("user", user.encode()), ("none", None)],
            )
            for user, at in rows
        ]


class _User(SimpleStringSchema):
    def serialize(self, element: Any) -> bytes:
        return super().serialize(element.user)


def test_elements_without_a_declared_type_and_without_a_time_are_records_too(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(broker)
    env = again(tmp_path / "checkpoint")
    stream = script(env, ["a", "b"]).map(_Word)
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(_OfWord())
    stream.sink_to(sink(broker, records, EXACTLY).build())
    env.execute()
    assert [message.value() for message in contents(broker, topic)] == [b"<a>", b"<b>"]
    assert all(message.timestamp()[1] > 1_600_000_000_000 for message in contents(broker, topic))


class _Word:
    def __init__(self, word: str) -> None:
        self.word = word


class _OfWord(SimpleStringSchema):
    def serialize(self, element: _Word) -> bytes:
        return f"<{element.word}>".encode()


@pytest.mark.long
def test_an_element_says_into_which_topic_it_goes(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    topics = {guarantee: [new_topic(broker), new_topic(broker)] for guarantee in (EXACTLY, AT_LEAST)}
    for batches in ([["1"]], [["1"], ["2", "3"]]):
        env = again(tmp_path / "checkpoint")
        stream = script(env, *batches)
        for guarantee, both in topics.items():
            records = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema())
            records.set_topic_selector(lambda text, both=both: both[int(text) % 2])
            stream.sink_to(sink(broker, records, guarantee, f"sink-{both[0]}").build())
        env.execute()
    for both in topics.values():
        assert [values(broker, topic) for topic in both] == [[b"2"], [b"1", b"3"]]


def test_a_key_goes_where_the_producer_of_java_puts_it(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(broker, partitions=3)
    env = again(tmp_path / "checkpoint")
    records = lines(topic).set_key_serialization_schema(SimpleStringSchema())
    script(env, ["a", "b", "c", "d", "e", ""]).sink_to(sink(broker, records, AT_LEAST).build())
    env.execute()
    found = {m.key(): m.partition() for m in contents(broker, topic)}
    assert found == {key: (murmur2(key) & 0x7FFF_FFFF) % 3 for key in (b"a", b"b", b"c", b"d", b"e", b"")}
    assert len(set(found.values())) > 1


def murmur2(data: bytes) -> int:
    """The hash by which the producer of Java finds the partition of a key."""

    def times(value: int) -> int:
        return value * 0x5BD1_E995 & 0xFFFF_FFFF

    found = 0x9747_B28C ^ len(data)
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        part = times(word)
        found = times(found) ^ times(part ^ part >> 24)
    rest = int.from_bytes(data[whole:], "little")
    if data[whole:]:
        found = times(found ^ rest)
    found = times(found ^ found >> 13)
    return found ^ found >> 15


def test_the_hash_is_that_of_java() -> None:
    """The examples of Kafka's own test of it."""
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    assert {data: murmur2(data) for data in known} == {data: value % 2**32 for data, value in known.items()}


def test_windows_on_columns_are_written_with_the_time_of_their_window(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(broker)
    env = again(tmp_path / "checkpoint")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_timestamp_assigner("at")
    rows = [("a", 1), ("b", 3), ("a", 9), ("a", 12), ("b", 40)]
    events = script(env, rows, type_info=PAIR).assign_timestamps_and_watermarks(strategy)
    counts = events.key_by("user").window(TumblingEventTimeWindows.of(10)).aggregate(count().alias("n"))
    json = JsonRowSerializationSchema.builder().with_type_info(counts.get_type()).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(json)
    counts.sink_to(sink(broker, records, EXACTLY).build())
    env.execute()
    assert sorted((m.timestamp()[1], m.value()) for m in contents(broker, topic)) == [
        (9, b'{"user":"a","window":{"start":0,"end":10},"n":2}'),
        (9, b'{"user":"b","window":{"start":0,"end":10},"n":1}'),
        (19, b'{"user":"a","window":{"start":10,"end":20},"n":1}'),
    ]


def test_a_batch_job_writes_once(broker: KafkaBroker, spark: SparkSession) -> None:
    topic = new_topic(broker)
    for _ in range(2):
        env = again(None).set_runtime_mode(RuntimeExecutionMode.BATCH)
        stream = env.from_collection(["a", "b"], Types.STRING())
        stream.sink_to(sink(broker, lines(topic), EXACTLY, f"prefix-of-{topic}").build())
        env.execute()
    assert values(broker, topic) == [b"a", b"b", b"a", b"b"]


def test_another_checkpoint_may_not_take_the_prefix_of_a_job(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(broker)

    def run(checkpoint: str, prefix: str) -> None:
        env = again(tmp_path / checkpoint)
        script(env, ["a"]).sink_to(sink(broker, lines(topic), EXACTLY, prefix).build())
        env.execute()

    run("one", f"one-{topic}")
    with pytest.raises(StateError, match=f"'one-{topic}' belongs to a job with another checkpoint"):
        run("two", f"one-{topic}")
    assert values(broker, topic) == [b"a"]
    run("two", f"two-{topic}")
    assert values(broker, topic) == [b"a", b"a"]


def test_two_sinks_with_one_prefix_are_refused(broker: KafkaBroker, env: StreamExecutionEnvironment) -> None:
    stream = script(env, ["a"])
    for _ in range(2):
        stream.sink_to(sink(broker, lines("any"), EXACTLY, "same").build())
    with pytest.raises(ProgramError, match="two sinks have the transactional id prefix 'same'"):
        env.execute()


@pytest.mark.long
@pytest.mark.parametrize("guarantee", [EXACTLY, AT_LEAST])
def test_a_topic_that_is_not_there_is_said(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, guarantee: DeliveryGuarantee
) -> None:
    env = again(tmp_path / "checkpoint")
    builder = sink(broker, lines("no-such-topic"), guarantee)
    script(env, ["a"]).sink_to(builder.set_property("topic.metadata.propagation.max.ms", "1000").build())
    with pytest.raises(DataError, match="the topic no-such-topic, or a partition of it, does not exist at"):
        env.execute()


@pytest.mark.parametrize("guarantee", [EXACTLY, AT_LEAST])
def test_a_record_that_is_too_large_is_said_and_nothing_of_its_transaction_is_seen(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, guarantee: DeliveryGuarantee
) -> None:
    topic = new_topic(broker)
    env = again(tmp_path / "checkpoint")
    script(env, ["a", "b" * 2_000_000]).sink_to(sink(broker, lines(topic), guarantee).build())
    with pytest.raises(DataError, match=f"rejected a record for {topic}: .*too large"):
        env.execute()
    if guarantee is EXACTLY:
        assert values(broker, topic) == []


@pytest.mark.parametrize("guarantee", [EXACTLY, AT_LEAST])
def test_a_function_that_fails_is_named_with_its_element(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, guarantee: DeliveryGuarantee
) -> None:
    env = again(tmp_path / "checkpoint")
    records = lines(new_topic(broker)).set_header_provider(lambda text: {"n": str(1 // int(text))})
    script(env, ["1", "0"]).sink_to(sink(broker, records, guarantee).build()).name("out")
    with pytest.raises(UserFunctionError, match=r"'out'(?s:.*)division(?s:.*)The element was '0'"):
        env.execute()


@pytest.mark.parametrize("guarantee", [EXACTLY, AT_LEAST])
def test_brokers_that_do_not_answer_are_named(
    spark: SparkSession, tmp_path: Path, guarantee: DeliveryGuarantee
) -> None:
    env = again(tmp_path / "checkpoint")
    nobody = KafkaSink.builder().set_bootstrap_servers("127.0.0.1:1").set_delivery_guarantee(guarantee)
    nobody.set_transactional_id_prefix("p").set_record_serializer(lines("any").build())
    nobody.set_property("default.api.timeout.ms", "2000").set_property("delivery.timeout.ms", "2000")
    script(env, ["a"]).sink_to(nobody.build())
    with pytest.raises(DataError, match=r"127\.0\.0\.1:1"):
        env.execute()


def test_offsets_are_kept_in_the_group_of_the_prefix(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    from confluent_kafka import Consumer

    topic = new_topic(broker)
    env = again(tmp_path / "checkpoint")
    script(env, ["a"], ["b"]).sink_to(sink(broker, lines(topic), EXACTLY, f"group-{topic}").build())
    env.execute()
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"group-{topic}", **QUIET})
    [kept] = reader.committed([TopicPartition(topic, 0)], 30)
    reader.close()
    assert kept.offset == 2
