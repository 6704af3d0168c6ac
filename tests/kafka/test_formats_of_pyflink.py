"""Kafka by format, in the calls of PyFlink's programs: a job on Spark writes, jobs without Spark read.

The names come from the modules in which PyFlink has them. The fields of rows have no names, as in PyFlink's examples.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eventide.common import ByteArraySchema, Row, SimpleStringSchema, Types, WatermarkStrategy
from eventide.common.serialization import RowFieldExtractorSchema
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import (
    DeliveryGuarantee,
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from eventide.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from eventide.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.testing import KafkaBroker, local_environment
from support.kafka_topics import contents, new_topic, values
from support.twin import by_sink, plan_of, runner

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.filterwarnings("ignore:.*checkpoint")]

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
PAIR = Types.ROW([Types.INT(), Types.STRING()])
PAIRS = [(1, "hi"), (2, "hello, you"), (3, "Größe"), (-4, "")]
USER = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
}


@dataclass(frozen=True)
class Format:
    """How a format writes and reads elements, and what stands in Kafka in between."""

    element_type: Any
    elements: list[Any]
    serializer: Any
    deserializer: Any
    records: list[bytes]


FORMATS = {
    "strings": Format(
        Types.STRING(), ["a", "ü", ""], SimpleStringSchema(), SimpleStringSchema(), [b"a", "ü".encode(), b""]
    ),
    "bytes": Format(BYTES, [b"\x00\xff", b""], ByteArraySchema(), ByteArraySchema(), [b"\x00\xff", b""]),
    "json": Format(
        PAIR,
        PAIRS,
        JsonRowSerializationSchema.Builder().with_type_info(PAIR).build(),
        JsonRowDeserializationSchema.Builder().type_info(PAIR).build(),
        [f'{{"f0":{number},"f1":"{text}"}}'.encode() for number, text in PAIRS],
    ),
    "csv": Format(
        PAIR,
        PAIRS,
        CsvRowSerializationSchema.Builder(PAIR).build(),
        CsvRowDeserializationSchema.Builder(PAIR).build(),
        [b"1,hi\n", b'2,"hello, you"\n', "3,Größe\n".encode(), b"-4,\n"],
    ),
    "avro": Format(
        PAIR,
        PAIRS,
        AvroRowSerializationSchema(avro_schema_string=json.dumps(USER)),
        AvroRowDeserializationSchema(avro_schema_string=json.dumps(USER)),
        # a whole number is twice itself, or that and one less if it is negative; a text has its length before it
        [b"\x02\x04hi", b"\x04\x14hello, you", b"\x06\x0e" + "Größe".encode(), b"\x07\x00"],
    ),
}
EVENTS = [("user-1", {"type": "view"}), ("user-2", {"type": "purchase", "price": 9.5}), ("user-1", {"type": "view"})]


@pytest.fixture(scope="module")
def topics(broker: KafkaBroker, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Topics that one job has written: each format by `KafkaSink` and by the producer of Flink 1, and rows."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path_factory.mktemp("checkpoint")))
    found = {}
    for name, form in FORMATS.items():
        found[name], found[f"{name} of Flink 1"] = new_topic(broker), new_topic(broker)
        stream = env.from_collection(form.elements, type_info=form.element_type)
        stream.sink_to(sink_to(broker, found[name], form.serializer))
        config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "test"}
        stream.add_sink(
            FlinkKafkaProducer(
                topic=found[f"{name} of Flink 1"], serialization_schema=form.serializer, producer_config=config
            )
        )
    found["fields"] = new_topic(broker)
    rows = [Row(user.encode(), json.dumps(event).encode()) for user, event in EVENTS]
    events = env.from_collection(rows, type_info=Types.ROW([BYTES, BYTES]))
    same = events.map(lambda row: row, output_type=Types.ROW([BYTES, BYTES]))
    same.sink_to(sink_to(broker, found["fields"], RowFieldExtractorSchema(1), RowFieldExtractorSchema(0)))
    env.execute("formats")
    return found


def sink_to(broker: KafkaBroker, topic: str, value: Any, key: Any = None) -> KafkaSink:
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(value)
    if key is not None:
        records = records.set_key_serialization_schema(key)
    return (
        KafkaSink.builder()
        .set_record_serializer(records.build())
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_property("group.id", "test_group")
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )


def elements_of(stream: DataStream) -> list[Any]:
    """The results of a job without Spark until it rests."""
    plan = plan_of(stream)
    return [value for batch in runner(plan).batches() for value, _ in by_sink(plan, batch)[0]]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("writer", ["", " of Flink 1"])
def test_what_a_format_writes_both_readers_read(
    broker: KafkaBroker, topics: Mapping[str, str], name: str, writer: str
) -> None:
    form, topic = FORMATS[name], topics[name + writer]
    assert values(broker, topic) == form.records
    properties = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "test_group_1"}
    source = (
        KafkaSource.builder()
        .set_topics(topic)
        .set_value_only_deserializer(form.deserializer)
        .set_properties(properties)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .build()
    )
    consumer = FlinkKafkaConsumer(topics=topic, deserialization_schema=form.deserializer, properties=properties)
    consumer.set_start_from_earliest()
    env = local_environment()
    read = env.from_source(source, watermark_strategy=WatermarkStrategy.no_watermarks(), source_name="kafka source")
    for stream in (read, env.add_source(consumer)):
        found = elements_of(stream)
        assert all(isinstance(value, Row) for value in found) == (form.element_type is PAIR)
        assert [tuple(value) if isinstance(value, Row) else value for value in found] == form.elements


def test_fields_of_a_row_are_key_and_value(broker: KafkaBroker, topics: Mapping[str, str]) -> None:
    found = [(message.key(), json.loads(message.value())) for message in contents(broker, topics["fields"])]
    assert found == [(user.encode(), event) for user, event in EVENTS]


def test_bytes_are_decoded_by_a_map(broker: KafkaBroker, topics: Mapping[str, str]) -> None:
    consumer = FlinkKafkaConsumer(topics["json"], ByteArraySchema(), {"bootstrap.servers": broker.bootstrap_servers})
    stream = local_environment().add_source(consumer.set_start_from_earliest())
    texts = stream.map(lambda data: json.loads(data.decode("utf-8"))["f1"], output_type=Types.STRING())
    assert elements_of(texts) == [text for _, text in PAIRS]
