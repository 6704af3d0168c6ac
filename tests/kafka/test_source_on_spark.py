"""A Kafka source on Spark: windows on columns, a restart, what the workers count, and bad records at the side."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from eventide.aggregates import count, sum_
from eventide.common import Duration, JobClient, Types, WatermarkStrategy
from eventide.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import KafkaSource, KafkaSourceBuilder
from eventide.datastream.formats.json import JsonRowDeserializationSchema
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import KafkaBroker
from support.kafka_topics import QUIET, new_topic, produce

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ORDER = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
ORDERS = JsonRowDeserializationSchema.builder().type_info(ORDER).build()
BAD = OutputTag("bad")
PATIENCE_S = 60


def on(broker: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics(topic)
        .set_group_id(topic)
        .set_value_only_deserializer(ORDERS)
    )


def orders(first: int, end: int) -> list[dict[str, Any]]:
    """One order each millisecond from the first second on, over five partitions and three users."""
    return [
        {
            "value": json.dumps({"user": f"u{i % 3}", "amount": i}).encode(),
            "timestamp": 1_000 + i,
            "partition": i % 5,
        }
        for i in range(first, end)
    ]


def sums(source: DataStream) -> DataStream:
    windows = source.key_by("user").window(TumblingEventTimeWindows.of(Duration.of_millis(100)))
    return windows.aggregate(count().alias("orders"), sum_("amount").alias("total"))


def expected(end: int) -> list[tuple[str, int, int]]:
    """The results of windows that are complete when the watermark is a millisecond before the last order."""
    windows = [range(begin, begin + 100) for begin in range(0, end - 100, 100)]
    mine = [[i for i in window if i % 3 == user] for window in windows for user in range(3)]
    return sorted((f"u{amounts[0] % 3}", len(amounts), sum(amounts)) for amounts in mine)


def started(
    env: StreamExecutionEnvironment, builder: KafkaSourceBuilder, found: dict[str, dict[int, Any]]
) -> JobClient:
    """A job that keeps what each micro-batch gave, once, however often it is repeated."""
    source = env.from_source(builder.build(), WatermarkStrategy.for_monotonous_timestamps(), "orders")
    source.side_output_dead_letters(BAD)
    for name, stream in {"sums": sums(source), "bad": source.get_side_output(BAD)}.items():
        kept = found.setdefault(name, {})
        stream.sink_to(lambda rows, batch, kept=kept: kept.__setitem__(batch, rows.collect()))
    return env.execute_async("shop")


def environment(place: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(place))
    return env.set_max_rows_per_batch(1_000)


def sums_of(found: dict[str, dict[int, Any]]) -> list[tuple[str, int, int]]:
    return sorted((row.user, row.orders, row.total) for rows in found["sums"].values() for row in rows)


def test_windows_over_json_and_a_restart(broker: KafkaBroker, spark: object, tmp_path: Path) -> None:
    topic = new_topic(broker, 5)
    produce(broker, topic, orders(0, 2_500))
    found: dict[str, dict[int, Any]] = {}

    def run_until(end: int) -> JobClient:
        job = started(environment(tmp_path / "checkpoint"), on(broker, topic), found)
        deadline = time.monotonic() + PATIENCE_S
        while sums_of(found) != expected(end) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sums_of(found) == expected(end)
        return job

    run_until(2_500).cancel().result()
    produce(
        broker, topic, [{"value": b"what?", "timestamp": 5_000, "partition": 1, "key": b"k"}, *orders(2_500, 4_000)]
    )
    job = run_until(4_000)
    [bad] = [row for rows in found["bad"].values() for row in rows]
    assert (bad.operator, bad.split, bad.position, bad.text) == ("orders", f"{topic}-1", 500, "what?")
    assert job.get_metrics()["orders"]["numDeadLetters"] == 1
    job.cancel().result()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    asked = ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, p) for p in range(5)])
    committed = admin.list_consumer_group_offsets([asked])[topic].result(30).topic_partitions
    assert all(500 <= at.offset <= 801 for at in committed), "Spark commits a micro-batch with the next one"


@pytest.mark.long
def test_a_run_that_takes_what_is_there_ends_with_nothing_begun(
    broker: KafkaBroker, spark: object, tmp_path: Path
) -> None:
    topic = new_topic(broker, 5)
    produce(broker, topic, orders(0, 300))
    env = environment(tmp_path).set_available_now()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(300))
    sums(env.from_source(on(broker, topic).build(), strategy, "orders")).print()
    env.execute()
    begun, committed = (sorted(file.name for file in (tmp_path / log).glob("[0-9]*")) for log in ("offsets", "commits"))
    assert begun == committed != []
