"""Sharing between functions: elements that are changed after them, state, and batch execution."""

import pytest

from eventide.common import Time, Types, WatermarkStrategy
from eventide.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
)
from eventide.datastream.functions import ProcessJoinFunction
from eventide.datastream.state import MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.datastream.window import CountTrigger, GlobalWindows, TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run, runner, timed

LONG = Types.LONG()
RULES = MapStateDescriptor("rules", Types.STRING(), LONG)
SIDE = OutputTag("side")


def by_first(element):
    return element[0]


def values(*streams, **options):
    """The results of each of some streams."""
    batches = run(plan_of(*streams, **options))
    return [[value for batch in batches for value, _ in batch[sink]] for sink in range(len(streams))]


def counted(element):
    element["n"] += 1
    return element


class TestCopies:
    def test_of_what_a_chained_function_puts_out(self):
        class Twice(ProcessFunction):
            def process_element(self, value, ctx):
                yield value
                yield SIDE, value
                value["n"] = 10
                yield value

        stream = local_environment().from_collection([{"n": 1}]).process(Twice())
        assert values(stream.map(counted), stream.get_side_output(SIDE)) == [[{"n": 2}, {"n": 11}], [{"n": 1}]]

    def test_of_what_a_window_shows(self):
        class Shows(ProcessWindowFunction):
            def process(self, key, context, elements):
                yield from elements

        keyed = local_environment().from_collection([{"n": 0}, {"n": 0}]).key_by(lambda _: 0)
        shown = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(1)).process(Shows())
        assert values(shown.map(counted)) == [[{"n": 1}, {"n": 1}, {"n": 1}]]

    def test_of_what_a_join_gives_for_several_pairs(self):
        env = local_environment()
        one, other = timed(env, [("a", 1)]), timed(env, [("a", 1), ("a", 2)])
        one = one.map(lambda e: {"n": 0})
        windows = TumblingEventTimeWindows.of(10)
        joined = one.join(other).where(lambda e: "a").equal_to(by_first).window(windows).apply(lambda a, b: a)
        assert values(joined.map(counted)) == [[{"n": 1}, {"n": 1}]]


class TestOneFunctionObject:
    def test_serves_several_operators_each_with_its_own_state(self):
        class Counts(KeyedProcessFunction):
            def open(self, runtime_context):
                self.count = runtime_context.get_state(ValueStateDescriptor("n", LONG))

            def process_element(self, value, ctx):
                self.count.update((self.count.value() or 0) + 1)
                yield value[0], self.count.value()

        env, counts = local_environment(), Counts()
        first, second = (env.from_collection([("a", 1), ("a", 2)]).key_by(by_first).process(counts) for _ in range(2))
        assert values(first, second) == [[("a", 1), ("a", 2)]] * 2

    def test_serves_several_windows_too(self):
        class Firings(ProcessWindowFunction):
            def open(self, runtime_context):
                self.count = runtime_context.get_state(ValueStateDescriptor("n", LONG))

            def process(self, key, context, elements):
                self.count.update((self.count.value() or 0) + 1)
                yield self.count.value()

        env, firings = local_environment(), Firings()
        keyed = timed(env, [("a", 1), ("a", 12)]).key_by(by_first)
        both = (keyed.window(TumblingEventTimeWindows.of(size)).process(firings) for size in (10, 20))
        assert values(*both) == [[1, 2], [1]]


class TestBroadcast:
    def test_what_is_broadcast_comes_before_what_the_same_micro_batch_brings(self):
        class Rules(BroadcastProcessFunction):
            def process_element(self, value, ctx):
                yield value, ctx.get_broadcast_state(RULES).get("r")

            def process_broadcast_element(self, value, ctx):
                ctx.get_broadcast_state(RULES)["r"] = value

        for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
            env = local_environment()
            env.set_runtime_mode(mode)
            stream = env.from_collection([1, 2]).connect(env.from_collection([7]).broadcast(RULES)).process(Rules())
            assert list(stream.execute_and_collect()) == [(1, 7), (2, 7)]

    def test_no_key_is_at_hand_for_what_is_broadcast(self):
        class Confuses(KeyedBroadcastProcessFunction):
            def open(self, runtime_context):
                self.state = runtime_context.get_state(ValueStateDescriptor("n", LONG))

            def process_element(self, value, ctx):
                self.state.update(1)

            def process_broadcast_element(self, value, ctx):
                self.state.update(2)

        env = local_environment()
        rules = ScriptedSource(["s"], [[], [("s", 1)]])
        rules = env.from_source(rules, WatermarkStrategy.no_watermarks(), "rules").broadcast(RULES)
        stream = env.from_collection([("a", 1)]).key_by(by_first).connect(rules).process(Confuses())
        with pytest.raises(ProgramError, match="there is no current key here"):
            list(stream.execute_and_collect())

    def test_state_with_a_time_to_live_is_applied_to_as_well(self):
        descriptor = ValueStateDescriptor("n", LONG)
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())

        class Shows(KeyedBroadcastProcessFunction):
            def open(self, runtime_context):
                self.state = runtime_context.get_state(descriptor)

            def process_element(self, value, ctx):
                self.state.update(value[1])

            def process_broadcast_element(self, value, ctx):
                found = []
                ctx.apply_to_keyed_state(descriptor, lambda key, state: found.append((key, state.value())))
                yield from sorted(found)

        env = local_environment()
        rules = ScriptedSource(["s"], [[], [("s", "show")]])
        rules = env.from_source(rules, WatermarkStrategy.no_watermarks(), "rules").broadcast(RULES)
        keyed = env.from_collection([("a", 1), ("b", 2)]).key_by(by_first)
        assert values(keyed.connect(rules).process(Shows()), parallelism=1) == [[("a", 1), ("b", 2)]]


class TestBatchExecution:
    def test_a_timer_that_is_set_while_timers_fire_is_not_taken(self):
        class Again(KeyedProcessFunction):
            def process_element(self, value, ctx):
                ctx.timer_service().register_event_time_timer(value[1])

            def on_timer(self, timestamp, ctx):
                ctx.timer_service().register_event_time_timer(timestamp + 1)
                ctx.timer_service().register_processing_time_timer(timestamp + 1)
                yield timestamp

        env = local_environment()
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        stream = timed(env, [("a", 5), ("a", 3)]).key_by(by_first).process(Again())
        assert list(stream.execute_and_collect()) == [3, 5]

    def test_the_elements_of_a_key_come_in_the_order_of_their_time(self):
        env = local_environment()
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)

        class Passes(KeyedProcessFunction):
            def process_element(self, value, ctx):
                yield value[1]

        stream = timed(env, [("a", 5), ("a", 3), ("a", 4)]).key_by(by_first).process(Passes())
        assert list(stream.execute_and_collect()) == [3, 4, 5]


def test_state_of_a_join_function_expires():
    descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(10)).build())

    class Seen(ProcessJoinFunction):
        def open(self, runtime_context):
            self.seen = runtime_context.get_state(descriptor)

        def process_element(self, left, right, ctx):
            yield self.seen.value()
            self.seen.update(True)

    env = local_environment()
    script = ScriptedSource(["s"], [[("s", ("a", 1))], [("s", ("a", 2))], [("s", ("a", 3))]])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e[1])
    keyed = env.from_source(script, strategy, "s").key_by(by_first)
    stream = keyed.interval_join(keyed).between(0, 0).process(Seen())
    local = runner(plan_of(stream))
    now, out = [0], []
    local._clock = lambda: now[0]
    for batch in local.batches():
        out.append([value for rows in batch.elements.values() for value, _ in rows])
        now[0] = 5 if len(out) == 1 else 100
    assert [one for one in out if one] == [[None], [True], [None]]


def test_a_clear_is_a_clear_when_a_time_to_live_has_come_or_gone():
    from eventide.runtime.state.backend import MemoryBackend
    from eventide.runtime.state.key_context import KeyContext
    from eventide.runtime.state.keyed import KeyedState

    plain, timed_value = ValueStateDescriptor("v", LONG), ValueStateDescriptor("v", LONG)
    timed_value.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
    keyed = KeyedState(MemoryBackend(), 8)
    for before, after in ((plain, timed_value), (timed_value, plain)):
        for undo in (lambda state: state.clear(), lambda state: (state.update([2]), state.clear())):
            one, other = KeyContext(), KeyContext()
            one.clock_ms = other.clock_ms = 0
            one.key = other.key = "a"
            one.values = other.values = keyed.values
            one.store.get_state(before).update([1])
            state = other.store.get_state(after)
            undo(state)
            assert state.value() is None
            assert not any(keyed.values.values())
            one.store.get_state(before).update([1])
            assert state.value() == [1]
            state.clear()
