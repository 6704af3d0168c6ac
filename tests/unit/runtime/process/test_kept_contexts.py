"""Contexts, timer services and states that a function has kept are right in every later micro-batch."""

from __future__ import annotations

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
)
from eventide.datastream.functions import ProcessWindowFunction
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.testing import ScriptedSource, local_environment

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
COUNT = ValueStateDescriptor("count", Types.LONG())


def events(*batches, env=None, name="s"):
    source = ScriptedSource([name], [[(name, event) for event in batch] for batch in batches])
    return (env or local_environment()).from_source(source, BY_TIME, name)


def keyed(*batches):
    return events(*batches).key_by(lambda event: event[0])


class KeepsTimers(KeyedProcessFunction):
    timers = None

    def process_element(self, value, ctx):
        self.timers = self.timers or ctx.timer_service()
        self.timers.register_event_time_timer(value[1] + 5)
        yield value[1], self.timers.current_watermark()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def test_timers_can_be_set_with_a_service_that_was_kept():
    found = list(keyed([("a", 10)], [("b", 20)], [("a", 30)]).process(KeepsTimers()).execute_and_collect())
    assert [one for one in found if type(one[0]) is str] == [("a", 15), ("b", 25), ("a", 35)]
    assert [one for one in found if type(one[0]) is int] == [(10, -(2**63)), (20, 9), (30, 19)]


class KeepsTimes(ProcessFunction):
    timers = None

    def process_element(self, value, ctx):
        self.timers = self.timers or ctx.timer_service()
        yield self.timers.current_watermark(), ctx.timer_service().current_watermark()


def test_a_function_that_is_chained_may_keep_its_times():
    stream = events([("a", 10)], [("b", 20)], [("a", 30)]).rebalance().process(KeepsTimes())
    guarded = stream.side_output_dead_letters(OutputTag("dead"))
    assert list(guarded.execute_and_collect()) == [(-(2**63), -(2**63)), (9, 9), (19, 19)]


class KeepsBroadcastState(BroadcastProcessFunction):
    seen = limits = None

    def process_element(self, value, ctx):
        self.seen = self.seen or ctx.get_broadcast_state(LIMITS)
        yield value[0], dict(self.seen.items())

    def process_broadcast_element(self, value, ctx):
        self.limits = self.limits or ctx.get_broadcast_state(LIMITS)
        self.limits.put(*value)


def test_broadcast_state_that_was_kept_is_read_and_written_in_every_micro_batch():
    env = local_environment()
    limits = events([("a", 1)], [("b", 2)], [], env=env, name="limits").broadcast(LIMITS)
    stream = events([("x", 1)], [("y", 2)], [("z", 3)], env=env)
    found = stream.connect(limits).process(KeepsBroadcastState()).execute_and_collect()
    assert list(found) == [("x", {"a": 1}), ("y", {"a": 1, "b": 2}), ("z", {"a": 1, "b": 2})]


class KeepsGlobalState(ProcessWindowFunction):
    count = None

    def process(self, key, context, elements):
        self.count = self.count or context.global_state().get_state(COUNT)
        self.count.update((self.count.value() or 0) + len(list(elements)))
        yield key, context.window().start, self.count.value()


def test_state_that_a_window_function_has_kept_is_that_of_each_key():
    batches = [[("a", 1), ("b", 2), ("c", 3)], [("a", 11), ("b", 12)], [("b", 23)]]
    windows = keyed(*batches).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    expected = [("a", 0, 1), ("a", 10, 2), ("b", 0, 1), ("b", 10, 2), ("b", 20, 3), ("c", 0, 1)]
    for found in (windows.process(KeepsGlobalState()), windows.allowed_lateness(5).process(KeepsGlobalState())):
        assert sorted(found.execute_and_collect()) == expected


class ReadsTwice(KeyedProcessFunction):
    def open(self, runtime_context):
        self.values = runtime_context.get_list_state(ListStateDescriptor("values", Types.LONG()))

    def process_element(self, value, ctx):
        self.values.add(value[1])
        values = self.values.get()
        yield sum(values), len(list(values))


def test_the_values_of_a_list_can_be_gone_through_twice():
    assert list(keyed([("a", 1), ("a", 2)]).process(ReadsTwice()).execute_and_collect()) == [(1, 1), (3, 2)]


class TimersOfTwo(CoProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(COUNT)

    def process_element1(self, value, ctx):
        self.last.update(value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 5)

    def process_element2(self, value, ctx):
        pass

    def on_timer(self, timestamp, ctx):
        yield timestamp, self.last.value()


def test_timers_of_a_co_process_function_on_keyed_streams_fire():
    env = local_environment()
    first, second = (events([("a", 1)], env=env, name=name) for name in "xy")
    both = first.connect(second).key_by(lambda event: event[0], lambda event: event[0])
    assert list(both.process(TimersOfTwo()).execute_and_collect()) == [(6, 1)]
