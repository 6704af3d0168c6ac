"""Lists are in the one order inside a micro-batch, on columns as element by element."""

import pytest

from eventide.aggregates import collect_list
from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream.window import (
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run, values

EVENT = Types.ROW_NAMED(["k", "id", "ms"], [Types.LONG(), Types.LONG(), Types.LONG()])
STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])


class OneByOne(EventTimeTrigger):
    """A subclass of a trigger; it may override any method, so every element is shown to it."""


def lists(times_by_split, windows, trigger=None, parallelism=1):
    """The lists of a window of numbered elements, split by split, given the times of those; and the speed."""
    pairs = [(split, ms) for split, times in times_by_split.items() for ms in times]
    batch = [(split, (number, ms)) for number, (split, ms) in enumerate(pairs, 1)]
    env = local_environment().set_parallelism(parallelism)
    stream = env.from_source(ScriptedSource(list(times_by_split), [batch]), STRATEGY, "s")
    windowed = stream.map(lambda e: Row(k=0, id=e[0], ms=e[1]), EVENT).key_by("k").window(windows)
    if trigger is not None:
        windowed = windowed.trigger(trigger)
    plan = plan_of(windowed.aggregate(collect_list("id").alias("ids")), parallelism=parallelism)
    return [row.ids for row in values(run(plan))], plan.operators[-1].speed


@pytest.mark.parametrize("trigger", [None, OneByOne()], ids=["own trigger", "another trigger"])
def test_sliding_windows_list_in_the_order_of_arrival_and_not_of_panes(trigger):
    found, _ = lists({"a": [5, 1, 6]}, SlidingEventTimeWindows(10, 5), trigger)
    assert found == [[2], [1, 2, 3], [1, 3]]


@pytest.mark.parametrize("trigger", [None, OneByOne()], ids=["own trigger", "another trigger"])
def test_sessions_that_merge_list_alike_at_both_speeds(trigger):
    times = {"a": [28, 40, 19], "b": [11, 6, 5]}
    assert lists(times, EventTimeSessionWindows.with_gap(10), trigger)[0] == [[4, 5, 1, 3, 6], [2]]


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    "windows", [TumblingEventTimeWindows(10), SlidingEventTimeWindows(10, 10), CountTumblingWindowAssigner(6)], ids=repr
)
def test_several_splits_take_turns_on_columns(windows, parallelism):
    found, speed = lists({"a": [1, 2, 3], "b": [1, 2, 3]}, windows, parallelism=parallelism)
    assert (found, speed.startswith("columns")) == ([[1, 4, 2, 5, 3, 6]], True)
