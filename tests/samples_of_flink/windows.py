"""Samples of the page on windows."""

from __future__ import annotations

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import AggregateFunction, OutputTag, ProcessWindowFunction, ReduceFunction, WindowFunction
from eventide.datastream.functions import ProcessAllWindowFunction
from eventide.datastream.window import (
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from samples_of_flink.table import first, sample, scripted, second
from support.twin import Contents, Values, timed

HOUR = 3_600_000
WINDOWS = "operators/windows"


# -- operators/windows: assigners

PAIRS = [("a", 1000), ("a", 7000), ("b", 8000), ("a", 14_000)]


def pairs(env):
    return timed(env, PAIRS)


def windowed(env, assigner, elements=PAIRS):
    """(key, start, end, times of its elements) of each window."""
    return (
        timed(env, elements)
        .key_by(first)
        .window(assigner)
        .process(Contents())
        .map(lambda window: (*window[:3], [at for _, at in window[3]]))
    )


@sample(
    WINDOWS,
    "Tumbling Windows: event time",
    [("a", 0, 5000, [1000]), ("a", 5000, 10_000, [7000]), ("b", 5000, 10_000, [8000]), ("a", 10_000, 15_000, [14_000])],
)
def tumbling(env):
    return windowed(env, TumblingEventTimeWindows.of(Time.seconds(5)))


@sample(
    WINDOWS,
    "Tumbling Windows: daily, offset by -8 hours",
    [("a", -8 * HOUR, 16 * HOUR, [15 * HOUR]), ("a", 16 * HOUR, 40 * HOUR, [16 * HOUR])],
)
def tumbling_with_offset(env):
    daily = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))
    return windowed(env, daily, [("a", 15 * HOUR), ("a", 16 * HOUR)])


@sample(
    WINDOWS,
    "Sliding Windows: event time",
    [("a", -5000, 5000, [1000]), ("a", 0, 10_000, [1000, 7000]), ("a", 5000, 15_000, [7000])],
)
def sliding(env):
    return windowed(env, SlidingEventTimeWindows.of(Time.seconds(10), Time.seconds(5)), PAIRS[:2])


VISITS = [("a", 0), ("a", 540_000), ("a", 1_200_000)]


@sample(
    WINDOWS,
    "Session Windows: event time, static gap",
    [("a", 0, 1_140_000, [0, 540_000]), ("a", 1_200_000, 1_800_000, [1_200_000])],
)
def sessions(env):
    return windowed(env, EventTimeSessionWindows.with_gap(Time.minutes(10)), VISITS)


class Gap(SessionWindowTimeGapExtractor):
    """A minute for the first visit, an hour for later ones."""

    def extract(self, element):
        return 60_000 if element[1] == 0 else HOUR


@sample(
    WINDOWS,
    "Session Windows: event time, dynamic gap",
    [("a", 0, 60_000, [0]), ("a", 540_000, 1_200_000 + HOUR, [540_000, 1_200_000])],
)
def sessions_with_dynamic_gap(env):
    return windowed(env, EventTimeSessionWindows.with_dynamic_gap(Gap()), VISITS)


@sample(WINDOWS, "Global Windows", [("a", [("a", 1000), ("a", 7000)])])
def global_windows(env):
    return pairs(env).key_by(first).window(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Values())


def by_the_clock(env, assigner):
    """(key, start, end, elements): one element in each micro-batch, and the clock goes on in between."""
    stream = scripted(env, WatermarkStrategy.no_watermarks(), [("a", 1)], [("a", 2)], [], [], [], [], [])
    return stream.key_by(first).window(assigner).process(Contents())


@sample(
    WINDOWS,
    "Tumbling Windows: processing time",
    [("a", 0, 5000, [("a", 1)]), ("a", 5000, 10_000, [("a", 2)])],
    step_ms=5000,
)
def tumbling_by_the_clock(env):
    return by_the_clock(env, TumblingProcessingTimeWindows.of(Time.seconds(5)))


@sample(
    WINDOWS,
    "Sliding Windows: processing time",
    [("a", -5000, 5000, [("a", 1)]), ("a", 0, 10_000, [("a", 1), ("a", 2)]), ("a", 5000, 15_000, [("a", 2)])],
    step_ms=5000,
)
def sliding_by_the_clock(env):
    return by_the_clock(env, SlidingProcessingTimeWindows.of(Time.seconds(10), Time.seconds(5)))


@sample(
    WINDOWS,
    "Session Windows: processing time, static gap",
    [("a", 0, 900_000, [("a", 1), ("a", 2)])],
    step_ms=300_000,
)
def sessions_by_the_clock(env):
    return by_the_clock(env, ProcessingTimeSessionWindows.with_gap(Time.minutes(10)))


@sample(
    WINDOWS,
    "Session Windows: processing time, dynamic gap",
    [("a", 0, 1000, [("a", 1)]), ("a", 5000, 7000, [("a", 2)])],
    step_ms=5000,
)
def sessions_by_the_clock_with_dynamic_gap(env):
    return by_the_clock(env, ProcessingTimeSessionWindows.with_dynamic_gap(lambda element: element[1] * 1000))


# -- operators/windows: functions

MINUTES = TumblingEventTimeWindows.of(Time.minutes(5))


def by_third(env, elements):
    """The first two fields of elements whose third field is their time."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[2])
    return env.from_collection(elements).assign_timestamps_and_watermarks(strategy).map(lambda e: e[:2])


def readings(env):
    """(key, value) in windows of five minutes."""
    elements = [("a", 4, 0), ("a", 2, 1000), ("b", 7, 2000), ("a", 9, 300_000)]
    return by_third(env, elements).key_by(lambda t: t[0]).window(MINUTES)


class AverageAggregate(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class CountInWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        count = 0
        for _ in elements:
            count += 1
        yield f"Window: {context.window().start}-{context.window().end} count: {count}"


class Smaller(ReduceFunction):
    def reduce(self, r1, r2):
        return r2 if r1[1] > r2[1] else r1


class WithStart(ProcessWindowFunction):
    def process(self, key, context, min_readings):
        yield context.window().start, next(iter(min_readings))


class WithKey(ProcessWindowFunction):
    def process(self, key, context, averages):
        yield key, next(iter(averages))


class MyWindowFunction(WindowFunction):
    def apply(self, key, window, inputs):
        yield key, window.end, len(list(inputs))


@sample(WINDOWS, "ReduceFunction", [("a", 6), ("b", 7), ("a", 9)])
def reduce_function(env):
    return readings(env).reduce(
        lambda v1, v2: (v1[0], v1[1] + v2[1]), output_type=Types.TUPLE([Types.STRING(), Types.LONG()])
    )


@sample(WINDOWS, "AggregateFunction", [3.0, 7.0, 9.0])
def aggregate_function(env):
    return readings(env).aggregate(AverageAggregate())


@sample(
    WINDOWS,
    "ProcessWindowFunction",
    ["Window: 0-300000 count: 2", "Window: 0-300000 count: 1", "Window: 300000-600000 count: 1"],
)
def process_window_function(env):
    return readings(env).process(CountInWindow())


@sample(
    WINDOWS,
    "Incremental Window Aggregation with ReduceFunction",
    [(0, ("a", 2)), (0, ("b", 7)), (300_000, ("a", 9))],
)
def reduce_with_window_function(env):
    return readings(env).reduce(Smaller(), WithStart())


@sample(WINDOWS, "Incremental Window Aggregation with AggregateFunction", [("a", 3.0), ("b", 7.0), ("a", 9.0)])
def aggregate_with_window_function(env):
    return readings(env).aggregate(AverageAggregate(), WithKey())


@sample(WINDOWS, "WindowFunction (Legacy)", [("a", 300_000, 2), ("b", 300_000, 1), ("a", 600_000, 1)])
def window_function(env):
    return readings(env).apply(MyWindowFunction())


# -- operators/windows: lateness and results


@sample(WINDOWS, "Keyed Windows, Allowed Lateness, Getting late data as a side output", ["a", "ab", "c", "late d"])
def lateness(env):
    """Three micro-batches: (0, 10) fires, fires again with what is late by less than 5, and what is later is apart."""
    late_output_tag = OutputTag("late-data")
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    result = (
        scripted(env, by_time, [("a", 1), ("c", 13)], [("b", 2), ("c", 20)], [("d", 3)])
        .key_by(lambda _: 0)
        .window(TumblingEventTimeWindows.of(10))
        .trigger(EventTimeTrigger.create())
        .evictor(CountEvictor.of(10))
        .allowed_lateness(5)
        .side_output_late_data(late_output_tag)
        .apply(Joined())
    )
    late_stream = result.get_side_output(late_output_tag)
    return result.filter(lambda text: text != "c20").union(late_stream.map(lambda e: f"late {e[0]}"))


class Joined(WindowFunction):
    """The letters of a window; the last window has its time, too."""

    def apply(self, key, window, inputs):
        yield "".join(letter for letter, _ in inputs) + (str(window.start) if window.start == 20 else "")


class Summer(ReduceFunction):
    def reduce(self, a, b):
        return a[0], a[1] + b[1]


class TopKWindowFunction(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, max(elements, key=second)


@sample(WINDOWS, "Consecutive windowed operations", [(0, ("b", 5)), (5000, ("a", 4))])
def consecutive_windows(env):
    elements = [("a", 1, 0), ("b", 5, 1), ("a", 2, 2), ("a", 4, 6000), ("b", 3, 7000)]
    results_per_key = (
        by_third(env, elements).key_by(first).window(TumblingEventTimeWindows.of(Time.seconds(5))).reduce(Summer())
    )
    return results_per_key.window_all(TumblingEventTimeWindows.of(Time.seconds(5))).process(TopKWindowFunction())
