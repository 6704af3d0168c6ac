"""A topic is deleted that an exactly-once sink has written into: its mark goes with it, those of other topics stay."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from eventide.common import SimpleStringSchema, Types, WatermarkStrategy
from eventide.connectors.kafka.sink_writer import Transactions
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import DeliveryGuarantee, KafkaSink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema
from eventide.errors import StateError
from eventide.testing import KafkaBroker, ScriptedSource
from support.kafka_topics import QUIET, new_topic, values

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def run(servers: str, checkpoint: Path, prefix: str, topics: Sequence[str], batches: Sequence[Sequence[str]]) -> None:
    """Write numbers into topics, by whether they are odd."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    script = [[("split", number) for number in batch] for batch in batches]
    source = ScriptedSource(["split"], script, Types.STRING(), bounded=False)
    records = KafkaRecordSerializationSchema.builder().set_topic_selector(lambda number: topics[int(number) % 2])
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(prefix)
    )
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").sink_to(sink.build())
    env.execute()


def stop_when_written(patch: pytest.MonkeyPatch, number: int) -> None:
    """End the job after Kafka has a transaction, before Spark notes its micro-batch; the first has a mark alone."""
    reached = 0

    def count(self: Transactions, place: str) -> None:
        nonlocal reached
        reached += place == "committed"
        if reached == number:
            raise SystemError("the machine has stopped")

    patch.setattr(Transactions, "_reached", count)


def delete(broker: KafkaBroker, topic: str, group: str) -> None:
    """Delete a topic, and wait until the group has no offset beside it."""
    broker.delete_topic(topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    asked = ConsumerGroupTopicPartitions(group)
    until = time.monotonic() + 30
    while True:
        found = admin.list_consumer_group_offsets([asked])[group].result().topic_partitions
        if topic not in {one.topic for one in found if one.offset >= 0}:
            return
        assert time.monotonic() < until, "the offset is still there"
        time.sleep(0.1)


def test_what_was_written_is_known_while_one_of_its_topics_is_there(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic of the first record of a micro-batch is made anew before the micro-batch is repeated."""
    even, odd = new_topic(broker), new_topic(broker)
    prefix, batches = f"sink-{uuid.uuid4().hex[:8]}", [["2"], ["1", "4"], ["6", "3"]]
    with monkeypatch.context() as patch:
        stop_when_written(patch, 3)
        with pytest.raises(Exception, match="the machine has stopped"):
            run(broker.bootstrap_servers, tmp_path, prefix, (even, odd), batches)
    assert (values(broker, even), values(broker, odd)) == ([b"2", b"4"], [b"1"])
    delete(broker, odd, prefix)
    broker.create_topic(odd)
    run(broker.bootstrap_servers, tmp_path, prefix, (even, odd), batches)
    assert (values(broker, even), values(broker, odd)) == ([b"2", b"4", b"6"], [b"3"])


@pytest.mark.long
def test_where_all_topics_have_gone_a_repeated_micro_batch_stops_and_a_new_prefix_goes_on(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = new_topic(broker), new_topic(broker)
    prefix, batches = f"sink-{uuid.uuid4().hex[:8]}", [["1", "2"], ["3"]]
    with monkeypatch.context() as patch:
        stop_when_written(patch, 2)
        with pytest.raises(Exception, match="the machine has stopped"):
            run(broker.bootstrap_servers, tmp_path, prefix, (old, old), batches)
    assert values(broker, old) == [b"1", b"2"]
    delete(broker, old, prefix)
    with pytest.raises(StateError, match=r"micro-batch 0 is repeated(?s:.*)its topic(?s:.*)start with a new prefix"):
        run(broker.bootstrap_servers, tmp_path, prefix, (new, new), batches)
    assert values(broker, new) == []
    run(broker.bootstrap_servers, tmp_path, f"{prefix}-2", (new, new), batches)
    assert values(broker, new) == [b"1", b"2", b"3"]
