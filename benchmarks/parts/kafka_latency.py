"""How long after an element is produced its window's result is in the output topic."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, Producer
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.parts.kafka import broker, into_topic, json_into
from benchmarks.queries import environment, query_of
from eventide.aggregates import count
from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream.connectors import DeliveryGuarantee
from eventide.datastream.connectors.kafka import KafkaSource
from eventide.datastream.formats.json import JsonRowDeserializationSchema
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import KafkaBroker

_RATE = 10_000
_WINDOW_MS = 1_000
_USERS = 100
_PARTITIONS = 4
_VALUE = Types.ROW_NAMED(["user"], [Types.STRING()])
_PATIENCE_S = 60


def latency_of_topics(bench: Bench) -> list[Figure]:
    """From producing an element to its window's result on the output topic; 10,000 rows a second, windows of 1 s."""
    figures = []
    with broker() as kafka:
        ours = _measured(bench, kafka, "ours", _ours)
        theirs = _measured(bench, kafka, "theirs", _theirs)
    for what, at in (("median", 50), ("99th percentile", 99)):
        mine, other = (float(np.percentile(times, at)) for times in (ours, theirs))
        figures.append(Figure(f"{what}, exactly once", "ms", mine, other, "Spark, at least once"))
    return figures


def _ours(bench: Bench, kafka: KafkaBroker, topic: str, results: str, place: Path) -> StreamingQuery:
    env = environment(bench.spark, place)
    schema = JsonRowDeserializationSchema.builder().type_info(_VALUE).build()
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(topic)
    source = builder.set_value_only_deserializer(schema).build()
    events = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), topic)
    windows = events.key_by("user").window(TumblingEventTimeWindows.of(Time.milliseconds(_WINDOW_MS)))
    counts = windows.aggregate(count().alias("n"))
    counts.sink_to(json_into(kafka, results, counts.get_type(), DeliveryGuarantee.EXACTLY_ONCE))
    return query_of(env)


def _theirs(bench: Bench, kafka: KafkaBroker, topic: str, results: str, place: Path) -> StreamingQuery:
    source = bench.spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    values = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    parsed = F.from_json(F.col("value").cast("string"), "user STRING").alias("v")
    events = (
        values.select(parsed, F.col("timestamp").alias("ts")).select("v.user", "ts").withWatermark("ts", "0 seconds")
    )
    window = F.window("ts", f"{_WINDOW_MS} milliseconds").alias("window")
    counts = events.groupBy("user", window).agg(F.count("*").alias("n"))
    end = (F.unix_millis("window.end")).alias("end")
    value = F.to_json(F.struct("user", F.struct(end).alias("window"), "n")).alias("value")
    return into_topic(bench, kafka, results, counts.select(value), place, trigger={})


def _measured(
    bench: Bench,
    kafka: KafkaBroker,
    side: str,
    start: Callable[[Bench, KafkaBroker, str, str, Path], StreamingQuery],
) -> np.ndarray:
    """Milliseconds, one for each element in windows whose result has come, without those of the first seconds."""
    events, results = f"{side}-events", f"{side}-results"
    for topic, partitions in ((events, _PARTITIONS), (results, 1)):
        kafka.create_topic(topic, partitions)
    query = start(bench, kafka, events, results, bench.place / f"latency-{side}")
    seconds = bench.sizes.latency_s
    arrived: dict[tuple[str, int], float] = {}
    enough = threading.Event()
    listening = threading.Thread(target=_listen, args=(kafka, results, arrived, enough))
    listening.start()
    try:
        sent = _produce(kafka, events, seconds, query)
        last = sent[-1][1] // _WINDOW_MS * _WINDOW_MS  # nothing comes after the last window, so it stays open
        deadline = time.monotonic() + _PATIENCE_S
        while not any(end == last for _, end in arrived) and time.monotonic() < deadline and query.isActive:
            time.sleep(0.1)
    finally:
        enough.set()
        listening.join()
        query.stop()
    begin = sent[0][1] + 1_000 * seconds // 3  # the first micro-batches are those of processes that start
    times = [
        arrived[user, end] - at
        for user, at in sent
        if at >= begin and (user, end := at // _WINDOW_MS * _WINDOW_MS + _WINDOW_MS) in arrived
    ]
    if not times:
        raise RuntimeError(f"no results of {side}: {query.exception()}")
    bench.say(f"{side}: {len(times):,} elements, median {np.median(times):.0f} ms")
    return np.array(times)


def _produce(kafka: KafkaBroker, topic: str, seconds: int, query: StreamingQuery) -> list[tuple[str, int]]:
    """Send elements at an even pace, each with the time at which it is sent; return their users and times."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5, "enable.idempotence": True})
    sent: list[tuple[str, int]] = []
    began = time.time()
    while (passed := time.time() - began) < seconds and query.isActive:
        for number in range(len(sent), int(passed * _RATE)):
            user, at = f"user-{number % _USERS:03d}", int(time.time() * 1_000)
            value = f'{{"user":"{user}","pad":"{"x" * 70}"}}'
            producer.produce(topic, value, partition=number % _PARTITIONS, timestamp=at)
            sent.append((user, at))
        producer.poll(0)
        time.sleep(0.002)
    producer.flush(30)
    return sent


def _listen(kafka: KafkaBroker, topic: str, arrived: dict[tuple[str, int], float], enough: threading.Event) -> None:
    """Write down when results come, as a reader of what is committed sees them."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "listener", "fetch.wait.max.ms": 10}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while not enough.is_set():
        for message in consumer.consume(1_000, 0.01):
            if message.error() is None:
                result = json.loads(message.value())
                arrived.setdefault((result["user"], result["window"]["end"]), time.time() * 1_000)
    consumer.close()
