"""A partition that has no records, and with `with_idleness` it holds no other back.

A topic has three partitions, and only two machines write into it, so the third partition stays empty. It is not known
whether that will be so for ever: each partition counts from the start, and one that has said nothing holds the
watermark where it is.

What to see: the windows come out all the same, once the third partition has been silent for a second. Leave
`with_idleness` out, and this program waits for ever. Give it enough time: what an idle partition brings for a window
that has been closed meanwhile is late.
"""

from confluent_kafka import Producer

from eventide.common import Duration, SimpleStringSchema, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import KafkaBroker

MAY_1 = 1_777_593_600_000  # 2026, midnight; milliseconds
MACHINES = ("press", "drill")
PARTITIONS = 3
COUNT = Types.TUPLE([Types.LONG(), Types.LONG()])


def report(broker: KafkaBroker, topic: str) -> None:
    """Fill the topic: a report a minute of each machine, each in a partition of its own."""
    broker.create_topic(topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "max.in.flight": 1})
    for minute in range(28):
        for partition, machine in enumerate(MACHINES):
            producer.produce(topic, machine, partition=partition, timestamp=MAY_1 + minute * 60_000)
    producer.flush()


def main(broker: KafkaBroker) -> None:
    report(broker, "machines")
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics("machines")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20)).with_idleness(
        Duration.of_seconds(1)
    )
    counts = (
        env.from_source(source, strategy, "machines")
        .map(lambda machine: (int(machine == "press"), int(machine == "drill")), COUNT)
        .window_all(TumblingEventTimeWindows.of(Time.minutes(10)))
        .reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))
    )
    for press, drill in counts.execute_and_collect(limit=2):
        print(f"ten minutes: {press} reports of the press, {drill} of the drill")


if __name__ == "__main__":
    with KafkaBroker() as started:
        main(started)
