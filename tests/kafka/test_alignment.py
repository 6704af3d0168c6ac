"""Partitions hours apart that wait for each other: on a real broker, planned by the timestamps of its records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from eventide.aggregates import count
from eventide.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.local.runner import LocalRunner
from eventide.testing import KafkaBroker, local_environment
from support.kafka_topics import new_topic, produce
from support.twin import Contents, plan_of

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
    """Up to which minute each partition has been read, after each micro-batch that reads anything."""
    builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(topic)
    builder = builder.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    stream = local_environment().from_source(builder.build(), strategy, "topic")
    windows = stream.key_by(lambda value: value).window(TumblingEventTimeWindows.of(MINUTE)).process(Contents())
    run = LocalRunner(plan_of(windows), max_rows=400, clock=lambda: 0)
    counted = 0
    for batch in run.batches():
        counted += sum(len(value[-1]) for rows in batch.elements.values() for value, _ in rows)
        yield minutes_of(run.checkpoint.offsets["topic"], topic)
    assert counted == 2 * HOURS * 60 + 10 * (HOURS * 60 - 120)


def minutes_of(offsets: Mapping[str, Mapping[str, int]], topic: str) -> list[int]:
    at = [offsets[f"{topic}-{number}"]["position"] for number in range(3)]
    thick = at[2] // 10
    return [at[0], at[1], thick if thick <= 200 else thick + 120]


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


@pytest.mark.spark
def test_on_spark_they_are_planned_to_one_time_as_well(
    broker: KafkaBroker, topic: str, spark: object, tmp_path: Path
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_max_rows_per_batch(1_000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
    builder = KafkaSource.builder().set_bootstrap_servers(broker.bootstrap_servers).set_topics(topic)
    builder = builder.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    minutes = env.from_source(builder.build(), ALIGNED, "topic").map(
        lambda value: (value,), Types.TUPLE([Types.STRING()])
    )
    windows = minutes.key_by("f0").window(TumblingEventTimeWindows.of(MINUTE)).aggregate(count().alias("n"))
    counted: dict[int, int] = {}
    windows.sink_to(lambda rows, batch: counted.__setitem__(batch, sum(row.n for row in rows.collect())))
    env.execute()
    assert sum(counted.values()) == 2 * HOURS * 60 + 10 * (HOURS * 60 - 120)
    logged = [
        path.read_text().split("\n") for path in (tmp_path / "checkpoint" / "offsets").iterdir() if path.name.isdigit()
    ]
    reached = [minutes_of(json.loads(offsets), topic) for *_, offsets in logged if f"{topic}-0" in offsets]
    assert len(reached) > 5
    assert max(map(apart, reached)) <= 121, "a row each, whatever gap lies before it"
    assert sorted(map(apart, reached))[len(reached) // 2] <= 1


def test_by_a_function_of_the_value_it_is_flinks_rule(broker: KafkaBroker, topic: str) -> None:
    found = list(planned(broker, topic, BY_VALUE))
    share = 400 // 3 + 1
    assert max(map(apart, found)) <= DRIFT + share + 120, "as far as a micro-batch brings one that was not held"
