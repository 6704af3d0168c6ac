"""Sources that wait for each other: one alignment group for two topics.

Orders are many, shipments are few: one for every tenth order, three minutes later. A micro-batch reads as many records
of each topic, so the shipments are soon hours ahead, and whatever joins the two keeps them until the orders come up.

What to see: how many minutes apart the two topics are read at most. Both strategies name the same group, so the source
that is ahead waits for the other, but for one record: without that, it could not be known where it goes on.
"""

from confluent_kafka import Producer

from eventide.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from eventide.datastream import DataStream, ProcessFunction, StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.testing import KafkaBroker

MAY_1 = 1_777_593_600_000  # 2026, midnight; milliseconds
ORDERS, EVERY_TENTH = 600, 10
READ = Types.TUPLE([Types.STRING(), Types.LONG()])


class WithMinute(ProcessFunction):
    """Puts the minute behind the topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def process_element(self, value, ctx):
        yield self._topic, (ctx.timestamp() - MAY_1) // 60_000


def fill(broker: KafkaBroker) -> None:
    """Fill the topics: an order a minute, and a shipment of every tenth, three minutes later."""
    for topic in ("orders", "shipments"):
        broker.create_topic(topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "max.in.flight": 1})
    for number in range(ORDERS):
        at = MAY_1 + number * 60_000
        producer.produce("orders", str(number), timestamp=at)
        if number % EVERY_TENTH == 0:
            producer.produce("shipments", str(number), timestamp=at + 3 * 60_000)
    producer.flush()


def stream(env: StreamExecutionEnvironment, broker: KafkaBroker, topic: str, strategy: WatermarkStrategy) -> DataStream:
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    return env.from_source(source, strategy, topic).process(WithMinute(topic), READ)


def main(broker: KafkaBroker) -> None:
    fill(broker)
    apart = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    aligned = apart.with_watermark_alignment("alignment-group-1", Duration.of_minutes(5), Duration.of_seconds(1))
    for name, strategy in (("apart", apart), ("aligned", aligned)):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(20)
        orders, shipments = (stream(env, broker, topic, strategy) for topic in ("orders", "shipments"))
        read = list(orders.union(shipments).execute_and_collect())
        print(f"{name}: {len(read)} records; the topics are {furthest(read)} minutes apart at most")


def furthest(read: list[tuple[str, int]]) -> int:
    """How far the topics come apart, in the order in which they are read."""
    reached: dict[str, int] = {}
    most = 0
    for topic, minute in read:
        reached[topic] = minute
        most = max(most, max(reached.values()) - min(reached.values()))
    return most


if __name__ == "__main__":
    with KafkaBroker() as started:
        main(started)
