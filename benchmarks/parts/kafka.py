"""Topics of Kafka, beside Spark's own source and windows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.checking import check_same, flat
from benchmarks.data import START_MS
from benchmarks.figures import Figure
from benchmarks.queries import DISORDER_S, PARALLELISM, TUMBLING, environment, started, submitted
from eventide.aggregates import count, sum_
from eventide.common import Duration, Types, WatermarkStrategy
from eventide.datastream.connectors.kafka import KafkaSource
from eventide.datastream.formats.json import JsonRowDeserializationSchema
from eventide.testing import KafkaBroker

_PARTITIONS = 2 * PARALLELISM
_VALUE = Types.ROW_NAMED(["user", "ts", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
_SCHEMA = "user STRING, ts LONG, value LONG"
_BYTES = 100


def tumbling_of_topics(bench: Bench) -> list[Figure]:
    """Topics of JSON, 100 bytes a value: tumbling windows of 5 s, sum and count."""
    figures = []
    with broker() as kafka:
        for keys in (1_000, 100_000):
            ours, theirs = _rates(bench, kafka, keys)
            figures.append(Figure(f"KafkaSource, {keys:,} keys", "rows/s", ours, theirs, least=3))
    return figures


@contextmanager
def broker() -> Iterator[KafkaBroker]:
    """A broker with room for what is measured."""
    with KafkaBroker(java_options=("-Xmx1g", "-XX:+UseSerialGC")) as kafka:
        yield kafka


def _rates(bench: Bench, kafka: KafkaBroker, keys: int) -> tuple[float, float]:
    rows, batches = bench.sizes.kafka_rows, bench.sizes.few_batches
    topic = f"events-{keys}"
    bench.say(f"filling the topic {topic}")
    kafka.create_topic(topic, _PARTITIONS)
    fill(kafka, topic, keys, batches, rows)

    def ours(place: Path) -> StreamingQuery:
        env = environment(bench.spark, place).set_available_now().set_max_rows_per_batch(rows)
        schema = JsonRowDeserializationSchema.builder().type_info(_VALUE).build()
        builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(topic)
        source = builder.set_value_only_deserializer(schema).build()
        bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(DISORDER_S))
        windows = env.from_source(source, bounded, topic).key_by("user").window(TUMBLING.ours)
        return submitted(env, windows.aggregate(sum_("value").alias("total"), count().alias("n")), place)

    def theirs(place: Path) -> StreamingQuery:
        source = bench.spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        source = source.option("subscribe", topic).option("startingOffsets", "earliest")
        values = source.option("maxOffsetsPerTrigger", rows).load()
        parsed = F.from_json(F.col("value").cast("string"), _SCHEMA).alias("v")
        events = values.select(parsed, F.col("timestamp").alias("ts")).select("v.user", "v.value", "ts")
        events = events.withWatermark("ts", f"{DISORDER_S} seconds")
        windows = events.groupBy("user", TUMBLING.theirs().alias("window"))
        return started(bench.spark, windows.agg(F.sum("value").alias("total"), F.count("*").alias("n")), place)

    runs = [bench.run(f"{topic}, {side}", start) for side, start in (("KafkaSource", ours), ("Spark", theirs))]
    same = check_same({str(i): flat(bench.spark.read.parquet(str(run.output))) for i, run in enumerate(runs)})
    bench.say(f"  both gave the same {same:,} rows")
    rates = [rows / run.steady(1, batches) for run in runs]
    bench.clear(*runs)
    return rates[0], rates[1]


def fill(kafka: KafkaBroker, topic: str, keys: int, batches: int, rows: int) -> None:
    """Write the rows of some micro-batches, each 50 seconds of event time, a little out of order."""
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "compression.type": "lz4"}
    settings |= {"queue.buffering.max.messages": 1_000_000, "bootstrap.servers": kafka.bootstrap_servers}
    producer, numbers = Producer(settings), random.Random(keys)
    for batch in range(batches):
        for row in range(rows):
            at = START_MS + 50_000 * batch + 50_000 * row // rows + numbers.randrange(1_000)
            user, value = numbers.randrange(keys), numbers.randrange(1_000)
            text = f'{{"user":"user-{user:07d}","ts":{at},"value":{value},"pad":"'
            text += "x" * (_BYTES - len(text) - 2) + '"}'
            while True:
                try:
                    producer.produce(topic, text, partition=row % _PARTITIONS, timestamp=at)
                    break
                except BufferError:
                    producer.poll(0.1)
            if row % 50_000 == 0:
                producer.poll(0)
    if producer.flush(300):
        raise RuntimeError(f"the topic {topic} could not be filled")
