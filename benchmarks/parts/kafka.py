"""Topics of Kafka, beside Spark's own source, windows and sink."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.checking import check_same, flat
from benchmarks.data import FILES_PER_BATCH, SCHEMA, START_MS, DataSet
from benchmarks.figures import Figure
from benchmarks.queries import DISORDER_S, PARALLELISM, TUMBLING, environment, query_of, started, submitted
from eventide.aggregates import count, sum_
from eventide.common import Duration, TypeInformation, Types, WatermarkStrategy
from eventide.datastream.connectors import DeliveryGuarantee, FileSource
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.spark.host import settings_for_start
from eventide.testing import KafkaBroker

_PARTITIONS = 2 * PARALLELISM
_VALUE = Types.ROW_NAMED(["user", "value"], [Types.STRING(), Types.LONG()])
_WRITTEN = Types.ROW_NAMED(
    ["user", "ts", "value", "extra"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.LONG(), Types.DOUBLE()]
)
_SCHEMA = "user STRING, value LONG"
_BYTES = 100


def tumbling_of_topics(bench: Bench) -> list[Figure]:
    """Topics of JSON, 100 bytes a value: tumbling windows of 5 s, sum and count."""
    figures = []
    with broker() as kafka:
        for keys in (1_000, 100_000):
            ours, theirs = _rates(bench, kafka, keys)
            figures.append(Figure(f"KafkaSource, {keys:,} keys", "rows/s", ours, theirs, least=3))
    return figures


def rows_into_topics(bench: Bench) -> list[Figure]:
    """Rows of Parquet into a topic as JSON: exactly once, beside Spark's sink, which writes at least once."""
    data = DataSet(1_000, bench.sizes.few_batches, bench.sizes.kafka_rows)
    files = bench.files(data)
    with broker() as kafka:
        for topic in ("ours", "theirs"):
            kafka.create_topic(topic, _PARTITIONS)

        def ours(place: Path) -> StreamingQuery:
            env = environment(bench.spark, place)
            source = FileSource.parquet(str(files), type_info=_WRITTEN).set_max_files_per_batch(FILES_PER_BATCH).build()
            rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "files")
            rows.sink_to(json_into(kafka, "ours", _WRITTEN, DeliveryGuarantee.EXACTLY_ONCE))
            return query_of(env)

        def theirs(place: Path) -> StreamingQuery:
            rows = bench.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH)
            values = rows.parquet(str(files)).select(F.to_json(F.struct("user", "ts", "value", "extra")).alias("value"))
            return into_topic(bench, kafka, "theirs", values, place, trigger={"availableNow": True})

        runs = [bench.run(f"{data.name}, {side}", start) for side, start in (("KafkaSink", ours), ("Spark", theirs))]
        for topic in ("ours", "theirs"):
            found = _records(bench, kafka, topic)
            if found != data.batches * data.rows_per_batch:
                raise ValueError(f"{found} records in {topic}, for {data.batches * data.rows_per_batch} rows")
        exactly_once, at_least_once = (bench.throughput(run, data) for run in runs)
        bench.clear(*runs)
    return [Figure("KafkaSink, exactly once", "rows/s", exactly_once, at_least_once, "Spark, at least once", least=1)]


def json_into(kafka: KafkaBroker, topic: str, kind: TypeInformation, guarantee: DeliveryGuarantee) -> KafkaSink:
    """A sink that writes rows as JSON."""
    schema = JsonRowSerializationSchema.builder().with_type_info(kind).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(schema).build()
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(records)
    return sink.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic).build()


def into_topic(
    bench: Bench, kafka: KafkaBroker, topic: str, values: DataFrame, place: Path, trigger: dict[str, Any]
) -> StreamingQuery:
    """Start a query of Spark's that writes to a topic."""
    writer = values.writeStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    writer = writer.option("topic", topic).option("checkpointLocation", str(place / "checkpoint"))
    with settings_for_start(bench.spark, PARALLELISM):
        return (writer.trigger(**trigger) if trigger else writer).start()


def _records(bench: Bench, kafka: KafkaBroker, topic: str) -> int:
    """How many records Spark finds in a topic."""
    rows = bench.spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return rows.option("subscribe", topic).load().count()


@contextmanager
def broker() -> Iterator[KafkaBroker]:
    """A broker with room for what is measured."""
    with KafkaBroker(java_options=("-Xmx1g", "-XX:+UseSerialGC")) as kafka:
        yield kafka


def _rates(bench: Bench, kafka: KafkaBroker, keys: int) -> tuple[float, float]:
    rows, batches = bench.sizes.rows_per_batch, bench.sizes.few_batches
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
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "compression.type": "lz4", "enable.idempotence": True}
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
