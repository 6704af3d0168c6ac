"""Partitions hours apart that wait for each other: on a real broker, planned by the timestamps of its records."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventide.common import Duration, SimpleStringSchema, WatermarkStrategy
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.runner import LocalRunner
from eventide.testing import KafkaBroker, local_environment
from kafka_topics import new_topic, produce
from twin import Contents, plan_of

pytestmark = pytest.mark.kafka

MINUTE = 60_000
START = 28_000_000 * MINUTE
HOURS = 10
DRIFT = 10
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
ALIGNED = MONOTONOUS.with_watermark_alignment("partitions", Duration.of_minutes(DRIFT))
BY_VALUE = ALIGNED.with_timestamp_assigner(lambda value, _: START + int(value) * MINUTE)


@pytest.fixture(scope="module")
def topic(broker: KafkaBroker) -> str:
    """Three partitions with a record a minute; the last has a hundred times as many, and a gap of two hours."""
    topic = new_topic(broker, 3)
    minutes = range(HOURS * 60)
    for partition in range(2):
        produce(broker, topic, (of_minute(minute, partition) for minute in minutes))
    produce(broker, topic, (of_minute(at, 2) for at in minutes if not 200 <= at < 320 for _ in range(10)))
    return topic


def of_minute(minute: int, partition: int) -> dict[str, object]:
    return {"value": str(minute).encode(), "timestamp": START + minute * MINUTE, "partition": partition}


def planned(broker: KafkaBroker, topic: str, strategy: WatermarkStrategy) -> Iterator[list[int]]:
    """Up to which minute each partition has been read, behind each micro-batch that reads anything."""
    builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(topic)
    builder = builder.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    stream = local_environment().from_source(builder.build(), strategy, "topic")
    windows = stream.key_by(lambda value: value).window(TumblingEventTimeWindows.of(MINUTE)).process(Contents())
    run = LocalRunner(plan_of(windows), max_rows=400, clock=lambda: 0)
    counted = 0
    for batch in run.batches():
        counted += sum(len(value[-1]) for rows in batch.elements.values() for value, _ in rows)
        at = [run.checkpoint.offsets["topic"][f"{topic}-{number}"]["position"] for number in range(3)]
        thick = at[2] // 10
        yield [at[0], at[1], thick if thick <= 200 else thick + 120]
    assert counted == 2 * HOURS * 60 + 10 * (HOURS * 60 - 120)


def apart(reached: list[int]) -> int:
    return max(reached) - min(reached)


def test_without_alignment_partitions_drift_apart(broker: KafkaBroker, topic: str) -> None:
    assert max(map(apart, planned(broker, topic, MONOTONOUS))) > 5 * 60


def test_by_the_timestamps_of_records_partitions_are_planned_to_one_time(broker: KafkaBroker, topic: str) -> None:
    found = list(planned(broker, topic, ALIGNED))
    gap = 120
    assert max(map(apart, found)) <= gap + 1, "a row each, whatever gap lies before it"
    assert sorted(map(apart, found))[len(found) // 2] <= 1
    assert len(found) < 40


def test_by_a_function_of_the_value_it_is_flinks_rule(broker: KafkaBroker, topic: str) -> None:
    found = list(planned(broker, topic, BY_VALUE))
    share = 400 // 3 + 1
    assert max(map(apart, found)) <= DRIFT + share + 120, "as far as a micro-batch brings one that was not held"
