"""The count from Kafka to Kafka: a partition for each airport, and exactly once on the way out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from confluent_kafka import Consumer, Producer
from flights import AIRPORTS, BOUND, Counts, hour_of

from eventide.aggregates import count
from eventide.common import Duration, Row, Types, WatermarkStrategy
from eventide.common.job import BatchProgress
from eventide.datastream import DataStream, MapFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from eventide.datastream.connectors import DeliveryGuarantee
from eventide.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import KafkaBroker

FLIGHTS = "flights"
FLIGHT = Types.ROW_NAMED(["origin", "flight", "destination"], [Types.STRING()] * 3)
COUNTED = Types.ROW_NAMED(["origin", "hour", "flights"], [Types.STRING(), Types.LONG(), Types.LONG()])

DRIFT = pd.Timedelta(hours=1)
"""How far a partition may be ahead of the lowest, where they are aligned."""

ROWS = 150
"""How many rows a micro-batch reads, of all partitions."""


class AsCounted(MapFunction):
    """Names the hour of a count by its start, and adds up how many flights are in results so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._flights = runtime_context.get_metrics_group().counter("flights")

    def map(self, value: Row) -> Row:
        self._flights.inc(value.n)
        return Row(value.origin, value.window.start, value.n)


@dataclass(frozen=True)
class KafkaResult:
    """Final content of the topics, for a reader of what is committed, and how the job got there.

    ``way`` has a row for each micro-batch: the watermark of each airport's partition, None where there is none yet or
    no more, how many rows have been ``read``, and how many of them are in state, ``waiting`` for their hour to be over.
    """

    counts: Counts
    late: Counts
    rows_in: int
    metric: int
    way: pd.DataFrame

    @property
    def apart(self) -> pd.Series:
        """How far the partitions are apart after each micro-batch, as long as all have something to read."""
        reached = self.way[list(AIRPORTS)].dropna()
        return reached.max(axis="columns") - reached.min(axis="columns")


def fill(broker: KafkaBroker, rows: pd.DataFrame) -> None:
    """Write the reports into a topic, in the order of their arrival, with the take-off as the record's timestamp."""
    broker.create_topic(FLIGHTS, partitions=len(AIRPORTS))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "max.in.flight": 1})
    partitions = {airport: number for number, airport in enumerate(AIRPORTS)}
    for row in rows.itertuples():
        producer.produce(
            FLIGHTS,
            json.dumps({"origin": row.origin, "flight": row.flight, "destination": row.destination}),
            partition=partitions[row.origin],
            timestamp=row.took_off.value // 1_000_000,
        )
    producer.flush()


def count_through_kafka(
    broker: KafkaBroker, env: StreamExecutionEnvironment, read_before: Counter[str], name: str, *, aligned: bool
) -> KafkaResult:
    """Count the departures of each airport and hour, from where an earlier job has stopped reading."""
    offsets = {KafkaTopicPartition(FLIGHTS, p): read_before[airport] for p, airport in enumerate(AIRPORTS)}
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_topics(FLIGHTS)
        .set_starting_offsets(KafkaOffsetsInitializer.offsets(offsets))
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(FLIGHT).build())
        .build()
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(_duration(BOUND))
    if aligned:
        strategy = strategy.with_watermark_alignment("airports", _duration(DRIFT))
    too_late = OutputTag("too late", FLIGHT)
    windows = (
        env.from_source(source, strategy, FLIGHTS)
        .key_by("origin")
        .window(TumblingEventTimeWindows.of(Duration.of_hours(1)))
        .side_output_late_data(too_late)
        .aggregate(count().alias("n"))
        .name("departures")
    )
    _write(windows.map(AsCounted(), COUNTED).name("counted"), broker, f"departures-{name}")
    _write(windows.get_side_output(too_late), broker, f"too-late-{name}")
    client = env.execute_async(name)
    metrics = client.get_job_execution_result().result().metrics["departures"]
    late = [(value["origin"], at) for value, at in _read(broker, f"too-late-{name}")]
    return KafkaResult(
        counts=Counter(
            {(v["origin"], hour_of(v["hour"])): v["flights"] for v, _ in _read(broker, f"departures-{name}")}
        ),
        late=Counter((origin, hour_of(at).floor("h")) for origin, at in late),
        rows_in=metrics["numRecordsIn"],
        metric=metrics.get("numLateRecordsToSideOutput", 0),
        way=_way(client.get_progress()),
    )


def settings(env: StreamExecutionEnvironment, checkpoint: Path) -> StreamExecutionEnvironment:
    """The environment of one job."""
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(checkpoint))
    return env.set_max_rows_per_batch(ROWS)


def _duration(length: pd.Timedelta) -> Duration:
    return Duration.of_seconds(int(length.total_seconds()))


def _write(stream: DataStream, broker: KafkaBroker, topic: str) -> None:
    """Each row as JSON, in one transaction for each micro-batch."""
    broker.create_topic(topic)
    value = JsonRowSerializationSchema.builder().with_type_info(stream.get_type()).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(value).build()
    stream.sink_to(
        KafkaSink.builder()
        .set_bootstrap_servers(broker.bootstrap_servers)
        .set_record_serializer(records)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(topic)
        .build()
    )


def _read(broker: KafkaBroker, topic: str) -> Iterator[tuple[dict[str, object], int]]:
    """The values and timestamps that are committed in a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,  # says when all has been read
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    while (message := consumer.poll(30)) is not None and message.error() is None:
        yield json.loads(message.value()), message.timestamp()[1]
    consumer.close()


def _way(progress: list[BatchProgress]) -> pd.DataFrame:
    """All micro-batches. A partition of which one reads nothing stands where it stood before, unless it has ended."""
    way = pd.DataFrame([_step(one) for one in progress])
    return way.assign(**{airport: way[airport].ffill(limit_area="inside") for airport in AIRPORTS})


def _step(progress: BatchProgress) -> dict[str, object]:
    """One micro-batch: how far the partitions are, and what is in state after it."""
    counters = progress.counters["departures"]
    read, late = counters["numRecordsIn"], counters.get("numLateRecordsToSideOutput", 0)
    results = progress.counters.get("counted", {}).get("flights", 0)
    reached = {airport: _moment(progress.splits.get(f"{FLIGHTS}-{p}")) for p, airport in enumerate(AIRPORTS)}
    return {**reached, "read": read, "waiting": read - late - results}


def _moment(milliseconds: int | None) -> pd.Timestamp | None:
    """A watermark as a moment; None where it is before 1970, or the end of all time."""
    known = milliseconds is not None and 0 < milliseconds < pd.Timestamp.max.value // 1_000_000
    return pd.Timestamp(milliseconds, unit="ms", tz="UTC") if known else None
