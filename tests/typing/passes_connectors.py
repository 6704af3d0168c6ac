"""Sinks say which elements they take; sources and formats of files say which elements they give."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, assert_type

from orders import Event, Order, Payment, env, orders

from eventide.common import Encoder, Row, SerializationSchema, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import DataStream
from eventide.datastream.connectors import (
    BucketAssigner,
    CollectSink,
    DataFrameSink,
    FileSink,
    FileSource,
    FormatSink,
    PrintSink,
    Sink,
    StreamFormat,
)
from eventide.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    HeaderProvider,
    KafkaPartitioner,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
)
from eventide.datastream.formats.csv import CsvReaderFormat, CsvSchema
from eventide.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from eventide.state_processor import KeyedStateBootstrapFunction, OperatorTransformation

folder = tempfile.mkdtemp()
row_type = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
pair_type = Types.TUPLE([Types.STRING(), Types.LONG()])


class AsText(SerializationSchema[Event]):
    def serialize(self, element: Event) -> bytes:
        return str(element.time).encode()


class UserOf(SerializationSchema[Order]):
    def serialize(self, element: Order) -> bytes:
        return element.user.encode()


class Anything(SerializationSchema[object]):
    def serialize(self, element: object) -> bytes:
        return repr(element).encode()


class ByUser(KafkaTopicSelector[Order]):
    def apply(self, data: Order) -> str:
        return f"orders-of-{data.user}"


class ByTime(KafkaPartitioner[Event]):
    def partition(
        self, record: Event, key: bytes | None, value: bytes | None, target_topic: str, partitions: Sequence[int]
    ) -> int:
        return partitions[record.time % len(partitions)]


class Amounts(HeaderProvider[Order]):
    def get_headers(self, input: Order) -> Mapping[str, bytes | str | None]:
        return {"amount": str(input.amount)}


# --- what takes anything ---
for sink in (CollectSink(), PrintSink(), DataFrameSink(lambda frame, batch: None), FormatSink("noop")):
    orders.sink_to(sink)
orders.sink_to(lambda frame, batch: None)
of_anything: Sink[Order] = CollectSink()

# --- Kafka ---
records = KafkaRecordSerializationSchema.builder().set_topic("orders").set_value_serialization_schema(AsText()).build()
assert_type(records, KafkaRecordSerializationSchema[Event])
kafka = KafkaSink.builder().set_bootstrap_servers("localhost:9092")
events = kafka.set_record_serializer(records).build()
assert_type(events, KafkaSink[Event])
orders.sink_to(events)  # a sink of any event
of_orders: Sink[Order] = events

to_topics = KafkaRecordSerializationSchema.builder().set_topic_selector(ByUser())
assert_type(
    to_topics.set_value_serialization_schema(UserOf())
    .set_key_serialization_schema(AsText())
    .set_partitioner(ByTime())
    .set_header_provider(Amounts())
    .build(),
    KafkaRecordSerializationSchema[Order],
)
narrowed = to_topics.set_value_serialization_schema(Anything()).set_key_serialization_schema(UserOf())
assert_type(narrowed.build(), KafkaRecordSerializationSchema[Order])
with_functions = (
    KafkaRecordSerializationSchema.builder()
    .set_value_serialization_schema(Anything())
    .set_topic_selector(lambda order: f"orders-of-{order.user}")
    .set_partitioner(lambda order, key, value, topic, partitions: partitions[0])
    .set_header_provider(lambda order: {"amount": str(order.amount)})
)
orders.sink_to(kafka.set_record_serializer(with_functions.build()).build())
assert_type(KafkaRecordSerializationSchema("orders", UserOf(), AsText()), KafkaRecordSerializationSchema[Order])
producer = FlinkKafkaProducer("lines", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"})
assert_type(producer, FlinkKafkaProducer[str])
orders.map(lambda order: order.user).add_sink(producer)

# A builder whose steps are statements accepts anything.
steps = KafkaSink.builder()
steps.set_bootstrap_servers("localhost:9092")
steps = steps.set_record_serializer(records)
orders.sink_to(steps.build())


# --- files as a sink ---
class Users(Encoder[Order]):
    def encode(self, element: Order) -> bytes:
        return f"{element.user}\n".encode()


lines = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build()
assert_type(lines, FileSink[object])
orders.sink_to(lines)
users = FileSink.for_row_format(folder, Users("UTF-8")).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
assert_type(users.build(), FileSink[Order])
orders.sink_to(users.build())
rows = env.from_collection([("ann", 3)], row_type)
parquet = FileSink.for_bulk_format(folder, ParquetBulkWriters.for_row_type(row_type))
rows.sink_to(parquet.with_bucket_assigner(BucketAssigner.field_bucket_assigner("user")).build())
env.from_collection([("ann", 3)], pair_type).sink_to(parquet.build())
orders.map(lambda order: {"user": order.user, "amount": order.amount}).sink_to(parquet.build())

# --- files as a source ---
assert_type(FileSource.text(folder).build(), FileSource[str])
found = env.from_source(FileSource.text(folder).build(), WatermarkStrategy.no_watermarks(), "lines")
assert_type(found, DataStream[str])
assert_type(FileSource.parquet(folder, type_info=row_type).build(), FileSource[Row])
assert_type(FileSource.orc(folder, type_info=pair_type).build(), FileSource[tuple[Any, ...]])
assert_type(FileSource.json_lines(folder, type_info=row_type).set_split_by(str.lower).build(), FileSource[Row])
assert_type(FileSource.csv(folder, type_info=row_type, header=False).build(), FileSource[Row])
csv = CsvReaderFormat.for_schema(CsvSchema.builder().add_string_column("user").build())
assert_type(FileSource.for_record_stream_format(csv, folder).build(), FileSource[Row])
columns = ParquetColumnarRowInputFormat(pair_type)
assert_type(FileSource.for_bulk_file_format(columns, folder).build(), FileSource[tuple[Any, ...]])
assert_type(env.read_file(StreamFormat.text_line_format(), folder), DataStream[str])


# --- messages ---
assert_type(SimpleStringSchema().deserialize(b"ann"), str)
assert_type(SimpleStringSchema().deserialize(None), str | None)
texts: DataStream[str] = orders.map(AsText().serialize).map(SimpleStringSchema().deserialize)


# --- savepoints ---
class Totals(KeyedStateBootstrapFunction[str, Order]):
    def process_element(self, value: Order, ctx: KeyedStateBootstrapFunction.Context[str]) -> None:
        assert_type(ctx.get_current_key(), str)


class Untyped(KeyedStateBootstrapFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        pass


table = OperatorTransformation.bootstrap_with([Order(1, "ann", 3)])
table.key_by(lambda order: order.user).transform(Totals())
table.key_by("user").transform(Totals())
table.key_by(lambda order: order.user).transform(Untyped())
OperatorTransformation.bootstrap_with(payment for payment in [Payment(2, "ann", 300)]).key_by(lambda one: one.user)
