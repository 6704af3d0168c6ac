"""Ways of elements to subtasks: of several partitionings the last counts, and keys of two streams have one type."""

from __future__ import annotations

import pytest

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream.functions import CoGroupFunction, JoinFunction, KeyedCoProcessFunction
from eventide.datastream.state import MapStateDescriptor
from eventide.datastream.window import CountTrigger, TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.testing import local_environment

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])


def total(first, second):
    return first[0], first[1] + second[1]


@pytest.mark.parametrize(
    ("partitioned", "expected"),
    [
        (lambda stream: stream.broadcast(), [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
        (lambda stream: stream.broadcast().broadcast(), [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
        (lambda stream: stream.broadcast().rebalance(), [("a", 1), ("b", 2)]),
        (lambda stream: stream.broadcast().global_(), [("a", 1), ("b", 2)]),
        (lambda stream: stream.broadcast().key_by(lambda event: event[0]).reduce(total), [("a", 1), ("b", 2)]),
        (lambda stream: stream.rebalance().broadcast(), [("a", 1), ("a", 1), ("b", 2), ("b", 2)]),
    ],
)
def test_the_last_partitioning_counts_alone(partitioned, expected):
    stream = local_environment().set_parallelism(2).from_collection([("a", 1), ("b", 2)])
    assert sorted(partitioned(stream).map(lambda event: event).execute_and_collect()) == expected


def test_windows_of_all_elements_have_each_of_a_broadcast_once():
    stream = local_environment().from_collection([("a", 1), ("b", 2)]).assign_timestamps_and_watermarks(BY_TIME)
    windows = stream.broadcast().window_all(TumblingEventTimeWindows.of(Time.seconds(1)))
    assert list(windows.reduce(total).execute_and_collect()) == [("a", 3)]


class Lengths(CoGroupFunction):
    def co_group(self, first, second):
        yield len([*first]), len([*second])


@pytest.mark.parametrize("kind", ["join", "co_group"])
def test_windows_of_two_streams_are_values(kind):
    env = local_environment()
    first, second = (
        env.from_collection(events).assign_timestamps_and_watermarks(BY_TIME)
        for events in ([("a", 1), ("a", 2)], [("a", 3)])
    )
    both = getattr(first, kind)(second).where(lambda event: event[0]).equal_to(lambda event: event[0])
    windows = both.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    others = windows.trigger(CountTrigger.of(1)).allowed_lateness(5)
    gives = (lambda left, right: (left[1], right[1])) if kind == "join" else Lengths()
    early, final = others.apply(gives), windows.apply(gives)
    assert list(final.execute_and_collect()) == ([(1, 3), (2, 3)] if kind == "join" else [(2, 1)])
    assert len(list(early.execute_and_collect())) == 3


class Nothing(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        pass

    process_element2 = process_element1


@pytest.mark.parametrize(
    "meet",
    [
        lambda one, other: one.connect(other).process(Nothing()),
        lambda one, other: one.interval_join(other).between(-1, 1).process(lambda left, right: (left, right)),
    ],
)
def test_keys_of_two_declared_types_are_refused(meet):
    env = local_environment()
    one, other = (
        env.from_collection([(key, 1)]).assign_timestamps_and_watermarks(BY_TIME).key_by(lambda event: event[0], kind)
        for key, kind in (("1", Types.STRING()), (1, Types.LONG()))
    )
    with pytest.raises(ProgramError, match="the first stream has STRING, the second has LONG; declare the same type"):
        meet(one, other)
    meet(one, one)


class Remembers(JoinFunction):
    def open(self, runtime_context):
        self.seen = [
            runtime_context.get_map_state(MapStateDescriptor(name, Types.STRING(), Types.LONG()))
            for name in ("waiting", "versions")
        ]

    def join(self, first, second):
        for state in self.seen:
            state.put("seen", (state.get("seen") or 0) + 1)
        return first[1], *(state.get("seen") for state in self.seen)


def test_state_of_a_joining_function_has_any_name():
    env = local_environment()
    first, second = (
        env.from_collection(events).assign_timestamps_and_watermarks(BY_TIME).key_by(lambda event: event[0])
        for events in ([("a", 1), ("a", 2), ("a", 3)], [("a", 0)])
    )
    found = first.as_of_join(second).apply(Remembers()).execute_and_collect()
    assert list(found) == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
