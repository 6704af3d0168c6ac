"""Bad elements at random: the results are those of a run without them, and each of them is a dead letter, once.

However elements are cut into micro-batches, on how many subtasks, on columns or one by one, and over restarts.
"""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.aggregates import count, sum_
from eventide.common import Row, Types, VectorizedTimestampAssigner, WatermarkStrategy
from eventide.datastream import (
    AggregateFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
)
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, ReducingStateDescriptor
from eventide.datastream.window import (
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run_with_restarts, values

BAD = OutputTag("bad")
ASIDE = OutputTag("aside", Types.LONG())
EVENT = Types.ROW_NAMED(["key", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
IN_ORDER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
NOTHING = -1
"""The value of a bad element."""


def in_time(drawn):
    """Micro-batches of elements whose times go up with the good ones: what is bad is not what moves the watermark."""
    now, batches = 0, []
    for batch in drawn:
        batches.append([])
        for key, step, value in batch:
            now += step if value != NOTHING else 0
            batches[-1].append((key, now, value))
    return batches


BATCHES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.sampled_from([NOTHING, 1, 2, 3])), max_size=8),
    max_size=6,
).map(in_time)
FIRST = [(key, 0, 1) for key in "abc"]
"""A reduce function is not asked about the first element of a key: it is good."""


def checked(element):
    if element[2] == NOTHING:
        raise ValueError("nothing")
    return element


class Doubles(MapFunction):
    def map(self, value):
        return checked(value)[0], value[1], value[2] * 2


class HalfWay(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        yield ASIDE, value[2]
        checked(value)
        yield ("again", *value)


class Remembers(KeyedProcessFunction):
    """Changes every kind of state in place, sets and deletes timers, and then looks whether the element is good."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.LONG(), Types.LONG()))
        sums = ReducingStateDescriptor("sum", lambda one, other: one + other, Types.LONG())
        self.sum = runtime_context.get_reducing_state(sums)

    def process_element(self, value, ctx):
        self.seen.add(value[2])
        self.counts[value[2]] = (self.counts[value[2]] or 0) + 1
        self.sum.add(value[2])
        ctx.timer_service().delete_event_time_timer(value[1] + 4)
        ctx.timer_service().register_event_time_timer(value[1] + 5 + (value[2] == NOTHING))
        yield "early", value
        checked(value)
        yield value[0], list(self.seen), sorted(self.counts.items()), self.sum.get()

    def on_timer(self, timestamp, ctx):
        yield "timer", ctx.get_current_key(), timestamp, list(self.seen)


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield "one", checked(value)

    def process_element2(self, value, ctx):
        yield "two", checked(value)


class Gathers(AggregateFunction):
    """Changes its accumulator in place before it looks."""

    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value)
        checked(value)
        return accumulator

    def get_result(self, accumulator):
        return list(accumulator)

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def reduced(one, other):
    checked(other)
    return one[0], max(one[1], other[1]), one[2] + other[2]


class Vectorised(VectorizedTimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        raise AssertionError("these are columns")

    def extract_timestamps(self, batch):
        if NOTHING in batch.column("value").to_pylist():
            raise ValueError("nothing")
        return batch.column("at")


def timed(stream):
    return stream.assign_timestamps_and_watermarks(IN_ORDER)


def keyed(stream):
    return timed(stream).key_by(lambda e: e[0])


def key_of(element):
    return checked(element)[0]


PROGRAMS = {
    "map": lambda s: s.map(checked),
    "map to a type": lambda s: s.map(Doubles(), Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])),
    "map to another type": lambda s: s.map(lambda e: "x" if e[2] == NOTHING else e[2], Types.LONG()),
    "filter": lambda s: s.filter(lambda e: checked(e)[2] > 1),
    "flat_map": lambda s: s.flat_map(lambda e: (checked(e) for _ in range(2))),
    "process": lambda s: s.process(HalfWay()),
    "timestamps": lambda s: s.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: checked(e)[1])
    ),
    "timestamps of nothing": lambda s: s.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            lambda e, _: None if e[2] == NOTHING else e[1]
        )
    ),
    "key_by": lambda s: timed(s).key_by(key_of),
    "keyed process": lambda s: keyed(s).process(Remembers()),
    "two inputs": lambda s: s.connect(s.map(lambda e: e)).process(Both()),
    "rolling": lambda s: keyed(s).map(lambda e: e).key_by(lambda e: e[0]).reduce(reduced),
    "tumbling": lambda s: keyed(s).window(TumblingEventTimeWindows.of(5)).aggregate(Gathers()),
    "sliding": lambda s: keyed(s).window(SlidingEventTimeWindows.of(6, 2)).aggregate(Gathers()),
    "sessions": lambda s: keyed(s).window(EventTimeSessionWindows.with_gap(2)).aggregate(Gathers()),
    "counts": lambda s: keyed(s).window(CountTumblingWindowAssigner.of(2)).aggregate(Gathers()),
    "all": lambda s: timed(s).window_all(TumblingEventTimeWindows.of(5)).aggregate(Gathers()),
}


def results(build, batches, parallelism, every):
    """The output, and the dead letters, with their times."""
    source = ScriptedSource(["s"], [[("s", one) for one in batch] for batch in batches])
    stream = local_environment().from_source(source, WatermarkStrategy.no_watermarks(), "script")
    result = build(stream).side_output_dead_letters(BAD)
    plan = plan_of(result, result.get_side_output(BAD), parallelism=parallelism)
    found = run_with_restarts(plan, every)
    return [sorted((one for batch in found for one in batch[sink]), key=repr) for sink in (0, 1)]


def good_of(batches):
    return [[one for one in batch if one[2] != NOTHING] for batch in batches]


def bad_of(batches):
    return [one for batch in batches for one in batch if one[2] == NOTHING]


CUTS = {"batches": BATCHES, "parallelism": st.integers(1, 3), "every": st.integers(1, 4)}


@pytest.mark.parametrize("what", PROGRAMS)
@settings(max_examples=40)
@given(**CUTS)
def test_what_is_bad_comes_out_once_and_leaves_no_trace(what, batches, parallelism, every):
    batches = [FIRST, *batches]
    build = PROGRAMS[what]
    expected, none = results(build, good_of(batches), parallelism, every)
    found, letters = results(build, batches, parallelism, every)
    assert found == expected
    assert none == []
    times = 2 if what == "two inputs" else 1
    assert sorted(letter.element for letter, _ in letters) == sorted(bad_of(batches) * times)


COLUMNS = {
    "vectorised": WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Vectorised()),
    "a column": WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at"),
}


@pytest.mark.parametrize("what", COLUMNS)
@settings(max_examples=40)
@given(**CUTS)
def test_what_is_bad_is_found_among_columns(what, batches, parallelism, every):
    batches = [FIRST, *batches]

    def row(key, at, value):
        return {"key": key, "at": None if what == "a column" and value == NOTHING else at, "value": value}

    def run(batches):
        names = pa.schema(list(EVENT.arrow_type()))
        columns = [pa.RecordBatch.from_pylist([row(*one) for one in batch], schema=names) for batch in batches]
        source = ScriptedSource(["s"], [[("s", one)] if len(one) else [] for one in columns], EVENT)
        timed = local_environment().from_source(source, COLUMNS[what], "columns").side_output_dead_letters(BAD)
        windows = timed.key_by("key").window(TumblingEventTimeWindows.of(5))
        plan = plan_of(windows.aggregate(count(), sum_("value")), timed.get_side_output(BAD), parallelism=parallelism)
        assert plan.operators[0].speed.startswith("columns")
        found = run_with_restarts(plan, every)
        return values(found), values(found, sink=1)

    expected, none = run(good_of(batches))
    found, letters = run(batches)
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert none == []
    bad = [Row(**row(*one)) for one in bad_of(batches)]
    assert sorted((letter.element for letter in letters), key=repr) == sorted(bad, key=repr)
