"""Elements that go past the tasks of their generator give the results of those that go through them."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.aggregates import count, sum_
from eventide.common import (
    Row,
    Types,
    VectorizedWatermarkGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from eventide.datastream import KeyedProcessFunction, OutputTag
from eventide.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from eventide.runtime.exchange.partitioners import FieldsPartitioner
from eventide.testing import Idle, ScriptedSource, local_environment
from support.twin import plan_of, run, run_with_restarts

EVENT = Types.ROW_NAMED(["key", "at", "value", "mark"], [Types.STRING(), *[Types.LONG()] * 3])
LATE = OutputTag("late", EVENT)
UNTIMED = OutputTag("untimed", EVENT)


class Highest(WatermarkGenerator):
    def __init__(self):
        self.highest = -(2**62)

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output):
        output.emit_watermark(Watermark(self.highest - 2))


class HighestOfBatch(VectorizedWatermarkGenerator, Highest):
    def on_batch(self, events, timestamps, output):
        self.highest = max(self.highest, pc.max(timestamps).as_py())


class AfterEach(Highest):
    """Emits after every third millisecond, and says at times that it is idle."""

    def on_event(self, event, event_timestamp, output):
        self.highest = max(self.highest, event_timestamp)
        if event_timestamp % 3 == 0:
            output.emit_watermark(Watermark(self.highest - 2))
        elif event_timestamp % 7 == 0:
            output.mark_idle()


class Marks(VectorizedWatermarkGenerator, Highest):
    """Emits what elements say in a field."""

    columns = ("mark",)

    def on_batch(self, events, timestamps, output):
        assert events.schema.names == ["mark"]
        rows = [row for row, mark in enumerate(events.column("mark").to_pylist()) if mark]
        output.emit_watermarks(pa.array(rows, pa.int64()), timestamps.take(pa.array(rows, pa.int64())))

    def on_event(self, event, event_timestamp, output):
        raise AssertionError("elements come as columns")

    def on_periodic_emit(self, output):
        pass


class Emits(KeyedProcessFunction):
    """Shows at which watermark each element and timer comes."""

    def process_element(self, value, ctx):
        yield ctx.get_current_key(), value["value"], ctx.timestamp(), ctx.timer_service().current_watermark()
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 3)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, ctx.timer_service().current_watermark()


def hidden(generator):
    """A supplier that does not show what it makes."""

    return lambda: [generator()][0]


def program(supplier, script, declared):
    env = local_environment()
    source = ScriptedSource(["p", "q"], script, EVENT if declared else None)
    strategy = WatermarkStrategy.for_generator(supplier).with_idleness(1_000)
    strategy = strategy.with_timestamp_assigner("at" if declared else lambda event, _: event["at"])
    elements = env.from_source(source, strategy.with_null_timestamps(UNTIMED), "events")
    positive = elements.filter(lambda event: event["value"] > 0)
    keyed = positive.key_by("key" if declared else lambda event: event["key"])
    tens = keyed.window(TumblingEventTimeWindows.of(10)).side_output_late_data(LATE)
    streams = [
        keyed.process(Emits()),
        keyed.window(EventTimeSessionWindows.with_gap(3)),
        elements.get_side_output(UNTIMED),
    ]
    if declared:
        sums = [tens.aggregate(sum_("value"), count()), streams[1].aggregate(sum_("value"))]
        without_late = keyed.window(TumblingEventTimeWindows.of(10)).aggregate(sum_("value"), count())
        streams = [streams[0], *sums, sums[0].get_side_output(LATE), without_late, streams[2]]
    else:
        reduced = tens.reduce(lambda one, other: {**one, "value": one["value"] + other["value"]})
        streams = [streams[0], reduced, reduced.get_side_output(LATE), streams[2]]
    return plan_of(*streams)


def events(times):
    return st.builds(
        lambda key, at, value, mark: {"key": key, "at": at, "value": value, "mark": mark},
        st.sampled_from("abc"),
        times,
        st.integers(0, 3),
        st.integers(0, 1),
    )


# A split that was idle stays so when it brings only elements without a timestamp, which go past the generator. Where
# they go through its tasks, it does not (decision 57); so the split that may be idle has none here.
TIMES = st.integers(0, 40)
SCRIPTS = st.lists(
    st.lists(
        st.one_of(
            st.tuples(st.just("p"), events(st.one_of(TIMES, st.none()))),
            st.tuples(st.just("q"), events(TIMES)),
            st.just(Idle("q")),
        ),
        max_size=8,
    ),
    max_size=5,
)


def rows(script, declared):
    def shown(entry):
        if isinstance(entry, Idle):
            return entry
        split, event = entry
        return split, (Row(**event) if declared else event)

    return [[shown(entry) for entry in batch] for batch in script]


def by_key(results):
    """The results of each sink by key and micro-batch; Flink has no order of the keys of one window."""

    def key_of(found):
        value, timestamp = found
        return str(timestamp), value["key"] if isinstance(value, dict) else repr(value[0])

    return [[sorted(sink, key=key_of) for sink in batch] for batch in results]


@pytest.mark.parametrize(
    ("generator", "declared"),
    [(Highest, True), (HighestOfBatch, False), (AfterEach, True), (Marks, True), (AfterEach, False)],
)
@given(script=SCRIPTS, every=st.integers(1, 3))
@settings(max_examples=12, deadline=None)
def test_the_results_are_those_of_elements_that_go_through(generator, declared, script, every):
    apart, through = (
        program(supplier, rows(script, declared), declared) for supplier in (generator, hidden(generator))
    )
    assert [goes_past(plan) for plan in (apart, through)] == [True, False]
    expected = by_key(run(through))
    assert by_key(run(apart)) == expected
    assert by_key(run_with_restarts(apart, every)) == expected


def goes_past(plan):
    return any(isinstance(edge.partitioner, FieldsPartitioner) for edge in plan.sources[0].root.all_edges())
