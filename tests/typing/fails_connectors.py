# pyright: standard
"""Mistakes between a sink, a source or a format and the elements."""

from __future__ import annotations

from orders import Order, Payment, env, orders, payments

from eventide.common import Encoder, SerializationSchema, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import DataStream
from eventide.datastream.connectors import BucketAssigner, FileSink, FileSource
from eventide.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    HeaderProvider,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
)
from eventide.datastream.formats.parquet import ParquetBulkWriters
from eventide.state_processor import KeyedStateBootstrapFunction, OperatorTransformation


class OfPayments(SerializationSchema[Payment]):
    def serialize(self, element: Payment) -> bytes:
        return element.user.encode()


class ByCents(KafkaTopicSelector[Payment]):
    def apply(self, data: Payment) -> str:
        # error: attr-defined | reportAttributeAccessIssue
        return f"payments-{data.amount}"


class Wrong(KafkaTopicSelector[Payment]):
    # error: override | reportIncompatibleMethodOverride
    def apply(self, data: Order) -> str:
        return data.user


class Numbers(HeaderProvider[Order]):
    # error: override | reportIncompatibleMethodOverride
    def get_headers(self, input: Order) -> dict[str, int]:
        return {"amount": input.amount}


class Cents(Encoder[Payment]):
    def encode(self, element: Payment) -> bytes:
        return f"{element.cents}\n".encode()


class Totals(KeyedStateBootstrapFunction[str, Payment]):
    def process_element(self, value: Payment, ctx: KeyedStateBootstrapFunction.Context[str]) -> None:
        # error: attr-defined | reportAttributeAccessIssue
        print(value.amount)


# --- Kafka ---
records = KafkaRecordSerializationSchema.builder().set_topic("all")
kafka = KafkaSink.builder().set_bootstrap_servers("localhost:9092")
to_kafka = kafka.set_record_serializer(records.set_value_serialization_schema(OfPayments()).build()).build()
payments.sink_to(to_kafka)
# error: arg-type | reportArgumentType
orders.sink_to(to_kafka)
of_texts = records.set_value_serialization_schema(SimpleStringSchema())
# error: arg-type | reportArgumentType
orders.sink_to(kafka.set_record_serializer(of_texts.build()).build())
# error: arg-type | reportArgumentType
orders.add_sink(FlinkKafkaProducer("lines", SimpleStringSchema(), {"bootstrap.servers": "localhost:9092"}))
# error: arg-type | reportArgumentType
kafka.set_record_serializer(OfPayments())
by_cents = records.set_value_serialization_schema(SimpleStringSchema()).set_topic_selector(ByCents()).build()
# error: arg-type | reportArgumentType
orders.sink_to(kafka.set_record_serializer(by_cents).build())

# --- files ---
# error: arg-type | reportArgumentType
orders.sink_to(FileSink.for_row_format("out", Cents("UTF-8")).build())
parquet = FileSink.for_bulk_format(
    "out", ParquetBulkWriters.for_row_type(Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()]))
)
# error: arg-type | reportArgumentType
orders.sink_to(parquet.build())
lines = FileSink.for_row_format("out", Encoder.simple_string_encoder())
# error: arg-type | reportArgumentType
lines.with_bucket_assigner(BucketAssigner.field_bucket_assigner("user"))
# error: arg-type | reportAssignmentType
numbers: DataStream[int] = env.from_source(FileSource.text("in").build(), WatermarkStrategy.no_watermarks(), "lines")
strategy: WatermarkStrategy[Order] = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda order, _: order.time
)
# error: misc | reportArgumentType
env.from_source(FileSource.csv("in").build(), strategy, "orders")

# --- savepoints ---
table = OperatorTransformation.bootstrap_with([Order(1, "ann", 3)])
# error: attr-defined | reportAttributeAccessIssue
table.key_by(lambda order: order.usr)
# error: arg-type | reportArgumentType
table.key_by(lambda order: order.user).transform(Totals())
