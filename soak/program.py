"""The job: three sources whose splits come and go, keys that never come again, state of every kind, four sinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventide.aggregates import count, max_, sum_
from eventide.common import Duration, Row, Time, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.common.serialization import SerializationSchema
from eventide.datastream import (
    DataStream,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors import DeliveryGuarantee, FileSource, FormatSink, Sink
from eventide.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from eventide.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from eventide.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.joins import left, right

READINGS = "readings"
"""The beginning of the names of the topics."""
RESULTS = "results"
"""The topic of the results."""
PARALLELISM = 2
SPLITS_AT_MOST = 40
"""More splits than are there at any time, of all sources together."""

READING = Types.ROW_NAMED(["key", "value", "ts"], [Types.STRING(), Types.LONG(), Types.LONG()])
_LATE = OutputTag("late", READING)
_NOTE = Types.ROW_NAMED(["key", "at", "seen"], [Types.STRING(), Types.LONG(), Types.LONG()])
_COUNT = Types.ROW_NAMED(["key", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
_VISIT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
_FORGOTTEN = Time.seconds(30)


class Trailing(WatermarkGenerator):
    """Trails the highest time of its split, as a user-defined generator does."""

    def __init__(self, bound_ms: int) -> None:
        self.highest = 0
        self._bound_ms = bound_ms

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        if self.highest:
            output.emit_watermark(Watermark(self.highest - self._bound_ms))


class Notes(KeyedProcessFunction):
    """A line for each key some time after its last; its state is cleared then, but for what has a time to live."""

    def __init__(self, soon_ms: int) -> None:
        self._soon_ms = soon_ms

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))
        self.values = runtime_context.get_map_state(MapStateDescriptor("values", Types.LONG(), Types.LONG()))
        passing = ValueStateDescriptor("passing", Types.LONG())
        passing.enable_time_to_live(StateTtlConfig.new_builder(_FORGOTTEN).build())
        self.passing = runtime_context.get_state(passing)

    def process_element(self, value: Any, ctx: Any) -> None:
        self.seen.update((self.seen.value() or 0) + 1)
        self.values.put(value["value"] % 5, value["value"])
        self.passing.update(value["value"])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() // 1_000 * 1_000 + self._soon_ms)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        seen = self.seen.value()
        if seen is not None:
            self.seen.clear()
            self.values.clear()
            yield Row(key=ctx.get_current_key(), at=timestamp, seen=seen)


class Visit(ProcessWindowFunction):
    """A line for each session."""

    def process(self, key: str, context: Any, elements: Any) -> Iterator[tuple[str, int, int]]:
        yield key, context.window().start, sum(1 for _ in elements)


class KeyOf(SerializationSchema):
    """The key of a record."""

    def serialize(self, element: Any) -> bytes:
        return str(element["key"]).encode()


@dataclass(frozen=True)
class Pace:
    """Lengths of event time, of which `speed` seconds go by in a second of the clock."""

    speed: int

    def ms(self, seconds: int) -> int:
        """Seconds of the clock as milliseconds of event time."""
        return seconds * 1_000 * self.speed

    def time(self, seconds: int) -> Time:
        """Seconds of the clock as event time, for windows and joins."""
        return Time.milliseconds(self.ms(seconds))

    def duration(self, seconds: int) -> Duration:
        """Seconds of the clock as event time, for strategies and lateness."""
        return Duration.of_millis(self.ms(seconds))


def build(
    env: StreamExecutionEnvironment, servers: str, files: Path, folders: Path, output: Path, speed: int = 1
) -> None:
    """Put the job together.

    Args:
        env: the environment.
        servers: of Kafka.
        files: the folder in which each file is a split.
        folders: the folder in which each folder is a split.
        output: the folder of the sinks.
        speed: how many seconds of event time go by in a second of the clock. What the job does in a second of the
            clock is the same for all.
    """
    pace = Pace(speed)
    generated = WatermarkStrategy.for_generator(lambda: Trailing(pace.ms(3))).with_timestamp_assigner("ts")
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(pace.duration(3)).with_timestamp_assigner("ts")
    quiet = Duration.of_seconds(10)
    each_second = Duration.of_seconds(1)
    readings = env.from_source(topics(servers), generated.with_idleness(quiet), "readings")
    in_files = FileSource.parquet(str(files), type_info=READING).monitor_continuously(each_second).build()
    events = env.from_source(in_files, bounded, "files")
    by_folder = FileSource.parquet(str(folders), type_info=READING).monitor_continuously(each_second)
    in_folders = by_folder.set_split_by(lambda path: path.split("/")[-2]).build()
    visits = env.from_source(in_folders, bounded.with_idleness(quiet), "folders")

    results, late = columns(readings, events, pace)
    results.sink_to(_into(f"{output}/columns"))
    late.sink_to(_into(f"{output}/late"))
    elements(readings, visits, pace).sink_to(_into(f"{output}/elements"))
    notes = events.key_by(lambda e: e["key"], Types.STRING()).process(Notes(pace.ms(15)), _NOTE).name("notes")
    notes.sink_to(_topic(servers))


def topics(servers: str) -> KafkaSource:
    """Topics that come and go."""
    schema = JsonRowDeserializationSchema.builder().type_info(READING).build()
    source = KafkaSource.builder().set_bootstrap_servers(servers).set_topic_pattern(f"{READINGS}-.*")
    source.set_property("partition.discovery.interval.ms", "1000").set_fail_on_data_loss(False)
    return source.set_value_only_deserializer(schema).build()


def columns(readings: DataStream, events: DataStream, pace: Pace) -> tuple[DataStream, DataStream]:
    """Windows of three kinds and a join, on columns; and what is late."""
    by_key = readings.key_by("key")
    kinds = {
        "tumbling": TumblingEventTimeWindows.of(pace.time(5)),
        "sliding": SlidingEventTimeWindows.of(pace.time(20), pace.time(5)),
        "sessions": EventTimeSessionWindows.with_gap(pace.time(5)),
    }
    windowed = [
        by_key.window(windows)
        .allowed_lateness(pace.duration(5))
        .side_output_late_data(_LATE)
        .aggregate(count().alias("count"), sum_("value"), max_("ts"))
        .name(name)
        for name, windows in kinds.items()
    ]
    pairs = (
        by_key.interval_join(events.key_by("key"))
        .between(pace.time(-2), pace.time(2))
        .select(left("key"), left("ts"), right("value").alias("other"))
        .name("pairs")
    )
    late = windowed[0].get_side_output(_LATE)
    tumbling, *others = windowed
    counts = tumbling.union(*others).map(lambda row: Row(key=row["key"], at=row["window"].end, n=row["count"]), _COUNT)
    return counts.union(pairs.map(lambda row: Row(key=row["key"], at=row["ts"], n=row["other"]), _COUNT)), late


def elements(readings: DataStream, visits: DataStream, pace: Pace) -> DataStream:
    """Sessions with a function, and windows after them."""
    sessions = (
        readings.union(visits)
        .key_by(lambda e: e["key"], Types.STRING())
        .window(EventTimeSessionWindows.with_gap(pace.time(5)))
        .process(Visit(), _VISIT)
        .name("visits")
    )
    return (
        sessions.key_by(lambda s: s[0][-1], Types.STRING())
        .window(TumblingEventTimeWindows.of(pace.time(10)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), a[2] + b[2]))
        .name("by last digit")
    )


def _into(path: str) -> Sink:
    return FormatSink("json", {"path": path})


def _topic(servers: str) -> KafkaSink:
    values = JsonRowSerializationSchema.builder().with_type_info(_NOTE).build()
    records = KafkaRecordSerializationSchema.builder().set_topic(RESULTS).set_key_serialization_schema(KeyOf())
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(records.set_value_serialization_schema(values).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("soak")
        .build()
    )
