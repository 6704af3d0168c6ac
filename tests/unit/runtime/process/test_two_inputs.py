"""Connected streams, and streams beside a broadcast one."""

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
)
from eventide.datastream.state import MapStateDescriptor, ValueStateDescriptor
from eventide.errors import ProgramError
from eventide.local.runner import LocalCheckpoint
from eventide.testing import ScriptedSource, local_environment
from support.twin import plan_of, run, runner, timed

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
SUM = ValueStateDescriptor("sum", Types.LONG())
SIDE = OutputTag("side")


def collected(stream):
    return list(stream.execute_and_collect())


def by_first(element):
    return element[0]


def later(elements):
    """Elements that come one micro-batch after those of a collection."""
    return ScriptedSource(["s"], [[], [("s", element) for element in elements]])


_NONE = WatermarkStrategy.no_watermarks()


@pytest.fixture
def env():
    return local_environment()


class Both(KeyedCoProcessFunction):
    """Adds up what both streams have of a key."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(SUM)

    def process_element1(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        yield "first", ctx.get_current_key(), self.sum.value()

    def process_element2(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + 100 * value[1])
        yield SIDE, ("second", ctx.get_current_key(), self.sum.value())


class TestConnected:
    def test_equal_keys_share_their_state(self, env):
        one, other = env.from_collection([("a", 1), ("b", 2)]), env.from_collection([(5, "b"), (7, "a")])
        both = one.connect(other.map(lambda e: e[::-1])).key_by(by_first, by_first).process(Both())
        plan = plan_of(both, both.get_side_output(SIDE), parallelism=3)
        main, side = (sorted(value for batch in run(plan) for value, _ in batch[sink]) for sink in (0, 1))
        assert main == [("first", "a", 1), ("first", "b", 2)]
        assert side == [("second", "a", 701), ("second", "b", 502)]

    def test_an_operator_may_get_a_second_input_at_a_restart(self, env):
        class One(KeyedProcessFunction):
            def open(self, runtime_context):
                self.sum = runtime_context.get_state(SUM)

            def process_element(self, value, ctx):
                self.sum.update((self.sum.value() or 0) + value[1])

        script = ScriptedSource(["s"], [[("s", ("a", 1))], [("s", ("a", 2))]])
        numbers = env.from_source(script, _NONE, "numbers").key_by(by_first)
        checkpoint = LocalCheckpoint()
        next(runner(plan_of(numbers.process(One()).uid("sums")), checkpoint=checkpoint).batches())
        other = env.from_source(later([("a", 7)]), _NONE, "others").key_by(by_first)
        both = runner(plan_of(numbers.connect(other).process(Both()).uid("sums")), checkpoint=checkpoint)
        rows = [value for batch in both.batches() for part in batch.elements.values() for value, _ in part]
        assert rows == [("first", "a", 3)]

    def test_fields_by_name_and_functions_give_the_same_keys(self, env):
        pair = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
        one = env.from_collection([("a", 1), ("b", 2)], pair).key_by("k")
        other = env.from_collection([("b", 3), ("a", 4)], pair).key_by(lambda row: row.k, Types.STRING())

        class Sums(Both):
            def process_element1(self, value, ctx):
                self.sum.update((self.sum.value() or 0) + value.n)

            def process_element2(self, value, ctx):
                yield ctx.get_current_key(), (self.sum.value() or 0) + value.n

        assert sorted(collected(one.connect(other).process(Sums()))) == [("a", 5), ("b", 5)]

    def test_map_leaves_none_out(self, env):
        class Signs(CoMapFunction):
            def map1(self, value):
                return value if value > 1 else None

            def map2(self, value):
                return -value

        stream = env.from_collection([1, 2]).connect(env.from_collection([3])).map(Signs(), Types.LONG())
        assert sorted(collected(stream)) == [-3, 2]

    def test_flat_map_gives_any_number(self, env):
        class Repeats(CoFlatMapFunction):
            def flat_map1(self, value):
                return [value] * value

            def flat_map2(self, value):
                yield -value

        assert sorted(collected(env.from_collection([2]).connect(env.from_collection([3])).flat_map(Repeats()))) == [
            -3,
            2,
            2,
        ]

    def test_without_keys_subtasks_share_the_work(self, env):
        class Passes(CoProcessFunction):
            def process_element1(self, value, ctx):
                yield value, ctx.timestamp()

            def process_element2(self, value, ctx):
                yield value, ctx.timestamp()

        stream = timed(env, [("a", 1)]).connect(timed(env, [("b", 2)])).process(Passes())
        plan = plan_of(stream, parallelism=3)
        assert [operator.parallelism for operator in plan.operators] == [3]
        assert sorted(value for batch in run(plan) for value, _ in batch[0]) == [(("a", 1), 1), (("b", 2), 2)]

    def test_a_function_with_keys_needs_them(self, env):
        one, other = env.from_collection([1]), env.from_collection([2])
        with pytest.raises(ProgramError, match="these streams have no keys; call key_by"):
            one.connect(other).process(Both())
        with pytest.raises(ProgramError, match="map on connected streams needs a CoMapFunction"):
            one.connect(other).map(abs)
        with pytest.raises(ProgramError, match="these were made by two"):
            one.connect(local_environment().from_collection([1]))


class Ruled(KeyedBroadcastProcessFunction):
    """Keeps the sum of each key, and gives the rule with each element; a broadcast "show" shows all sums."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(SUM)

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        yield value[0], ctx.get_broadcast_state(RULES).get(value[0])

    def process_broadcast_element(self, value, ctx):
        name, number = value
        if name == "show":
            shown = []
            ctx.apply_to_keyed_state(SUM, lambda key, state: shown.append((key, state.value())))
            yield from sorted(shown)
        elif number is None:
            ctx.get_broadcast_state(RULES).remove(name)
        else:
            ctx.get_broadcast_state(RULES).put(name, number)


class TestBroadcast:
    def run(self, env, elements, rules, function, descriptor=RULES, parallelism=2):
        keyed = env.from_collection(elements).key_by(by_first)
        stream = keyed.connect(env.from_collection(rules).broadcast(descriptor)).process(function)
        return sorted(value for batch in run(plan_of(stream, parallelism=parallelism)) for value, _ in batch[0])

    def test_each_subtask_shows_the_state_of_its_own_keys(self, env):
        keyed = env.from_collection([(key, 1) for key in "abcdabcd"]).key_by(by_first)
        show = env.from_source(later([("show", 0)]), _NONE, "rules")
        plan = plan_of(keyed.connect(show.broadcast(RULES)).process(Ruled()), parallelism=3)
        batches = [[value for value, _ in batch[0]] for batch in run(plan)]
        assert sorted(value for batch in batches[1:] for value in batch) == [(key, 2) for key in "abcd"]

    def test_without_keys_every_subtask_has_every_rule(self, env):
        class Adds(BroadcastProcessFunction):
            def process_element(self, value, ctx):
                rules = ctx.get_broadcast_state(RULES)
                yield value, sorted(rules.items()), ctx.current_watermark() < 0

            def process_broadcast_element(self, value, ctx):
                ctx.get_broadcast_state(RULES)[value[0]] = value[1]

        elements = env.from_source(later([1, 2, 3]), _NONE, "elements")
        rules = env.from_collection([("x", 1), ("y", 2), ("x", 3)])
        stream = elements.connect(rules.broadcast(RULES)).process(Adds())
        plan = plan_of(stream, parallelism=3)
        rows = [value for batch in run(plan) for value, _ in batch[0]]
        assert sorted(rows) == [(n, [("x", 3), ("y", 2)], True) for n in (1, 2, 3)]

    def test_a_rule_can_be_taken_back(self, env):
        keyed = env.from_source(later([("a", 1), ("b", 1)]), _NONE, "elements").key_by(by_first)
        rules = env.from_collection([("a", 5), ("b", 6), ("a", None)])
        stream = keyed.connect(rules.broadcast(RULES)).process(Ruled())
        assert sorted(collected(stream)) == [("a", None), ("b", 6)]

    def test_the_other_side_reads_only(self, env):
        class Writes(Ruled):
            def process_element(self, value, ctx):
                ctx.get_broadcast_state(RULES).clear()

        with pytest.raises(ProgramError, match="broadcast state is changed by elements of the broadcast stream only"):
            self.run(env, [("a", 1)], [], Writes())

    def test_a_state_that_was_not_declared_is_named(self, env):
        other = MapStateDescriptor("others", Types.STRING(), Types.LONG())
        with pytest.raises(ProgramError, match=r"was not broadcast with MapStateDescriptor\('rules'.* but with others"):
            self.run(env, [("a", 1)], [], Ruled(), other)

    def test_what_does_not_fit_is_refused(self, env):
        stream, rules = env.from_collection([("a", 1)]), env.from_collection([("a", 1)])
        with pytest.raises(ProgramError, match=r"needs a BroadcastProcessFunction here, because .* has no keys"):
            stream.connect(rules.broadcast(RULES)).process(Ruled())
        with pytest.raises(ProgramError, match="broadcast needs descriptors of maps"):
            rules.broadcast(SUM)
        with pytest.raises(ProgramError, match="each broadcast state needs a name of its own"):
            rules.broadcast(RULES, RULES)


@pytest.mark.parametrize("given", [dict, dict.items])
def test_broadcast_state_takes_pairs_as_well_as_a_mapping(env, given):
    class Rules(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield dict(ctx.get_broadcast_state(RULES).items())

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(RULES).put_all(dict_value=given(value))

    rules = env.from_collection([{"a": 1, "b": 2}]).broadcast(RULES)
    assert collected(env.from_collection([0]).connect(rules).process(Rules())) == [{"a": 1, "b": 2}]
