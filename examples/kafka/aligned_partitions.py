"""Partitions of one topic that wait for each other: watermark alignment within a source.

A topic has the payments of two shops. The one by the lake was offline, and has just sent the payments of a whole
night: its partition is hours behind. A micro-batch takes as many records of each partition, so one shop stays ahead of
the other, and all that it brings waits in windows.

What to see: how many payments of the shop downtown have been read, and wait, when the other has come to where downtown
begins. With an alignment, the shop that is ahead is not read until the other has come up; only its first payment is,
because that tells where it stands. The timestamps of records tell the broker where to stop, so both are planned to one
time. All payments are read in either case.
"""

from confluent_kafka import Producer

from eventide.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import ProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.testing import KafkaBroker

MAY_1 = 1_777_593_600_000  # 2026, midnight; milliseconds
SHOPS = {"by the lake": 0, "downtown": 6 * 60}  # the minute of the first payment; one partition for each
UNTIL = 10 * 60
READ = Types.TUPLE([Types.STRING(), Types.LONG()])


class WithMinute(ProcessFunction):
    """Puts the minute behind the shop."""

    def process_element(self, value, ctx):
        yield value, (ctx.timestamp() - MAY_1) // 60_000


def pay(broker: KafkaBroker, topic: str) -> None:
    """Fill the topic: a payment every two minutes in each shop."""
    broker.create_topic(topic, partitions=len(SHOPS))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "max.in.flight": 1})
    for partition, (shop, first) in enumerate(SHOPS.items()):
        for minute in range(first, UNTIL, 2):
            producer.produce(topic, shop, partition=partition, timestamp=MAY_1 + minute * 60_000)
    producer.flush()


def main(broker: KafkaBroker) -> None:
    pay(broker, "payments")
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics("payments")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    apart = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    aligned = apart.with_watermark_alignment("alignment-group-1", Duration.of_minutes(10), Duration.of_seconds(1))
    for name, strategy in (("apart", apart), ("aligned", aligned)):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(20)
        payments = env.from_source(source, strategy, "payments").process(WithMinute(), READ)
        tell(name, list(payments.execute_and_collect()))


def tell(name: str, read: list[tuple[str, int]]) -> None:
    """Print what follows from the order in which payments were read."""
    up_to_then = read[: read.index(("by the lake", SHOPS["downtown"] - 2)) + 1]
    waiting = sum(shop == "downtown" for shop, _ in up_to_then)
    print(f"{name}: {len(read)} payments; when the lake is at six o'clock, {waiting} of downtown wait")


if __name__ == "__main__":
    with KafkaBroker() as started:
        main(started)
