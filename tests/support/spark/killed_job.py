"""Jobs for the kill test, each of several pipelines side by side in one query.

python killed_job.py bounded|function CHECKPOINT OUTPUT INPUT [PARALLELISM SAVEPOINT]

It starts Spark, and the job when a line comes on its standard input, so that one life of a job can start Spark while
the one before it still works.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.aggregates import collect_list, count, last, max_, mean, sum_
from eventide.common import (
    Duration,
    JobExecutionResult,
    RestartStrategies,
    Row,
    Time,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from eventide.datastream import (
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors import FileSource, FormatSink, Source
from eventide.datastream.functions import ProcessJoinFunction
from eventide.datastream.state import MapStateDescriptor
from eventide.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.joins import left, right

EVENT = Types.ROW_NAMED(["key", "ts", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
SESSION = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])
NAMED = Types.ROW_NAMED(["pipeline", "key", "start", "n"], [Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", EVENT)
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
ROWS = 1_300
FILES = 13
CLOCKED = 900
TACITURN = 60


def event(n: int) -> Row:
    """The n-th event: out of order, now and then very late, in a way that depends on nothing but its number."""
    mixed = n * 2_654_435_761 % 2**32
    ts = n * 10 + mixed % 900 - (5_000 if mixed % 53 == 0 else 0)
    return Row(key=f"k{mixed % 7}", ts=ts, n=n)


class Disorder(Source):
    """Two splits of events."""

    def splits(self) -> list[str]:
        return ["even", "odd"]

    def latest_position(self, split: str) -> int:
        return ROWS

    def read(self, split: str, start: int, end: int) -> Iterator[Row]:
        yield from map(event, range(start, end))

    def get_produced_type(self):
        return EVENT


class Silence(Disorder):
    """Two splits, of which one says a little, is silent for most of the time, and says the rest before the other ends.

    The numbers of what it says are below zero.
    """

    def splits(self):
        return ["chatty", "taciturn"]

    def latest_position(self, split):
        return ROWS if split == "chatty" else TACITURN

    def next_positions(self, positions, max_rows):
        planned = super().next_positions(positions, max_rows)
        if positions.get("chatty", ROWS) < ROWS - 400:
            planned["taciturn"] = min(planned["taciturn"], TACITURN // 3)
        return planned

    def read(self, split, start, end):
        for row in super().read(split, start, end):
            yield row if split == "chatty" else Row(key=row["key"], ts=row["ts"], n=-1 - row["n"])


class Numbers(SourceFunction):
    """Events with watermarks of their own, slowly, from where it was; what it has seen so far is in each of them."""

    def __init__(self):
        self.next, self.checksum = 0, 0

    def run(self, ctx):
        while self.next < ROWS:
            with ctx.get_checkpoint_lock():
                row = event(self.next)
                self.next += 1
                self.checksum = (31 * self.checksum + row["ts"]) % 1_000_003
                ctx.collect_with_timestamp(Row(key=row["key"], ts=self.checksum, n=row["n"]), row["ts"])
                if self.next % 10 == 0:
                    ctx.emit_watermark(Watermark(10 * self.next - self.checksum % 500))
            if self.next % 20 == 0:
                time.sleep(0.04)

    def cancel(self):
        self.next = ROWS

    def snapshot_state(self):
        return self.next, self.checksum

    def restore_state(self, state):
        self.next, self.checksum = state


class Wavering(WatermarkGenerator):
    """Trails the highest time of its split by a bound that depends on all elements so far: to forget one would show."""

    def __init__(self):
        self.highest, self.checksum = 0, 0

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)
        self.checksum = (31 * self.checksum + event["n"]) % 1_009
        if self.checksum % 10 == 0:
            self.on_periodic_emit(output)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 400 - self.checksum % 200))


class Session(ProcessWindowFunction):
    """One line a session, with its bounds and a checksum of what is in it."""

    def process(self, key, context, elements):
        window = context.window()
        yield key, window.start, window.end, sum(e["n"] * (i + 1) for i, e in enumerate(elements)) % 1_000_003


class Checksum(ProcessWindowFunction):
    """One line a window, with a checksum of what is in it."""

    def process(self, key, context, elements):
        checksum = sum((e["ts"] + e["n"]) * (i + 1) for i, e in enumerate(elements)) % 1_000_003
        yield Row(pipeline="function", key=key, start=context.window().start, n=checksum)


class Each(ProcessWindowFunction):
    """One line for each element of a window."""

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline

    def process(self, key, context, elements):
        for element in elements:
            yield Row(pipeline=self.pipeline, key=key, start=context.window().start, n=element["n"])


class Quiet(KeyedProcessFunction):
    """One line a timer, with a checksum of what a map has seen of its key so far."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        self.seen[value["n"] % 5] = (self.seen[value["n"] % 5] or 0) + value["n"]
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 300)

    def on_timer(self, timestamp, ctx):
        checksum = sum((place + 1) * total for place, total in self.seen.items()) % 1_000_003
        yield Row(pipeline="process", key=ctx.get_current_key(), start=timestamp, n=checksum)


class Ruled(KeyedBroadcastProcessFunction):
    """One line an element, with the rule of its key, which is the last number that was broadcast for it."""

    def process_element(self, value, ctx):
        rule = ctx.get_broadcast_state(RULES).get(value["key"]) or 0
        yield Row(pipeline="ruled", key=value["key"], start=value["ts"], n=2_000 * rule + value["n"])

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)[value["key"]] = value["n"]


class Pair(ProcessJoinFunction):
    """One line a pair."""

    def process_element(self, left, right, ctx):
        yield Row(pipeline="joined", key=left["key"], start=ctx.get_timestamp(), n=2_000 * left["n"] + right["n"])


def write_input(folder: Path) -> None:
    """Files of two devices, each a second younger than the one before, so that their order is the same in any store."""
    for written, device in enumerate(("left", "right")):
        (folder / device).mkdir(parents=True)
        for part in range(FILES):
            numbers = range(part * ROWS // FILES, (part + 1) * ROWS // FILES)
            columns = {name: [event(n)[name] for n in numbers] for name in ("n", "ts", "key")}
            unused = {"unused": ["x"] * len(numbers)}
            file = folder / device / f"{part:02}.parquet"
            pq.write_table(pa.table({**columns, **unused}), file, row_group_size=50)
            second = 1_700_000_000 + written * FILES + part
            os.utime(file, (second, second))


def elements(events: DataStream) -> tuple[DataStream, DataStream, DataStream]:
    """Elements as Python objects: sessions, totals of sessions, what is late."""
    sessions = (
        events.key_by(lambda e: e["key"], Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(60)))
        .allowed_lateness(Duration.of_millis(1_000))
        .side_output_late_data(LATE)
        .process(Session(), SESSION)
    )
    totals = (
        sessions.key_by(lambda s: s[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .reduce(lambda a, b: (a[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3]))
    )
    return sessions, totals, sessions.get_side_output(LATE)


def processes(events: DataStream) -> DataStream:
    """Functions with state and timers, beside a broadcast stream, and of pairs."""
    keyed = events.key_by(lambda e: e["key"], Types.STRING())
    rules = events.filter(lambda e: e["n"] % 40 == 0).broadcast(RULES)
    left, right = (
        events.filter(lambda e, rest=rest: e["n"] % 3 == rest).key_by(lambda e: e["key"], Types.STRING())
        for rest in (0, 1)
    )
    pairs = left.interval_join(right).between(Time.milliseconds(-200), Time.milliseconds(100))
    return keyed.process(Quiet(), NAMED).union(
        keyed.connect(rules).process(Ruled(), NAMED), pairs.process(Pair(), NAMED)
    )


def guarded(files: DataStream) -> DataStream:
    """Lambdas on columns, of which the first runs in Python for every third file, beyond 64 bits."""
    mapped = files.map(lambda e: Row(key=e.key, ts=e.ts, n=e.n + e.n // 100 % 3 * 2**62 % 1_009), EVENT)
    rolled = mapped.name("guarded").key_by(lambda e: e.key).reduce(lambda a, b: b)
    kept = rolled.filter(lambda e: e.n % 11 != 3).name("kept")
    windows = kept.key_by(lambda e: e.key).window(TumblingEventTimeWindows.of(Time.milliseconds(700)))
    return windows.reduce(lambda a, b: Row(key=b.key, ts=max(a.ts, b.ts), n=a.n + b.n))


def columns(env: StreamExecutionEnvironment, folder: str) -> tuple[DataStream, DataStream, DataStream]:
    """Columns of files in windows of three kinds, what is late for them, and windows after functions on columns."""
    files = FileSource.parquet(folder, type_info=EVENT).set_split_by(lambda path: path.split("/")[-2])
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner("ts")
    rows = env.from_source(files.set_max_files_per_batch(2).build(), bounded, "files")
    keyed = rows.key_by("key")
    windowed = [
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(700))).side_output_late_data(LATE),
        keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(60))).side_output_late_data(LATE),
        keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(900), Time.milliseconds(300))),
    ]
    tumbling, sessions, sliding = (
        windows.allowed_lateness(Duration.of_millis(1_000)).aggregate(
            count(), sum_("n"), max_("ts"), mean("n"), last("n"), collect_list("n").alias("all")
        )
        for windows in windowed
    )
    late = tumbling.get_side_output(LATE).union(sessions.get_side_output(LATE))
    return tumbling.union(sessions, sliding), late, guarded(rows)


def pairs(env: StreamExecutionEnvironment, folder: str) -> DataStream:
    """Joins on columns, by an interval and in windows, of the files of each device, in splits that end one by one."""
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner("ts")
    one, other = (
        env.from_source(
            FileSource.parquet(f"{folder}/{device}", type_info=EVENT).set_max_files_per_batch(1).build(),
            bounded,
            device,
        )
        for device in ("left", "right")
    )
    fields = left("key"), left("ts"), left("n"), right("n").alias("other")
    bounds = Time.milliseconds(-200), Time.milliseconds(100)
    near = one.key_by("key").interval_join(other.key_by("key")).between(*bounds).select(*fields)
    windows = TumblingEventTimeWindows.of(Time.milliseconds(300))
    return near.union(one.join(other).where("key").equal_to("key").window(windows).select(*fields, how="full"))


def bounded(env: StreamExecutionEnvironment, output: str, folder: str) -> None:
    """Elements, columns and process functions from their beginning to their end, with several sinks."""
    strategy = WatermarkStrategy.for_generator(Wavering).with_timestamp_assigner("ts")
    events = env.from_source(Disorder(), strategy, "events")
    sessions, totals, late_elements = elements(events)
    windows, late_rows, reduced = columns(env, folder)
    sinks = {
        "sessions": sessions,
        "totals": totals,
        "columns": windows,
        "late": late_elements.union(late_rows),
        "guarded": reduced,
        "processes": processes(events),
        "pairs": pairs(env, folder),
    }
    for name, stream in sinks.items():
        written = "parquet" if name in ("totals", "columns") else "json"  # by tasks, and by Spark
        stream.sink_to(FormatSink(written, {"path": f"{output}/{name}"}))


def function(env: StreamExecutionEnvironment, output: str, folder: str) -> None:
    """A function in windows of event time and of the clock, and a split that is idle by the clock, with one sink.

    The elements that are in windows of the clock come well before the end, so that all of these windows fire.
    """
    numbers = env.add_source(Numbers(), "numbers", EVENT)
    checksums = (
        numbers.key_by(lambda e: e["key"], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(700)))
        .process(Checksum(), NAMED)
    )
    by_clock = (
        numbers.filter(lambda e: e["n"] < CLOCKED)
        .key_by(lambda e: e["key"], Types.STRING())
        .window(TumblingProcessingTimeWindows.of(Time.milliseconds(300)))
        .process(Each("clock"), NAMED)
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    in_time = (
        env.from_source(Silence(), strategy.with_idleness(Duration.of_millis(100)), "silence")
        .key_by(lambda e: e["key"], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(700)))
        .side_output_late_data(LATE)
        .process(Each("in time"), NAMED)
    )
    late = in_time.get_side_output(LATE).map(lambda e: Row(pipeline="late", key=e["key"], start=0, n=e["n"]), NAMED)
    everything = checksums.union(by_clock, in_time, late)
    everything.sink_to(FormatSink("parquet", {"path": f"{output}/everything"}))


RESTARTS = "RESTARTS_OF_A_KILLED_JOB"
"""The variable that says how often a job, also that of killed_states.py, starts again by itself."""

JOBS = {"bounded": (bounded, 200), "function": (function, 100)}
"""The jobs, each with its limit of rows per micro-batch: both have some 14 micro-batches."""


def main(
    job: str, checkpoint: str, output: str, folder: str, parallelism: str = "2", savepoint: str | None = None
) -> JobExecutionResult:
    """Build and run a job, from where its checkpoint stands, or from a savepoint."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(int(parallelism))
    if savepoint is not None:
        env.from_savepoint(savepoint)
    build, max_rows = JOBS[job]
    env.set_max_rows_per_batch(max_rows).get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    build(env, output, folder)
    if restarts := int(os.environ.get(RESTARTS, "0")):
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restarts, 0))
    return env.execute(f"killed job: {job}")


if __name__ == "__main__":
    StreamExecutionEnvironment.get_execution_environment()
    if sys.stdin.readline():
        main(*sys.argv[1:])
