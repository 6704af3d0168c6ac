"""Process functions, with and without keys: elements and times, results, and state that survives a restart."""

import pytest

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeExecutionMode,
    TimeDomain,
)
from eventide.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from eventide.datastream.window import TumblingEventTimeWindows
from eventide.errors import ProgramError
from eventide.local.runner import LocalCheckpoint
from eventide.runtime.metrics import TIMERS_LEFT
from eventide.testing import ScriptedSource, local_environment
from support.twin import BY_SECOND_FIELD, plan_of, run, runner, timed

COUNT = ValueStateDescriptor("count", Types.LONG())
ODD = OutputTag("odd", Types.LONG())


def collected(stream):
    return list(stream.execute_and_collect())


def by_first(element):
    return element[0]


class Counts(KeyedProcessFunction):
    """Numbers the elements of each key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield ctx.get_current_key(), self.count.value()


class SplitsOdd(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield ODD, value
        else:
            yield value


class TestWithoutKeys:
    def test_it_puts_out_any_number_on_any_output(self):
        stream = local_environment().from_collection([1, 2, 3, 4]).process(SplitsOdd())
        (batch,) = run(plan_of(stream, stream.get_side_output(ODD)))
        assert [[value for value, _ in sink] for sink in batch] == [[2, 4], [1, 3]]

    def test_what_comes_out_has_the_time_of_its_element(self):
        class Twice(ProcessFunction):
            def process_element(self, value, ctx):
                return [(ctx.timestamp(), value), value]

        stream = timed(local_environment(), [("a", 5)]).process(Twice())
        ((rows,),) = run(plan_of(stream))
        assert rows == [((5, ("a", 5)), 5), (("a", 5), 5)]

    def test_what_it_gives_is_brought_to_the_declared_type(self):
        class Rows(ProcessFunction):
            def process_element(self, value, ctx):
                yield value

        named = Types.ROW_NAMED(["n"], [Types.LONG()])
        stream = local_environment().from_collection([(1,)]).process(Rows(), named).map(lambda row: row.n)
        assert collected(stream) == [1]

    def test_it_has_no_timers(self):
        class Sets(ProcessFunction):
            def process_element(self, value, ctx):
                ctx.timer_service().register_event_time_timer(1)

        with pytest.raises(ProgramError, match="timers belong to a key, and this stream has none"):
            collected(local_environment().from_collection([1]).process(Sets()))

    def test_it_has_no_state(self):
        class Keeps(ProcessFunction):
            def open(self, runtime_context):
                runtime_context.get_state(COUNT)

            def process_element(self, value, ctx):
                yield value

        with pytest.raises(ProgramError, match="the state 'count' belongs to a key, and 'process' has none"):
            collected(local_environment().from_collection([1]).process(Keeps()))

    def test_after_an_operator_it_sees_the_watermark_before_the_results(self):
        class Watermark(ProcessFunction):
            def process_element(self, value, ctx):
                yield value, ctx.timer_service().current_watermark()

        batches = [[("s", ("a", 1))], [("s", ("a", 12))], [("s", ("a", 25))]]
        source = local_environment().from_source(ScriptedSource(["s"], batches, bounded=False), BY_SECOND_FIELD, "s")
        windows = source.key_by(by_first).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        stream = windows.reduce(lambda a, b: b).process(Watermark())
        rows = [value for batch in run(plan_of(stream)) for value, _ in batch[0]]
        assert rows == [(("a", 1), 0), (("a", 12), 11)]


class TestWithKeys:
    def test_state_belongs_to_the_key_and_survives_micro_batches_and_a_restart(self):
        script = [[("s", ("a", 1)), ("s", ("b", 2))], [("s", ("a", 3))], [("s", ("a", 4))]]
        stream = local_environment().from_source(
            ScriptedSource(["s"], script), WatermarkStrategy.no_watermarks(), "events"
        )
        checkpoint = LocalCheckpoint()
        first = runner(plan_of(stream.key_by(by_first).process(Counts())), checkpoint=checkpoint).batches()
        rows = [*next(first).elements.values(), *next(first).elements.values()]
        again = runner(plan_of(stream.key_by(by_first).process(Counts())), checkpoint=checkpoint)
        rows += [one for batch in again.batches() for one in batch.elements.values()]
        assert sorted(value for part in rows for value, _ in part) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]

    def test_every_kind_of_state_is_there(self):
        class Average(AggregateFunction):
            def create_accumulator(self):
                return (0, 0)

            def add(self, value, accumulator):
                return accumulator[0] + value, accumulator[1] + 1

            def get_result(self, accumulator):
                return accumulator[0] / accumulator[1]

            def merge(self, acc_a, acc_b):
                return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]

        class All(KeyedProcessFunction):
            def open(self, runtime_context):
                long = Types.LONG()
                self.list = runtime_context.get_list_state(ListStateDescriptor("list", long))
                self.map = runtime_context.get_map_state(MapStateDescriptor("map", long, long))
                self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b, long))
                descriptor = AggregatingStateDescriptor("mean", Average(), Types.PICKLED_BYTE_ARRAY())
                self.mean = runtime_context.get_aggregating_state(descriptor)

            def process_element(self, value, ctx):
                number = value[1]
                self.list.add(number)
                self.map[number % 2] = number
                self.sum.add(number)
                self.mean.add(number)
                yield list(self.list), dict(self.map.items()), self.sum.get(), self.mean.get()

        stream = local_environment().from_collection([("a", 1), ("a", 2), ("a", 3)]).key_by(by_first).process(All())
        assert collected(stream)[-1] == ([1, 2, 3], {1: 3, 0: 2}, 6, 2.0)

    def test_state_without_a_key_at_hand_is_a_mistake(self):
        class Hasty(Counts):
            def open(self, runtime_context):
                super().open(runtime_context)
                self.count.update(1)

        with pytest.raises(ProgramError, match="state belongs to a key, and there is no current key here"):
            collected(local_environment().from_collection([("a", 1)]).key_by(by_first).process(Hasty()))

    def test_what_was_put_out_stays_as_it_was_when_state_changes(self):
        class Grows(KeyedProcessFunction):
            def open(self, runtime_context):
                self.all = runtime_context.get_state(ValueStateDescriptor("all", Types.PICKLED_BYTE_ARRAY()))

            def process_element(self, value, ctx):
                known = self.all.value() or {"seen": []}
                known["seen"].append(value[1])
                self.all.update(known)
                yield known

        stream = local_environment().from_collection([("a", 1), ("a", 2)]).key_by(by_first).process(Grows())
        assert collected(stream) == [{"seen": [1]}, {"seen": [1, 2]}]

    def test_timers_of_both_kinds_say_which_they_are(self):
        class Waits(KeyedProcessFunction):
            def process_element(self, value, ctx):
                timers = ctx.timer_service()
                timers.register_event_time_timer(value[1] + 5)
                timers.register_processing_time_timer(timers.current_processing_time() + 10)
                timers.register_processing_time_timer(timers.current_processing_time() + 20)
                timers.delete_processing_time_timer(timers.current_processing_time() + 20)

            def on_timer(self, timestamp, ctx):
                yield ctx.get_current_key(), ctx.time_domain(), timestamp, ctx.timestamp()

        env = local_environment()
        script = ScriptedSource(["s"], [[("s", ("a", 1))], [], [("s", ("b", 9))]], bounded=False)
        stream = env.from_source(script, BY_SECOND_FIELD, "events").key_by(by_first).process(Waits())
        plan = plan_of(stream)
        local = runner(plan)
        now = [100]
        local._clock = lambda: now[0]
        out = []
        for batch in local.batches():
            out += [row for rows in batch.elements.values() for row in rows]
            now[0] += 5
        assert out == [
            (("a", TimeDomain.EVENT_TIME, 6, 6), 6),
            (("a", TimeDomain.PROCESSING_TIME, 110, 110), None),
        ]

    def test_timers_of_processing_time_that_are_left_are_told(self):
        class Waits(KeyedProcessFunction):
            def process_element(self, value, ctx):
                ctx.timer_service().register_processing_time_timer(10**15)

            def on_timer(self, timestamp, ctx):
                yield "never"

        stream = local_environment().from_collection([("a", 1), ("b", 1)]).key_by(by_first).process(Waits())
        local = runner(plan_of(stream))
        assert [row for batch in local.batches() for rows in batch.elements.values() for row in rows] == []
        assert local.metrics()["keyed process"][TIMERS_LEFT] == 2

    def test_the_time_of_a_timer_is_a_whole_number(self):
        class Half(KeyedProcessFunction):
            def process_element(self, value, ctx):
                ctx.timer_service().register_event_time_timer(value[1] / 2)

            def on_timer(self, timestamp, ctx):
                yield timestamp

        def timers(*elements):
            return collected(timed(local_environment(), elements).key_by(by_first).process(Half()))

        assert timers(("a", 4)) == [2]
        assert timers(("a", 5)) == [2]  # as in PyFlink

    def test_an_error_names_the_key_and_the_element(self):
        class Fails(KeyedProcessFunction):
            def process_element(self, value, ctx):
                raise ValueError("no")

        with pytest.raises(Exception, match=r"in operator 'keyed process', while .* \(key 'a', element \('a', 1\)\)"):
            collected(local_environment().from_collection([("a", 1)]).key_by(by_first).process(Fails()))

    def test_a_stream_without_keys_refuses_it_and_the_other_way_round(self):
        stream = local_environment().from_collection([("a", 1)])
        with pytest.raises(ProgramError, match="process on a stream without keys needs a ProcessFunction"):
            stream.process(Counts())
        with pytest.raises(ProgramError, match="process on a keyed stream needs a KeyedProcessFunction"):
            stream.key_by(by_first).process(SplitsOdd())


class _Numbers(MapFunction, FilterFunction, FlatMapFunction):
    """Counts per key; as a filter it lets the second element of each key through."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()

    def filter(self, value):
        return self.map(value)[1] == 2

    def flat_map(self, value):
        return [self.map(value)] * 2


class TestRichFunctions:
    @pytest.fixture
    def keyed(self):
        return local_environment().from_collection([("a", 7), ("a", 8)]).key_by(by_first)

    def test_map_has_state(self, keyed):
        assert collected(keyed.map(_Numbers())) == [("a", 1), ("a", 2)]

    def test_filter_has_state(self, keyed):
        assert collected(keyed.filter(_Numbers())) == [("a", 8)]

    def test_flat_map_has_state(self, keyed):
        assert collected(keyed.flat_map(_Numbers())) == [("a", 1), ("a", 1), ("a", 2), ("a", 2)]

    def test_plain_functions_need_no_shuffle(self, keyed):
        assert plan_of(keyed.map(by_first)).operators == ()

    @pytest.mark.parametrize("late", [0, 10])
    def test_window_functions_have_state_of_the_key(self, late):
        class Firings(ProcessWindowFunction):
            def open(self, runtime_context):
                self.count = runtime_context.get_state(COUNT)

            def process(self, key, context, elements):
                self.count.update((self.count.value() or 0) + 1)
                yield key, context.window().start, self.count.value()
                assert context.global_state().get_state(COUNT).value() == self.count.value()

        stream = timed(local_environment(), [("a", 1), ("b", 3), ("a", 12)]).key_by(by_first)
        windows = stream.window(TumblingEventTimeWindows.of(10)).allowed_lateness(late)
        assert sorted(collected(windows.process(Firings()))) == [("a", 0, 1), ("a", 10, 2), ("b", 0, 1)]


class TestHandlersOfObjects:
    """PyFlink calls the attributes of a function's object, so a handler may be set on the object."""

    def test_timers_call_a_handler_that_the_object_has(self):
        class Sets(KeyedProcessFunction):
            def __init__(self, handler):
                self.on_timer = handler

            def process_element(self, value, ctx):
                ctx.timer_service().register_event_time_timer(5)
                yield value

        stream = local_environment().from_collection([1]).key_by(abs)
        assert collected(stream.process(Sets(lambda timestamp, ctx: [("timer", timestamp)]))) == [1, ("timer", 5)]

    def test_timers_call_a_handler_of_inputs_that_the_object_has(self):
        class Sets(KeyedCoProcessFunction):
            def __init__(self, handler):
                self.on_timer = handler

            def process_element1(self, value, ctx):
                ctx.timer_service().register_event_time_timer(5)

            process_element2 = process_element1

        stream = local_environment().from_collection([1]).key_by(abs)
        both = stream.connect(stream).process(Sets(lambda timestamp, ctx: [("timer", timestamp)]))
        assert collected(both) == [("timer", 5)]


class TestRolling:
    def test_fields_are_named_or_counted_and_elements_stay_what_they_are(self):
        row = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
        rows = local_environment().from_collection([("a", 1), ("a", 2)], row).key_by(lambda e: e.k)
        assert collected(rows.sum("n")) == [Row(k="a", n=1), Row(k="a", n=3)]
        tuples = local_environment().from_collection([("a", 3), ("a", 2)]).key_by(by_first)
        assert collected(tuples.min(1)) == [("a", 3), ("a", 2)]
        assert collected(tuples.max(1)) == [("a", 3), ("a", 3)]
        assert collected(tuples.max_by("f1")) == [("a", 3), ("a", 3)]
        numbers = local_environment().from_collection([1, 3, 5]).key_by(lambda n: n % 2)
        assert collected(numbers.sum()) == [1, 4, 9]

    def test_in_batch_mode_the_last_comes_out_alone(self):
        env = local_environment()
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        stream = env.from_collection([("a", 1), ("b", 5), ("a", 2)]).key_by(by_first)
        assert sorted(collected(stream.sum(1))) == [("a", 3), ("b", 5)]

    @pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
    @pytest.mark.parametrize("name", ["reduced", "mine"])
    @pytest.mark.parametrize("is_reducing", [True, False])
    def test_a_function_has_its_own_state_whatever_its_name(self, mode, name, is_reducing):
        class Counting(ReduceFunction):
            def open(self, runtime_context):
                if is_reducing:
                    descriptor = ReducingStateDescriptor(name, lambda one, other: one + other, Types.LONG())
                    self.calls = runtime_context.get_reducing_state(descriptor)
                    self.count, self.counted = lambda: self.calls.add(1), self.calls.get
                else:
                    self.calls = runtime_context.get_state(ValueStateDescriptor(name, Types.LONG()))
                    self.count, self.counted = lambda: self.calls.update((self.counted() or 0) + 1), self.calls.value

            def reduce(self, value1, value2):
                self.count()
                return value1[0], value1[1] + value2[1], self.counted()

        env = local_environment()
        env.set_runtime_mode(mode)
        found = collected(env.from_collection([("a", 1), ("a", 2), ("a", 4)]).key_by(by_first).reduce(Counting()))
        expected = [("a", 1), ("a", 3, 1), ("a", 7, 2)]
        assert found == (expected[-1:] if mode is RuntimeExecutionMode.BATCH else expected)

    def test_a_field_that_is_not_there_is_named(self):
        stream = local_environment().from_collection([("a", 1), ("a", 2)]).key_by(by_first)
        with pytest.raises(ProgramError, match="an element of type tuple has no field 7"):
            collected(stream.sum(7))
        with pytest.raises(ProgramError, match="sum needs the position or the name of a field, not None"):
            stream.sum(None)
