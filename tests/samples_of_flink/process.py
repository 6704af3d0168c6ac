"""Samples of the pages on process functions, side outputs and joins."""

from __future__ import annotations

import datetime

from eventide.common import Duration, Row, TimestampAssigner, Types, WatermarkStrategy
from eventide.datastream import KeyedProcessFunction, OutputTag, ProcessFunction, RuntimeContext
from eventide.datastream.functions import JoinFunction, KeyedCoProcessFunction, ProcessJoinFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from samples_of_flink.table import first, sample, scripted
from support.twin import timed

PROCESS = "operators/process_function"
SIDE = "side_output"
JOINING = "operators/joining"


# -- operators/process_function


class CountWithTimestamp:
    def __init__(self, key):
        self.key, self.count, self.last_modified = key, 0, 0


class CountWithTimeoutFunction(KeyedProcessFunction):
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("my_state", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        current = self.state.value()
        if current is None:
            current = CountWithTimestamp(value[0])
        current.count += 1
        current.last_modified = ctx.timestamp()
        self.state.update(current)
        ctx.timer_service().register_event_time_timer(current.last_modified + 60000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        result = self.state.value()
        if timestamp == result.last_modified + 60000:
            yield result.key, result.count


@sample(PROCESS, "Example: Java's", [("a", 2), ("b", 1)])
def count_with_timeout(env):
    elements = [("a", 0), ("a", 50_000), ("b", 50_000)]
    return timed(env, elements).key_by(lambda value: value[0]).process(CountWithTimeoutFunction())


class CountRowsWithTimeoutFunction(KeyedProcessFunction):
    """Python's on the page: it keeps a row, and changes its fields."""

    def __init__(self):
        self.state = None

    def open(self, runtime_context: RuntimeContext):
        self.state = runtime_context.get_state(ValueStateDescriptor("my_state", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        current = self.state.value()
        if current is None:
            current = Row(value.f1, 0, 0)
        current[1] += 1
        current[2] = ctx.timestamp()
        self.state.update(current)
        ctx.timer_service().register_event_time_timer(current[2] + 60000)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        result = self.state.value()
        if timestamp == result[2] + 60000:
            yield result[0], result[1]


class MyTimestampAssigner(TimestampAssigner):
    def __init__(self):
        self.epoch = datetime.datetime.fromisoformat("1970-01-01")

    def extract_timestamp(self, value, record_timestamp) -> int:
        return int((value[0] - self.epoch).total_seconds() * 1000)


@sample(
    PROCESS, "Example: Python's, on rows that a collection brings, where the page has a table", [("a", 2), ("b", 1)]
)
def count_rows_with_timeout(env):
    times = [datetime.datetime.fromisoformat(f"2026-01-01 00:00:{second:02}") for second in (0, 50, 50)]
    rows = [Row(at, name, "") for at, name in zip(times, "aab", strict=True)]
    stream = env.from_collection(rows, Types.ROW([Types.SQL_TIMESTAMP(), Types.STRING(), Types.STRING()]))
    watermarked_stream = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(MyTimestampAssigner())
    )
    return watermarked_stream.key_by(lambda value: value[1]).process(CountRowsWithTimeoutFunction())


class Coalescing(KeyedProcessFunction):
    """Timers of full seconds of the clock, and one with the next watermark."""

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        timeout = 500
        coalesced_time = ((ctx.timestamp() + timeout) // 1000) * 1000
        ctx.timer_service().register_processing_time_timer(coalesced_time)
        coalesced_time = ctx.timer_service().current_watermark() + 1
        ctx.timer_service().register_event_time_timer(coalesced_time)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        key = ctx.get_current_key()
        yield key, ctx.time_domain().name, timestamp


FIRST_WATERMARK = -(2**63)


@sample(
    PROCESS,
    "The KeyedProcessFunction, Timer Coalescing",
    [("a", "PROCESSING_TIME", 2000), ("a", "EVENT_TIME", FIRST_WATERMARK + 1)],
    step_ms=1000,
)
def coalesced_timers(env):
    """Three elements of one second have one timer of each kind."""
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    script = [("a", 1600), ("a", 2000), ("a", 2400)], [], [], [], []
    return scripted(env, by_time, *script).key_by(first).process(Coalescing())


class Stopping(KeyedProcessFunction):
    """Sets timers of both kinds, and stops those of the first element of a key."""

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        timers = ctx.timer_service()
        timestamp_of_timer_to_stop = 10
        timers.register_event_time_timer(timestamp_of_timer_to_stop)
        timers.register_processing_time_timer(timestamp_of_timer_to_stop)
        timers.register_event_time_timer(20)
        timers.register_processing_time_timer(20)
        timers.delete_processing_time_timer(timestamp_of_timer_to_stop)
        timers.delete_event_time_timer(timestamp_of_timer_to_stop)
        timers.delete_event_time_timer(30)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext):
        yield ctx.time_domain().name, timestamp


@sample(PROCESS, "Timers: stopping them", [("EVENT_TIME", 20), ("PROCESSING_TIME", 20)], step_ms=25)
def stopped_timers(env):
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    return scripted(env, by_time, [("a", 1)], [], []).key_by(first).process(Stopping())


class Probing(KeyedCoProcessFunction):
    """A low-level join: state of customers, probed by trades."""

    def open(self, runtime_context):
        self.customer = runtime_context.get_state(ValueStateDescriptor("customer", Types.STRING()))

    def process_element1(self, value, ctx):
        self.customer.update(value[1])

    def process_element2(self, value, ctx):
        yield self.customer.value(), value[1]


@sample(PROCESS, "Low-level Joins", [("Ada", 5), ("Ada", 7)])
def low_stage_join(env):
    none = WatermarkStrategy.no_watermarks()
    customers, trades = scripted(env, none, [(1, "Ada")]), scripted(env, none, [], [(1, 5), (1, 7)])
    return customers.key_by(first).connect(trades.key_by(first)).process(Probing())


# -- side_output

output_tag = OutputTag("side-output", Types.STRING())


class MyProcessFunction(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context):
        yield value
        yield output_tag, "sideout-" + str(value)


@sample(SIDE, "Side Outputs", ["1", "2", "sideout-1", "sideout-2"])
def side_outputs(env):
    main_data_stream = env.from_collection([1, 2], Types.INT()).process(MyProcessFunction(), Types.INT())
    side_output_stream = main_data_stream.get_side_output(output_tag)
    return main_data_stream.map(str, Types.STRING()).union(side_output_stream)


# -- operators/joining


class Pair(JoinFunction):
    def join(self, first, second):
        return f"{first},{second}"


class PairInInterval(ProcessJoinFunction):
    def process_element(self, left, right, ctx: ProcessJoinFunction.Context):
        yield f"{left},{right}"


BY_ITSELF = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e)


def oranges_and_greens(env, orange, green):
    return [env.from_collection(e).assign_timestamps_and_watermarks(BY_ITSELF) for e in (orange, green)]


def joined(env, assigner, orange, green):
    orange_stream, green_stream = oranges_and_greens(env, orange, green)
    return (
        orange_stream.join(green_stream)
        .where(lambda e: 0)
        .equal_to(lambda e: 0)
        .window(assigner)
        .apply(Pair(), Types.STRING())
    )


@sample(JOINING, "Tumbling Window Join", ["0,0", "0,1", "1,0", "1,1", "2,3", "3,3", "4,4", "5,4"])
def tumbling_join(env):
    return joined(env, TumblingEventTimeWindows.of(Duration.of_millis(2)), range(8), [0, 1, 3, 4])


@sample(JOINING, "Sliding Window Join", ["0,0", "0,0", "2,3", "3,3", "3,3"])
def sliding_join(env):
    assigner = SlidingEventTimeWindows.of(Duration.of_millis(2), Duration.of_millis(1))
    return joined(env, assigner, [0, 2, 3, 7], [0, 3])


@sample(JOINING, "Session Window Join", ["1,1", "1,2", "2,1", "2,2", "5,4", "6,4", "5,5", "6,5"])
def session_join(env):
    return joined(env, EventTimeSessionWindows.with_gap(Duration.of_millis(1)), [1, 2, 5, 6, 8, 9], [1, 2, 4, 5])


@sample(JOINING, "Interval Join", ["2,0", "2,1", "3,1", "0,0", "0,1", "5,6"])
def interval_join(env):
    orange_stream, green_stream = oranges_and_greens(env, [0, 2, 3, 5], [0, 1, 6])
    return (
        orange_stream.key_by(lambda e: 0)
        .interval_join(green_stream.key_by(lambda e: 0))
        .between(Duration.of_millis(-2), Duration.of_millis(1))
        .process(PairInInterval(), Types.STRING())
    )
