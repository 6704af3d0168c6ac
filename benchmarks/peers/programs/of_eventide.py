"""eventide: two subtasks on two local cores, and checkpoints as they are by default."""

from __future__ import annotations

from contract import BOUND_MS, CORES, GAP_MS, LEAST_VALUE, WINDOW_MS, WITHIN_MS, main

from eventide.aggregates import sum_
from eventide.common import Configuration, Duration, Time, Types, WatermarkStrategy
from eventide.datastream import StreamExecutionEnvironment
from eventide.datastream.connectors import FileSource, FormatSink
from eventide.datastream.functions import KeyedProcessFunction
from eventide.datastream.state import MapStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.joins import left, right

SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}
EVENT = Types.ROW_NAMED(["event", "user", "at", "value"], [Types.STRING(), Types.STRING(), Types.LONG(), Types.LONG()])
BY_TIME = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS)).with_timestamp_assigner("at")


def environment(out):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(SETTINGS))
    env.set_parallelism(CORES).get_checkpoint_config().set_checkpoint_storage_dir(str(out / "checkpoint"))
    return env


def read(env, events, kind="events"):
    files = FileSource.csv(str(events / "parts" / kind), type_info=EVENT).set_max_files_per_batch(CORES)
    return env.from_source(files.build(), BY_TIME, kind)


def job(env, results, out):
    results.sink_to(FormatSink("parquet", {"path": str(out / "out")}))
    return lambda: env.execute("peers")


def stateless(events, out):
    env = environment(out)
    large = read(env, events).filter(lambda event: event.value >= LEAST_VALUE)
    doubled = Types.ROW_NAMED(["user", "doubled"], [Types.STRING(), Types.LONG()])
    return job(env, large.map(lambda event: (event.user.upper(), event.value * 2), doubled), out)


def tumbling(events, out):
    env = environment(out)
    windows = TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS))
    sums = read(env, events).key_by("user").window(windows).aggregate(sum_("value").alias("total"))
    return job(env, sums, out)


def sessions(events, out):
    env = environment(out)
    windows = EventTimeSessionWindows.with_gap(Time.milliseconds(GAP_MS))
    sums = read(env, events).key_by("user").window(windows).aggregate(sum_("value").alias("total"))
    return job(env, sums, out)


class Highest(KeyedProcessFunction):
    """The highest value of each user and period, told by a timer at the end of the period."""

    def open(self, runtime_context):
        self.highest = runtime_context.get_map_state(MapStateDescriptor("highest", Types.LONG(), Types.LONG()))

    def process_element(self, value, ctx):
        start = value.at - value.at % WINDOW_MS
        known = self.highest.get(start)
        if known is None:
            ctx.timer_service().register_event_time_timer(start + WINDOW_MS)
        if known is None or value.value > known:
            self.highest.put(start, value.value)

    def on_timer(self, timestamp, ctx):
        start = timestamp - WINDOW_MS
        yield ctx.get_current_key(), start, self.highest.get(start)
        self.highest.remove(start)


def process(events, out):
    env = environment(out)
    told = Types.ROW_NAMED(["user", "start", "highest"], [Types.STRING(), Types.LONG(), Types.LONG()])
    by_user = read(env, events).key_by(lambda event: event.user, Types.STRING())
    return job(env, by_user.process(Highest(), told), out)


def join(events, out):
    env = environment(out)
    one, other = (read(env, events, kind).key_by("event") for kind in ("events", "answers"))
    pairs = one.interval_join(other).between(Time.milliseconds(0), Time.milliseconds(WITHIN_MS))
    return job(env, pairs.select(left("event"), left("value"), right("value").alias("other")), out)


PROGRAMS = {"stateless": stateless, "tumbling": tumbling, "sessions": sessions, "process": process, "join": join}

if __name__ == "__main__":
    main(PROGRAMS, warm_up=True)
