"""Whole programs that read from Kafka, on the twin: event time, the end of the input, restarts and side outputs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from eventide.aggregates import count
from eventide.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.connectors.kafka import (
    ConsumerRecord,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaSourceBuilder,
)
from eventide.datastream.connectors.source import PartRange
from eventide.datastream.data_stream import DataStream
from eventide.datastream.formats.json import JsonRowDeserializationSchema
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import DataError
from eventide.local.runner import LocalCheckpoint
from eventide.testing import KafkaBroker, local_environment
from support.kafka_topics import QUIET, new_topic, produce
from support.twin import by_sink, plan_of, runner

pytestmark = pytest.mark.kafka

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()
LATEST = KafkaOffsetsInitializer.latest()
ORDER = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
ORDERS = JsonRowDeserializationSchema.builder().type_info(ORDER).build()


def on(broker: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics(topic)
        .set_value_only_deserializer(SimpleStringSchema())
    )


def stream_of(builder: KafkaSourceBuilder, strategy: WatermarkStrategy = NO_WATERMARKS) -> DataStream:
    return local_environment().from_source(builder.build(), strategy, "kafka")


class Job:
    """A program that is started anew for every run, on one checkpoint."""

    def __init__(self, program: Callable[[], DataStream | tuple[DataStream, ...]]) -> None:
        self.program = program
        self.checkpoint = LocalCheckpoint()
        self.metrics: dict[str, Any] = {}

    def run(self, max_rows: int | None = None) -> list[Any]:
        """The results of the job until it rests."""
        [only] = self.run_all(max_rows)
        return only

    def run_all(self, max_rows: int | None = None) -> list[list[Any]]:
        """The results of the job until it rests, sink by sink."""
        streams = self.program()
        plan = plan_of(*(streams if isinstance(streams, tuple) else (streams,)))
        one = runner(plan, max_rows, deepcopy(self.checkpoint))
        found: list[list[Any]] = [[] for _ in plan.sinks]
        try:
            for batch in one.batches():
                for number, given in enumerate(by_sink(plan, batch)):
                    found[number] += given
        finally:
            self.checkpoint, self.metrics = one.checkpoint, one.metrics()
        return found


def plain(found: list[Any]) -> list[Any]:
    """The elements without their timestamps."""
    return [element for element, _ in found]


def record(value: str, at: int, partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"value": value.encode(), "timestamp": at, "partition": partition, **more}


def test_records_have_their_timestamps_as_event_times(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record("a", 5_000), record("b", 7_000)])
    assert Job(lambda: stream_of(on(broker, topic))).run() == [("a", 5_000), ("b", 7_000)]


def test_an_assigner_takes_the_place_of_the_timestamps_of_records(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record("11", 5_000), record("12", 7_000)])
    strategy = MONOTONOUS.with_timestamp_assigner(lambda value, before: before + int(value))
    assert Job(lambda: stream_of(on(broker, topic), strategy)).run() == [("11", 5_011), ("12", 7_012)]


def test_a_partition_hours_behind_holds_the_windows(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 2)
    ahead, behind = 100_000_000, 1_000

    def program() -> DataStream:
        counted = stream_of(on(broker, topic), MONOTONOUS).map(lambda value: (value, 1))
        windows = counted.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))

    job = Job(program)
    produce(broker, topic, [record("x", ahead), record("x", ahead + 500), record("x", ahead + 1_000)])
    assert job.run() == []
    produce(broker, topic, [record("x", behind, 1), record("x", behind + 1_000, 1)])
    assert plain(job.run()) == [("x", 1)]
    produce(broker, topic, [record("x", ahead + 2_000, 1)])
    assert plain(job.run()) == [("x", 1), ("x", 2)]


def test_a_job_goes_on_where_its_checkpoint_is_whatever_the_group_says(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record("old", 1)])
    job = Job(lambda: stream_of(on(broker, topic).set_group_id(topic).set_starting_offsets(LATEST)))
    assert job.run() == []
    produce(broker, topic, [record(str(i), i) for i in range(5)])
    assert plain(job.run(max_rows=2)) == ["0", "1", "2", "3", "4"]
    assert job.run() == []


def test_a_bounded_source_stops_where_its_partitions_ended_when_the_job_first_started(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 2)

    def program() -> DataStream:
        counted = stream_of(on(broker, topic).set_bounded(LATEST), MONOTONOUS).map(lambda value: (value, 1))
        windows = counted.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(Duration.of_days(1)))
        return windows.reduce(lambda a, b: (a[0], a[1] + b[1]))

    produce(broker, topic, [record("x", i + 1, i % 2) for i in range(1_000)])
    plan = plan_of(program())
    one = runner(plan, 300)
    found = []
    for batch in one.batches():
        found += [e for sink in by_sink(plan, batch) for e in sink]
        produce(broker, topic, [record("x", 5, 0)])  # too late to be a part of it
    assert plain(found) == [("x", 1_000)]


def test_a_source_with_stops_ends_the_stream_too(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 2)
    produce(broker, topic, [record("x", i + 1, i % 2) for i in range(10)])

    def program() -> DataStream:
        windows = stream_of(on(broker, topic).set_unbounded(LATEST), MONOTONOUS).window_all(
            TumblingEventTimeWindows.of(Duration.of_days(1))
        )
        return windows.reduce(lambda a, b: a + b)

    assert plain(Job(program).run()) == ["x" * 10]


def test_a_partition_that_is_found_later_holds_the_watermark_from_then_on(broker: KafkaBroker) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic = new_topic(broker)

    def program() -> DataStream:
        windows = stream_of(on(broker, topic), MONOTONOUS).window_all(
            TumblingEventTimeWindows.of(Duration.of_seconds(1))
        )
        return windows.reduce(lambda a, b: a + b)

    job = Job(program)
    produce(broker, topic, [record("a", 100), record("b", 1_500)])
    assert plain(job.run()) == ["a"]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    deadline = time.monotonic() + 30
    while len(on(broker, topic).build().splits()) < 2:
        assert time.monotonic() < deadline
    produce(broker, topic, [record("c", 9_000)])
    assert job.run() == []
    produce(broker, topic, [record("d", 1_800, 1), record("e", 2_500, 1)])
    assert plain(job.run()) == ["bd"]


def test_typed_json_comes_as_rows(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(
        broker, topic, [record('{"user": "wren", "amount": 5}', 1), {"value": None, "timestamp": 2}, record("{}", 3)]
    )
    job = Job(lambda: stream_of(on(broker, topic).set_value_only_deserializer(ORDERS)))
    assert [(row.as_dict(), at) for row, at in job.run()] == [
        ({"user": "wren", "amount": 5}, 1),
        ({"user": None, "amount": None}, 3),
    ]
    assert job.metrics["kafka"]["numRecordsWithoutElement"] == 1


def test_a_bad_record_fails_the_job_with_its_place(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record("{}", 1), record("what?", 2)])
    with pytest.raises(DataError, match=f"record 1 of {topic}-0 cannot be read: .*what.*side_output_dead_letters"):
        Job(lambda: stream_of(on(broker, topic).set_value_only_deserializer(ORDERS))).run()


@pytest.mark.parametrize("strategy", [NO_WATERMARKS, MONOTONOUS])
def test_bad_records_become_dead_letters_and_are_counted(broker: KafkaBroker, strategy: WatermarkStrategy) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record("{}", 1), record("what?", 2, key=b"k"), record('{"amount": 3}', 3)])
    bad = OutputTag("bad")

    def program() -> tuple[DataStream, ...]:
        stream = stream_of(on(broker, topic).set_value_only_deserializer(ORDERS), strategy)
        letters = stream.side_output_dead_letters(bad).get_side_output(bad)
        return stream, letters, letters.map(lambda letter: letter.position)

    job = Job(program)
    good, aside, offsets = job.run_all()
    assert [at for _, at in good] == [1, 3]
    [(letter, at)] = aside
    assert (letter.split, letter.position, letter.key, letter.element, at) == (f"{topic}-0", 1, b"k", b"what?", 2)
    assert "cannot be read as JSON" in letter.error
    assert plain(offsets) == [1]
    assert job.metrics["kafka"]["numDeadLetters"] == 1
    produce(broker, topic, [record("what?", 4)])
    assert [len(found) for found in job.run_all()] == [0, 1, 1]


def test_windows_on_columns_aggregate_before_the_shuffle(
    broker: KafkaBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new_topic(broker)
    stream = stream_of(on(broker, topic).set_value_only_deserializer(ORDERS), MONOTONOUS)
    windows = stream.key_by("user").window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
    windows.aggregate(count().alias("orders")).explain()
    assert "aggregated before the shuffle" in capsys.readouterr().out


class KeyAndOffset(KafkaRecordDeserializationSchema):
    """Takes the key, and where the record lies."""

    def deserialize(self, record: ConsumerRecord) -> Any:
        return record.key.decode() if record.key else "", record.partition, record.offset

    def get_produced_type(self) -> Any:
        return Types.TUPLE([Types.STRING(), Types.INT(), Types.LONG()])


def test_a_deserializer_of_one_s_own_sees_the_whole_record(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 2)
    produce(broker, topic, [record("v", 1, 1, key=b"k"), record("w", 2, 1)])
    job = Job(lambda: stream_of(on(broker, topic).set_deserializer(KeyAndOffset())))
    assert job.run() == [(("k", 1, 0), 1), (("", 1, 1), 2)]


@pytest.mark.long
def test_a_broker_that_is_away_for_a_while_is_waited_for(broker: KafkaBroker) -> None:
    """A kill at any moment: while planning waits, and while a range is read."""
    topic = new_topic(broker, 3)
    produce(broker, topic, [record(str(i), i, i % 3) for i in range(3_000)])
    source = on(broker, topic).build()
    assert sum(source.latest_positions().values()) == 3_000
    at = dict.fromkeys(source.parts({}), 0)
    for _ in brought_back(broker, after_s=2):
        assert source.next_positions(at, None) == source.latest_positions()
    found: list[str] = []
    for _ in brought_back(broker, after_s=2):
        for _, items in source.read_together([PartRange(part, 0, 1_000) for part in at]):
            found += [value for item in items for value in item.rows.column(0).to_pylist()]
    assert sorted(map(int, found)) == list(range(3_000))
    source.stop()


def brought_back(broker: KafkaBroker, after_s: float) -> Iterator[None]:
    """A time in which a broker, once killed, comes back."""
    broker.kill()
    back = threading.Timer(after_s, broker.start)
    back.start()
    yield
    back.join()
