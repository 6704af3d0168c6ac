"""Samples of the pages on watermark strategies, on generators, and on those that are built in."""

from __future__ import annotations

import time
from typing import Any

from eventide.common import Duration, Time, TimestampAssigner, Types, Watermark, WatermarkGenerator, WatermarkStrategy
from eventide.datastream import FilePathFilter, FileProcessingMode, OutputTag, StreamExecutionEnvironment
from eventide.datastream.connectors import Source
from eventide.datastream.connectors.file_system import StreamFormat
from eventide.datastream.functions import KeyedCoProcessFunction
from eventide.datastream.state import ValueStateDescriptor
from eventide.datastream.window import TimestampedValue, TumblingEventTimeWindows
from eventide.testing import ScriptedSource
from samples_of_flink.table import sample, scripted
from support.twin import AllContents

GENERATING = "event-time/generating_watermarks"
BUILT_IN = "event-time/built_in"


# -- event-time/generating_watermarks: strategies


class FirstElementTimestampAssigner(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


class BoundedOutOfOrdernessGenerator(WatermarkGenerator):
    """3.5 seconds."""

    def __init__(self):
        self.max_out_of_orderness = 3500
        self.current_max_timestamp = 0

    def on_event(self, event, event_timestamp, output):
        self.current_max_timestamp = max(self.current_max_timestamp, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.current_max_timestamp - self.max_out_of_orderness - 1))


class TimeLagWatermarkGenerator(WatermarkGenerator):
    """5 seconds."""

    def __init__(self):
        self.max_time_lag = 5000

    def on_event(self, event, event_timestamp, output):
        pass

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(int(time.time() * 1000) - self.max_time_lag))


class PunctuatedAssigner(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        if event.has_watermark_marker():
            output.emit_watermark(Watermark(event.get_watermark_timestamp()))

    def on_periodic_emit(self, output):
        pass


class MyStrategy(WatermarkStrategy):
    def create_timestamp_assigner(self, context):
        return FirstElementTimestampAssigner()

    def create_watermark_generator(self, context):
        return BoundedOutOfOrdernessGenerator()


LATE = OutputTag("late")
# After 25,000 the watermark of a bound of 3.5 s is past (0, 10,000), and that of a bound of 20 s is not.
OUT_OF_ORDER = [1000, "a"], [25_000, "b"], [2000, "c"], [31_000, "d"], [9000, "e"]


def by_ten_seconds(stream: Any) -> Any:
    """(start, what was in the window) and ("late", what was late)."""
    result = (
        stream.window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
        .side_output_late_data(LATE)
        .process(AllContents())
    )
    in_time = result.map(lambda window: (window[0], "".join(sorted(text for _, text in window[2]))))
    return in_time.union(result.get_side_output(LATE).map(lambda e: ("late", e[1])))


def batches_of_one(env: StreamExecutionEnvironment, strategy: WatermarkStrategy) -> Any:
    return scripted(env, strategy, *([tuple(element)] for element in OUT_OF_ORDER))


BOUND_3500 = [(0, "a"), (20_000, "b"), (30_000, "d"), ("late", "c"), ("late", "e")]


@sample(GENERATING, "Introduction to Watermark Strategies: the interface, on a source", BOUND_3500)
def interface_on_a_source(env):
    return by_ten_seconds(batches_of_one(env, MyStrategy()))


@sample(GENERATING, "Introduction to Watermark Strategies: the interface, after an operator", BOUND_3500)
def interface_after_an_operator(env):
    stream = batches_of_one(env, WatermarkStrategy.no_watermarks()).filter(lambda _: True)
    return by_ten_seconds(stream.assign_timestamps_and_watermarks(MyStrategy()))


BOUND_20_S = [(0, "ac"), (20_000, "b"), (30_000, "d"), ("late", "e")]


@sample(GENERATING, "Introduction to Watermark Strategies: a class as assigner", BOUND_20_S)
def assigner_of_a_class(env):
    return by_ten_seconds(
        batches_of_one(
            env,
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20)).with_timestamp_assigner(
                FirstElementTimestampAssigner()
            ),
        )
    )


@sample(GENERATING, "Introduction to Watermark Strategies: a lambda as assigner", BOUND_20_S)
def assigner_of_a_lambda(env):
    return by_ten_seconds(
        batches_of_one(
            env,
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20)).with_timestamp_assigner(
                lambda event, timestamp: event[0]
            ),
        )
    )


# -- event-time/generating_watermarks: files

WARNING = "WARNING"


class MyEvent:
    """A line: severity, group, second, and how many it stands for."""

    def __init__(self, severity, group, at_second, count=1):
        self._severity, self._group, self.at_second, self.count = severity, group, at_second, count

    @staticmethod
    def from_string(line):
        severity, group, at_second = line.split()
        return MyEvent(severity, group, int(at_second))

    def severity(self):
        return self._severity

    def get_group(self):
        return self._group

    def add(self, other):
        return MyEvent(self._severity, self._group, self.at_second, self.count + other.count)

    def has_watermark_marker(self):
        return self._severity == "marker"

    def get_watermark_timestamp(self):
        return self.at_second * 1000 - 1


SECOND_OF_EVENT = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda event, timestamp: event.at_second * 1000
)
LINES = "WARNING disk 1\nINFO disk 2\nWARNING disk 3\nWARNING fan 4\nWARNING disk 12\nWARNING fan 25\n"
WARNINGS = [("disk", 2), ("fan", 1), ("disk", 1)]


def warnings_by_group(stream):
    with_timestamps_and_watermarks = stream.filter(
        lambda event: event.severity() == WARNING
    ).assign_timestamps_and_watermarks(SECOND_OF_EVENT)
    return (
        with_timestamps_and_watermarks.key_by(lambda event: event.get_group())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .reduce(lambda a, b: a.add(b))
        .map(lambda event: (event.get_group(), event.count))
    )


@sample(GENERATING, "Using Watermark Strategies: read_file", WARNINGS, limit=3)
def watched_files(env, folder):
    (folder / "events.log").write_text(LINES)
    stream = env.read_file(
        StreamFormat.text_line_format(),
        str(folder),
        FileProcessingMode.PROCESS_CONTINUOUSLY,
        100,
        FilePathFilter.create_default_filter(),
        Types.STRING(),
    )
    return warnings_by_group(stream.map(MyEvent.from_string))


@sample(GENERATING, "Using Watermark Strategies: read_text_file", [*WARNINGS, ("fan", 1)])
def text_file(env, folder):
    (folder / "events.log").write_text(LINES, encoding="utf-16")
    stream = env.read_text_file(str(folder / "events.log"), "utf-16").map(lambda s: MyEvent.from_string(s))  # noqa: PLW0108
    return warnings_by_group(stream)


# -- event-time/generating_watermarks: idleness and alignment


@sample(GENERATING, "Dealing With Idle Sources", [(0, "ab"), (40_000, "c")], step_ms=45_000)
def idle_source(env):
    """One split falls silent; a minute later the other one alone moves the watermark, before the input ends."""
    script = [[("a", (1000, "a")), ("b", (2000, "b"))], [("a", (40_000, "c"))], [("a", (70_001, "d"))], []]
    strategy = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
        .with_idleness(Duration.of_minutes(1))
        .with_timestamp_assigner(FirstElementTimestampAssigner())
    )
    return by_ten_seconds(env.from_source(ScriptedSource(["a", "b"], script, bounded=False), strategy, "script"))


class Log(Source):
    """A split of seconds, which are their timestamps too."""

    def __init__(self, name, seconds):
        self.name, self.seconds = name, seconds

    def splits(self):
        return [self.name]

    def latest_position(self, split):
        return len(self.seconds)

    def read(self, split, start, end):
        for at_second in self.seconds[start:end]:
            yield TimestampedValue((self.name, at_second), at_second * 1000)

    def gives_timestamps(self):
        return True

    def is_bounded(self):
        return True


FAST, SLOW = [0, 100, 200], [0, 1, 2, 3, 4, 5]


class SeenBefore(KeyedCoProcessFunction):
    """Gives each second of the fast source with how many of the slow one came before it."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element1(self, value, ctx):
        yield value[1], self.seen.value() or 0

    def process_element2(self, value, ctx):
        self.seen.update((self.seen.value() or 0) + 1)


@sample(GENERATING, "Watermark alignment", [(0, 0), (100, 1), (200, 6)], max_rows=1)
def aligned_sources(env):
    """The fast source is asked for nothing more until the slow one has come as far, or has ended."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20)).with_watermark_alignment(
        "alignment-group-1", Duration.of_seconds(20), Duration.of_seconds(1)
    )
    fast, slow = (env.from_source(Log(*log), strategy, log[0]) for log in (("fast", FAST), ("slow", SLOW)))
    return fast.key_by(lambda _: 0).connect(slow.key_by(lambda _: 0)).process(SeenBefore())


# -- event-time/generating_watermarks: generators


def generated(env, generator):
    strategy = WatermarkStrategy.for_generator(generator).with_timestamp_assigner(FirstElementTimestampAssigner())
    return by_ten_seconds(batches_of_one(env, strategy))


@sample(GENERATING, "Writing a Periodic WatermarkGenerator: BoundedOutOfOrdernessGenerator", BOUND_3500)
def bounded_generator(env):
    return generated(env, BoundedOutOfOrdernessGenerator)


@sample(
    GENERATING,
    "Writing a Periodic WatermarkGenerator: TimeLagWatermarkGenerator",
    [(0, "a"), *(("late", text) for text in "bcde")],
)
def time_lag_generator(env):
    """After the first micro-batch the watermark is of today, and elements of 1970 are late."""
    return generated(env, TimeLagWatermarkGenerator)


@sample(
    GENERATING,
    "Writing a Punctuated WatermarkGenerator",
    [(0, ["till", "till"]), (10_000, ["till", "marker"]), ("late", 4)],
)
def punctuated_generator(env):
    """The marker makes what comes right after it late, in the same micro-batch."""
    kinds = [("till", 1), ("till", 3), ("till", 14), ("marker", 10), ("till", 4)]
    events = env.from_collection([MyEvent(kind, "g", at) for kind, at in kinds])
    strategy = WatermarkStrategy.for_generator(PunctuatedAssigner).with_timestamp_assigner(
        lambda event, timestamp: event.at_second * 1000
    )
    result = (
        events.assign_timestamps_and_watermarks(strategy)
        .window_all(TumblingEventTimeWindows.of(Time.seconds(10)))
        .side_output_late_data(LATE)
        .process(AllContents())
    )
    return result.map(lambda window: (window[0], [event.severity() for event in window[2]])).union(
        result.get_side_output(LATE).map(lambda event: ("late", event.at_second))
    )


# -- event-time/built_in


def built_in(env, strategy):
    return by_ten_seconds(batches_of_one(env, strategy.with_timestamp_assigner(FirstElementTimestampAssigner())))


@sample(BUILT_IN, "Monotonously Increasing Timestamps", BOUND_3500)
def monotonous_timestamps(env):
    return built_in(env, WatermarkStrategy.for_monotonous_timestamps())


@sample(BUILT_IN, "Fixed Amount of Lateness", BOUND_3500)
def bounded_out_of_orderness(env):
    return built_in(env, WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(10)))
