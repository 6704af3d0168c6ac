"""A job for the kill test: state of every kind, windows of elements, rows of a DataFrame beside files, letters.

python killed_states.py states CHECKPOINT OUTPUT INPUT

It starts Spark, and the job when a line comes on its standard input, as those of killed_job.py do.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from eventide.common import Duration, RestartStrategies, Row, Time, Types, WatermarkStrategy
from eventide.datastream import (
    AggregateFunction,
    DataStream,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.functions import CoGroupFunction
from eventide.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)

EVENT = Types.ROW_NAMED(["key", "ts", "n"], [Types.STRING(), Types.LONG(), Types.LONG()])
LINE = Types.ROW_NAMED(["pipeline", "key", "at", "n"], [Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG()])
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
BAD = OutputTag("bad")
PIPELINES = {"states", "both", "evicted", "reduced", "counted", "folded", "grouped"}
MODULUS = 1_000_003


def mixed(*numbers: int) -> int:
    """A checksum in which the order counts."""
    found = 0
    for number in numbers:
        found = (31 * found + number) % MODULUS
    return found


def wanted(event: Row) -> Row:
    """An event, if it is none of the bad ones."""
    if event["n"] % 29 == 3:
        raise ValueError("not wanted")
    return event


class Mean(AggregateFunction):
    """How many there were, and their sum."""

    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + 1, accumulator[1] + value

    def get_result(self, accumulator):
        return accumulator[1] // accumulator[0] if accumulator[0] else 0

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Remembers(KeyedProcessFunction):
    """One line a timer, with a checksum of all that state of every kind has of its key; some of it is cleared then.

    It finds that an element is bad when it has changed all its state.
    """

    def open(self, runtime_context):
        long = Types.LONG()
        lasting = ValueStateDescriptor("lasting", long)
        lasting.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
        self.count = runtime_context.get_state(ValueStateDescriptor("count", long))
        self.lasting = runtime_context.get_state(lasting)
        self.recent = runtime_context.get_list_state(ListStateDescriptor("recent", long))
        self.by_rest = runtime_context.get_map_state(MapStateDescriptor("by rest", long, long))
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: (a + b) % MODULUS, long)
        )
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), PAIR))

    def process_element(self, value, ctx):
        n = value["n"]
        self.count.update((self.count.value() or 0) + 1)
        self.lasting.update(mixed(self.lasting.value() or 0, n))
        self.recent.add(n)
        self.by_rest.put(n % 5, (self.by_rest.get(n % 5) or 0) + n)
        self.total.add(n)
        self.mean.add(n)
        ctx.timer_service().register_event_time_timer(ctx.timestamp() // 200 * 200 + 400)
        if n % 31 == 7:
            raise LookupError(f"number {self.count.value()} of its key")

    def on_timer(self, timestamp, ctx):
        recent, by_rest = [*self.recent.get()], dict(self.by_rest.items())
        known = [self.count.value() or 0, self.lasting.value() or 0, self.total.get() or 0, self.mean.get() or 0]
        rests = [number for rest in sorted(by_rest) for number in (rest, by_rest[rest])]
        yield Row(pipeline="states", key=ctx.get_current_key(), at=timestamp, n=mixed(*known, *recent, *rests))
        self.recent.clear()
        if timestamp % 600 == 0:
            self.count.clear()
            self.by_rest.clear()
            self.mean.clear()


class Both(KeyedCoProcessFunction):
    """One line an element of the second input, with what the first had of its key by then."""

    def open(self, runtime_context):
        self.known = runtime_context.get_state(ValueStateDescriptor("known", Types.LONG()))

    def process_element1(self, value, ctx):
        self.known.update(mixed(self.known.value() or 0, value["n"]))

    def process_element2(self, value, ctx):
        n = mixed(self.known.value() or 0, value["n"])
        yield Row(pipeline="both", key=value["key"], at=value["ts"], n=n)


class Contents(ProcessWindowFunction):
    """One line each time that a window fires, with a checksum of what it holds then."""

    def process(self, key, context, elements):
        n = mixed(*(element["n"] for element in elements))
        yield Row(pipeline="evicted", key=key, at=context.window().start, n=n)


class Groups(CoGroupFunction):
    """One line a window, with a checksum of both sides."""

    def co_group(self, first, second):
        ours, theirs = [*first], [*second]
        numbers = (element["n"] for element in (*ours, *theirs))
        yield Row(pipeline="grouped", key=(ours or theirs)[0]["key"], at=len(ours), n=mixed(*numbers))


def windows(rows: DataStream, files: DataStream) -> DataStream:
    """Windows of elements: those that fire again and again, late ones, by count, sessions that fold, of two inputs."""
    keyed = rows.key_by(lambda e: e["key"], Types.STRING())
    evicted = (
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(900)))
        .trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(300)))
        .evictor(CountEvictor.of(20))
        .process(Contents(), LINE)
    )
    reduced = (
        keyed.map(lambda e: Row(pipeline="reduced", key=e["key"], at=e["ts"], n=e["n"]), LINE)
        .key_by(lambda e: e["key"], Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.milliseconds(800), Time.milliseconds(400)))
        .allowed_lateness(Duration.of_millis(1_000))
        .reduce(lambda a, b: Row(pipeline="reduced", key=a["key"], at=min(a["at"], b["at"]), n=mixed(a["n"], b["n"])))
    )
    counted = (
        keyed.map(lambda e: Row(pipeline="counted", key=e["key"], at=e["ts"], n=e["n"]), LINE)
        .key_by(lambda e: e["key"], Types.STRING())
        .count_window(7)
        .reduce(lambda a, b: Row(pipeline="counted", key=a["key"], at=b["at"], n=mixed(a["n"], b["n"])))
    )
    folded = (
        keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(60)))
        .allowed_lateness(Duration.of_millis(1_000))
        .reduce(lambda a, b: Row(n=a["n"] + b["n"], ts=max(a["ts"], b["ts"]), key=b["key"]))
        .map(lambda e: Row(pipeline="folded", key=e["key"], at=e["ts"], n=e["n"]), LINE)
    )
    grouped = (
        rows.co_group(files)
        .where(lambda e: e["key"], Types.STRING())
        .equal_to(lambda e: e["key"], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(500)))
        .apply(Groups(), LINE)
    )
    return evicted.union(reduced, counted, folded, grouped)


def states(env: StreamExecutionEnvironment, output: str, folder: str) -> None:
    """All operators, on two sources, into two sinks, with bad elements in a third one."""
    spark = SparkSession.getActiveSession()
    one_by_one = spark.readStream.schema("n LONG, ts LONG, key STRING").option("maxFilesPerTrigger", 1)
    behind = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner("ts")
    rows = env.from_data_frame(one_by_one.parquet(f"{folder}/left"), behind, split_by=["key"], order_by=["n"])
    source = FileSource.parquet(f"{folder}/right", type_info=EVENT).set_max_files_per_batch(1).build()
    files = env.from_source(source, behind, "files").map(wanted, EVENT).name("check").side_output_dead_letters(BAD)
    remembered = rows.key_by(lambda e: e["key"], Types.STRING()).process(Remembers(), LINE).name("remember")
    letters = files.get_side_output(BAD).union(remembered.side_output_dead_letters(BAD).get_side_output(BAD))
    both = files.connect(rows).key_by(lambda e: e["key"], lambda e: e["key"], Types.STRING()).process(Both(), LINE)
    remembered.union(both).sink_to(FormatSink("json", {"path": f"{output}/functions"}))
    windows(rows, files).sink_to(FormatSink("json", {"path": f"{output}/windows"}))
    lines = letters.map(lambda e: f"{e.operator}: {e.error}: {e.text} of {e.key} at {e.timestamp}", Types.STRING())
    lines.sink_to(FormatSink("text", {"path": f"{output}/letters"}))


def main(job: str, checkpoint: str, output: str, folder: str) -> None:
    """Build and run it, to the end of what is there: rows of a DataFrame have no other."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).set_available_now()
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoint)
    states(env, output, folder)
    if restarts := int(os.environ.get("RESTARTS_OF_A_KILLED_JOB", "0")):  # imports no tests: a cluster has none
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(restarts, 0))
    env.execute(f"killed job: {job}")


if __name__ == "__main__":
    StreamExecutionEnvironment.get_execution_environment()
    if sys.stdin.readline():
        main(*sys.argv[1:])
