"""Batch mode, on the twin: all input at once, nothing is late, and what waits for the clock happens at the end."""

import pytest

from eventide.aggregates import count
from eventide.common import Row, Time, Types, Watermark, WatermarkStrategy
from eventide.datastream import RuntimeExecutionMode, SourceFunction
from eventide.datastream.connectors import NumberSequenceSource
from eventide.datastream.window import (
    ContinuousProcessingTimeTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TimestampedValue,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, Contents, Values

TENS = TumblingEventTimeWindows.of(10)
EVENT = Types.ROW_NAMED(["key", "at"], [Types.STRING(), Types.LONG()])
BY_SECOND = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])


def batch():
    return local_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)


class WithWatermarks(ScriptedSource):
    """Says a watermark after its first element that makes its second late."""

    def gives_timestamps(self):
        return True

    def read(self, split, start, end):
        for item in super().read(split, start, end):
            yield TimestampedValue(item, item[1])
            if item[1] == 50:
                yield Watermark(49)


SHUFFLED = [("a", 50), ("a", 3), ("b", 41), ("a", 12), ("b", 7)]


@pytest.mark.parametrize("assigner", [TENS, SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows.with_gap(8)])
def test_nothing_is_late_whatever_order_elements_come_in(assigner):
    found = [
        sorted(
            (key, start, end, sorted(elements))
            for key, start, end, elements in env.from_collection(elements)
            .assign_timestamps_and_watermarks(BY_SECOND)
            .key_by(lambda e: e[0])
            .window(assigner)
            .process(Contents())
            .execute_and_collect()
        )
        for env, elements in ((batch(), SHUFFLED), (local_environment(), sorted(SHUFFLED, key=lambda e: e[1])))
    ]
    assert found[0] == found[1]


def test_a_sources_own_watermarks_are_not_heard():
    source = WithWatermarks(["s"], [[("s", ("a", 50)), ("s", ("a", 3))]])
    stream = batch().from_source(source, WatermarkStrategy.no_watermarks(), "script").key_by(lambda e: e[0])
    assert sorted(stream.window(TENS).process(Contents()).execute_and_collect()) == [
        ("a", 0, 10, [("a", 3)]),
        ("a", 50, 60, [("a", 50)]),
    ]


def test_nor_are_those_of_an_assigner_between_two_windows():
    env = batch()
    rows = env.from_collection(SHUFFLED).assign_timestamps_and_watermarks(BY_SECOND)
    first = rows.key_by(lambda e: e[0]).window(TENS).process(Contents())
    again = first.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda w, _: w[1])
    )
    windows = list(again.window_all(TENS).process(AllContents()).execute_and_collect())
    assert sorted(key for _, _, firsts in windows for key, *_ in firsts) == ["a", "a", "a", "b", "b"]


def test_on_columns_too():
    rows = batch().from_collection([Row(key=key, at=at) for key, at in SHUFFLED], EVENT)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    counted = rows.assign_timestamps_and_watermarks(strategy).key_by("key").window(TENS).aggregate(count().alias("n"))
    assert sum(row["n"] for row in counted.execute_and_collect()) == len(SHUFFLED)


@pytest.mark.parametrize(
    "assigner", [TumblingProcessingTimeWindows.of(Time.hours(1)), ProcessingTimeSessionWindows.with_gap(1_000)]
)
def test_windows_by_the_clock_fire_at_the_end(assigner):
    stream = batch().from_collection(SHUFFLED).key_by(lambda e: e[0])
    assert sorted(
        (key, len(elements))
        for key, _, _, elements in stream.window(assigner).process(Contents()).execute_and_collect()
    ) == [("a", 3), ("b", 2)]


@pytest.mark.parametrize(
    ("assigner", "function"),
    [(GlobalWindows.create(), Values()), (TumblingProcessingTimeWindows.of(Time.hours(2)), Contents())],
)
def test_a_continuous_trigger_by_the_clock_ends_and_does_not_fire_for_every_interval(assigner, function):
    """A timer that is set while those of the end fire never fires, as in Flink's batch execution."""
    windowed = batch().from_collection(SHUFFLED).key_by(lambda e: e[0]).window(assigner)
    results = list(
        windowed.trigger(ContinuousProcessingTimeTrigger.of(Time.seconds(1))).process(function).execute_and_collect()
    )
    assert {(result[0], len(result[-1])) for result in results} == {("a", 3), ("b", 2)}
    assert len(results) <= 4


def test_all_of_several_splits_is_one_micro_batch():
    numbers = batch().from_source(NumberSequenceSource(1, 10, splits=3), WatermarkStrategy.no_watermarks(), "numbers")
    assert sorted(numbers.execute_and_collect()) == list(range(1, 11))


class Endless(SourceFunction):
    def run(self, ctx):
        ctx.collect(1)

    def cancel(self):
        pass


def test_automatic_is_streaming_where_a_source_is_not_bounded():
    env = local_environment().set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    assert list(env.add_source(Endless()).execute_and_collect()) == [1]
