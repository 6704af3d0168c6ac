"""A job for the kill tests: from Kafka through windows and a join to Kafka, exactly once.

python kafka_to_kafka_job.py SERVERS NAME CHECKPOINT ORDERS PAYMENTS [PARALLELISM [SAVEPOINT]]

It reads the topics ORDERS and PAYMENTS to their ends, and writes to the topics NAME-windows and NAME-pairs. It
may begin with a savepoint.
"""

from __future__ import annotations

import sys

from eventide.aggregates import count, sum_
from eventide.common import Duration, Row, Time, Types, WatermarkStrategy
from eventide.common.serialization import SerializationSchema
from eventide.common.typeinfo import CompositeTypeInfo
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.connectors import DeliveryGuarantee
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.datastream.functions import ProcessJoinFunction
from eventide.datastream.window import TumblingEventTimeWindows

EVENT = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.LONG()])
PAIR = Types.ROW_NAMED(["user", "order", "payment"], [Types.STRING(), Types.LONG(), Types.LONG()])
ROWS_AT_ONCE = 600


class UserOf(SerializationSchema):
    """The key of a record: its user."""

    def serialize(self, element: Row) -> bytes:
        return str(element["user"]).encode()


class Pair(ProcessJoinFunction):
    """An order and a payment."""

    def process_element(self, left, right, ctx):
        yield Row(user=left["user"], order=left["n"], payment=right["n"])


def events(env: StreamExecutionEnvironment, servers: str, topic: str) -> DataStream:
    schema = JsonRowDeserializationSchema.builder().type_info(EVENT).build()
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(topic).set_value_only_deserializer(schema)
    return env.from_source(
        source.build(), WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)), topic
    )


def into(servers: str, topic: str, kind: CompositeTypeInfo) -> KafkaSink:
    values = JsonRowSerializationSchema.builder().with_type_info(kind).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_key_serialization_schema(UserOf())
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.set_value_serialization_schema(values).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(topic)
        .build()
    )


def main(
    servers: str,
    name: str,
    checkpoint: str,
    orders_topic: str,
    payments_topic: str,
    parallelism: str = "2",
    savepoint: str = "",
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(int(parallelism)).set_available_now()
    if savepoint:
        env.from_savepoint(savepoint)
    env.set_max_rows_per_batch(ROWS_AT_ONCE)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    orders = events(env, servers, orders_topic).key_by("user")
    payments = events(env, servers, payments_topic).key_by("user")
    windows = orders.window(TumblingEventTimeWindows.of(Time.seconds(5)))
    sums = windows.aggregate(sum_("n").alias("total"), count().alias("orders"))
    sums.sink_to(into(servers, f"{name}-windows", sums.get_type()))
    soon = orders.interval_join(payments).between(Time.seconds(-1), Time.seconds(2))
    soon.process(Pair(), PAIR).sink_to(into(servers, f"{name}-pairs", PAIR))
    env.execute()


if __name__ == "__main__":
    main(*sys.argv[1:])
