"""A watermark for each partition of a topic, and what one watermark for all of them would lose.

Flink's page on watermarks reads a topic with a strategy on the source, and without an assigner: the records have their
timestamps. Here two weather stations write into the topic, each into a partition of its own and in the order of time,
but the one in the valley is a minute behind. So the topic as a whole is out of order by a minute, and each partition
not at all.

What to see: "of each partition" counts every reading, though its strategy tolerates no disorder. "of all" has the same
strategy, but after a shuffle, where it is no longer known which partition an element is from. The mountain moves the
one watermark there is, and what the valley brings is too late.
"""

from confluent_kafka import Producer

from eventide.common import SimpleStringSchema, Time, Types, WatermarkStrategy
from eventide.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import KafkaBroker

MAY_1 = 1_777_593_600_000  # 2026, midnight; milliseconds
STATIONS = {"mountain": 60, "valley": 0}  # the second of the first reading; one partition for each
READINGS, EVERY = 12, 10
COUNT = Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()])


def report(broker: KafkaBroker, topic: str) -> None:
    """Fill the topic: a reading every ten seconds of each station, with its time as the timestamp of the record."""
    broker.create_topic(topic, partitions=len(STATIONS))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "max.in.flight": 1})
    for number in range(READINGS):
        for partition, (station, first) in enumerate(STATIONS.items()):
            at = MAY_1 + (first + number * EVERY) * 1000
            producer.produce(topic, station, partition=partition, timestamp=at)
    producer.flush()


def count(readings: DataStream, name: str) -> None:
    """Print how many readings each minute has, and how many are too late for that."""
    too_late = OutputTag("too late", COUNT)
    counts = (
        readings.map(lambda station: (1, station, 0), COUNT)
        .key_by(lambda one: one[1], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .side_output_late_data(too_late)
        .reduce(lambda a, b: (a[0] + b[0], a[1], 0))
    )
    counts.map(lambda one: f"{one[0]} readings of the {one[1]} in a minute", Types.STRING()).print(name)
    late = counts.get_side_output(too_late)
    late.map(lambda one: f"too late: a reading of the {one[1]}", Types.STRING()).print(name)


def main(broker: KafkaBroker) -> None:
    report(broker, "my-topic")
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1).set_max_rows_per_batch(4)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics("my-topic")
        .set_group_id("my-group")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    ascending = WatermarkStrategy.for_monotonous_timestamps()
    count(env.from_source(source, ascending, "my-topic"), "of each partition")

    shuffled = env.from_source(source, WatermarkStrategy.no_watermarks(), "the same").rebalance()
    count(shuffled.assign_timestamps_and_watermarks(ascending), "of all")
    env.execute("stations")


if __name__ == "__main__":
    with KafkaBroker() as started:
        main(started)
