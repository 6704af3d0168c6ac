"""Flink 1's consumer and producer of Kafka, with a real broker: what they read, from where, and what they write."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from eventide.common import SimpleStringSchema, WatermarkStrategy
from eventide.common.time import Duration
from eventide.common.watermark import Watermark
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, KafkaTopicPartition, Semantic
from eventide.datastream.functions import AssignerWithPeriodicWatermarks
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.testing import KafkaBroker, local_environment
from support.kafka_topics import new_topic, produce, values
from support.twin import by_sink, plan_of, runner

pytestmark = pytest.mark.kafka


def consumer(broker: KafkaBroker, topics: Any, **more: str) -> FlinkKafkaConsumer:
    properties = {"bootstrap.servers": broker.bootstrap_servers, **{k.replace("_", "."): v for k, v in more.items()}}
    return FlinkKafkaConsumer(topics, SimpleStringSchema(), properties)


def read(source: FlinkKafkaConsumer) -> list[tuple[Any, int]]:
    """The results of a job until it rests, with timestamps."""
    return run(local_environment().add_source(source))


def run(stream: DataStream) -> list[tuple[Any, int]]:
    plan = plan_of(stream)
    return [element for batch in runner(plan, None).batches() for element in by_sink(plan, batch)[0]]


def record(value: str, at: int, partition: int = 0) -> dict[str, Any]:
    return {"value": value.encode(), "timestamp": at, "partition": partition}


def test_it_starts_where_it_is_told(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record(value, at) for value, at in (("a", 1_000), ("b", 2_000), ("c", 3_000))])
    assert read(consumer(broker, topic).set_start_from_earliest()) == [("a", 1_000), ("b", 2_000), ("c", 3_000)]
    assert read(consumer(broker, topic).set_start_from_timestamp(1_500)) == [("b", 2_000), ("c", 3_000)]
    assert read(consumer(broker, [topic]).set_start_from_latest()) == []
    offsets = {KafkaTopicPartition(topic, 0): 2}
    assert read(consumer(broker, topic).set_start_from_specific_offsets(offsets)) == [("c", 3_000)]
    assert len(read(consumer(broker, re.compile(topic)).set_start_from_earliest())) == 3


def test_without_a_start_the_group_or_the_reset_says_it(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [record("a", 1_000)])
    assert read(consumer(broker, topic)) == []
    assert read(consumer(broker, topic, group_id=topic)) == []
    assert read(consumer(broker, topic, auto_offset_reset="earliest")) == [("a", 1_000)]
    source = consumer(broker, topic, group_id=f"{topic}-2", auto_offset_reset="earliest").set_start_from_group_offsets()
    assert read(source) == [("a", 1_000)]


def test_each_partition_has_a_watermark_of_its_own(broker: KafkaBroker) -> None:
    """The slowest partition holds the windows back, so that all of its records are in time."""

    class Lagging(AssignerWithPeriodicWatermarks):
        highest = -(2**63)

        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            self.highest = max(self.highest, record_timestamp)
            return record_timestamp

        def get_current_watermark(self) -> Watermark:
            return Watermark(self.highest)

    for strategy in (WatermarkStrategy.for_monotonous_timestamps(), Lagging()):
        topic = new_topic(broker, 2)
        produce(
            broker, topic, [record("x", 100_000), record("x", 200_000), record("x", 1_000, 1), record("x", 2_500, 1)]
        )
        source = consumer(broker, topic).set_start_from_earliest().assign_timestamps_and_watermarks(strategy)
        ones = local_environment().add_source(source).map(lambda value: (value, 1))
        windows = ones.key_by(lambda e: e[0]).window(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
        assert [element for element, _ in run(windows.reduce(lambda a, b: (a[0], a[1] + b[1])))] == [("x", 1)]


def test_what_makes_no_sense_is_refused(broker: KafkaBroker) -> None:
    with pytest.raises(ProgramError, match="set_topics needs the names of topics"):
        consumer(broker, [])
    with pytest.raises(ProgramError, match=r"auto\.offset\.reset is earliest, latest or none, not 'soon'"):
        local_environment().add_source(consumer(broker, "t", auto_offset_reset="soon"))
    with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks needs a strategy, not 7"):
        consumer(broker, "t").assign_timestamps_and_watermarks(7)
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    with pytest.raises(ProgramError, match=r"set the property transactional\.id"):
        FlinkKafkaProducer("t", SimpleStringSchema(), servers, semantic=Semantic.EXACTLY_ONCE)
    with pytest.raises(ProgramError, match="needs a Semantic, not 'once'"):
        FlinkKafkaProducer("t", SimpleStringSchema(), servers, semantic="once")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="a record that Kafka rejects stops the job"):
        FlinkKafkaProducer("t", SimpleStringSchema(), servers).set_log_failures_only(True)


PROGRAM = """
from pyflink.common.serialization import JsonRowDeserializationSchema, JsonRowSerializationSchema
from pyflink.common.typeinfo import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic

env = StreamExecutionEnvironment.get_execution_environment()
env.add_jars("file:///opt/flink-sql-connector-kafka-1.15.2.jar")
kind = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
rows = JsonRowDeserializationSchema.builder().type_info(kind).build()
source = FlinkKafkaConsumer("IN", rows, {"bootstrap.servers": "SERVERS", "group.id": "shop"})
source.set_start_from_earliest()
sink = FlinkKafkaProducer(
    topic="OUT",
    serialization_schema=JsonRowSerializationSchema.builder().with_type_info(kind).build(),
    producer_config={"bootstrap.servers": "SERVERS", "transactional.id": "OUT"},
    semantic=Semantic.EXACTLY_ONCE,
)
env.add_source(source).filter(lambda row: row.amount > 1).add_sink(sink)
env.execute("shop")
"""


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:add_jars of .* has no effect")
@pytest.mark.filterwarnings("ignore:.*checkpoint")
def test_a_program_of_flink_1_reads_and_writes_rows_exactly_once(
    broker: KafkaBroker, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, taken = new_topic(broker), new_topic(broker)
    produce(broker, given, [b'{"user":"wren","amount":1}', b'{"user":"finch","amount":2}'])
    text = PROGRAM.replace("pyflink", "eventide").replace("SERVERS", broker.bootstrap_servers)
    program = tmp_path / "shop.py"
    program.write_text(text.replace('"IN"', repr(given)).replace('"OUT"', repr(taken)))
    env = StreamExecutionEnvironment.get_execution_environment().set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoint"))
    monkeypatch.setattr(StreamExecutionEnvironment, "get_execution_environment", staticmethod(lambda: env))
    monkeypatch.setattr(sys, "argv", [str(program)])
    runpy.run_path(str(program), run_name="__main__")
    assert values(broker, taken) == [b'{"user":"finch","amount":2}']
