"""Batch mode hands keyed operators their elements in the order of timestamps, and timers that fire set no timers."""

import pytest

from eventide.aggregates import collect_list
from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
    SourceFunction,
)
from eventide.datastream.functions import associative
from eventide.datastream.state import ListStateDescriptor, MapStateDescriptor
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import ProgramError
from eventide.testing import ScriptedSource, local_environment
from support.twin import AllContents, Contents, Values

TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda e, _: e)
AT = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
KEYED_ROW = Types.ROW_NAMED(["key", "at"], [Types.STRING(), Types.LONG()])
TENS = TumblingEventTimeWindows.of(10)
LETTERS = OutputTag("letters")


def batch(parallelism=2):
    return local_environment().set_runtime_mode(RuntimeExecutionMode.BATCH).set_parallelism(parallelism)


def timed(env, times):
    return env.from_collection(times).assign_timestamps_and_watermarks(TIME)


def keyed(env, times):
    return timed(env, times).key_by(lambda _: "a")


def of_splits(env, *splits):
    """Elements of several splits, whose times interleave."""
    names = [str(number) for number in range(len(splits))]
    script = [(name, at) for name, times in zip(names, splits, strict=True) for at in times]
    return env.from_source(ScriptedSource(names, [script]), TIME, "splits")


def rows(env, times):
    stream = env.from_collection([Row(key="a", at=at) for at in times], KEYED_ROW)
    return stream.assign_timestamps_and_watermarks(AT).key_by("key")


def texts(stream):
    return stream.map(str, Types.STRING())


def test_count_windows_fill_up_in_the_order_of_timestamps():
    assert list(keyed(batch(), [9, 1, 5]).count_window(2).process(Values()).execute_and_collect()) == [("a", [1, 5])]


def test_and_so_they_do_on_columns():
    counted = rows(batch(), [9, 1, 5]).count_window(2).aggregate(collect_list("at").alias("ats"))
    assert [row["ats"] for row in counted.execute_and_collect()] == [[1, 5]]


def test_on_columns_elements_without_a_timestamp_come_first_in_their_order():
    without = batch().from_collection([Row(key="a", at=at) for at in (9, 1, 5)], KEYED_ROW).key_by("key")
    counted = without.count_window(3).aggregate(collect_list("at").alias("ats"))
    assert [row["ats"] for row in counted.execute_and_collect()] == [[9, 1, 5]]


@pytest.mark.parametrize("function", [lambda a, b: a + b, associative(lambda a, b: a + b)])
@pytest.mark.parametrize("splits", [[[9, 1, 5]], [[9], [1, 5]], [[9, 5], [1]]])
@pytest.mark.parametrize("assigner", [TENS, SlidingEventTimeWindows.of(20, 20), EventTimeSessionWindows.with_gap(9)])
def test_reduce_functions_see_the_order_of_timestamps(function, splits, assigner):
    stream = of_splits(batch(), *splits).map(str, Types.STRING()).key_by(lambda _: "a")
    assert list(stream.window(assigner).reduce(function).execute_and_collect()) == ["159"]
    rolling = of_splits(batch(), *splits).map(str, Types.STRING()).key_by(lambda _: "a").reduce(function)
    assert list(rolling.execute_and_collect()) == ["159"]


def test_windows_over_all_elements_take_them_in_that_order_too():
    windows = timed(batch(), [9, 1, 5]).window_all(TENS).process(AllContents())
    assert list(windows.execute_and_collect()) == [(0, 10, [1, 5, 9])]


@pytest.mark.parametrize("assigner", [TENS, SlidingEventTimeWindows.of(20, 10), EventTimeSessionWindows.with_gap(9)])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_lists_on_columns_are_in_that_order(assigner, parallelism):
    env = batch(parallelism)
    two = of_splits(env, [9, 3], [7, 1, 5]).map(lambda at: Row(key="a", at=at), KEYED_ROW).key_by("key")
    found = [
        row["ats"] for row in two.window(assigner).aggregate(collect_list("at").alias("ats")).execute_and_collect()
    ]
    assert found
    assert all(ats == [1, 3, 5, 7, 9] for ats in found)


def test_an_evictor_keeps_those_with_the_highest_timestamps():
    windows = keyed(batch(), [9, 1, 5]).window(TENS).evictor(CountEvictor.of(1)).process(Contents())
    assert list(windows.execute_and_collect()) == [("a", 0, 10, [9])]


def test_a_continuous_trigger_fires_at_its_first_multiple_and_at_the_end():
    windowed = keyed(batch(), [3, 1]).window(TumblingEventTimeWindows.of(20))
    fired = windowed.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(5))).process(Contents())
    assert list(fired.execute_and_collect()) == [("a", 0, 20, [1, 3])] * 2


def test_and_so_it_does_on_columns():
    windowed = rows(batch(), [3, 1]).window(TumblingEventTimeWindows.of(20))
    windowed = windowed.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(5)))
    fired = windowed.aggregate(collect_list("at").alias("ats"))
    (operator,) = batch_operators(fired)
    assert operator.speed.startswith("columns")
    assert [row["ats"] for row in fired.execute_and_collect()] == [[1, 3]] * 2


def batch_operators(stream):
    return stream.get_execution_environment().get_plan(stream).operators


def test_the_first_multiple_on_columns_is_that_of_the_element_with_the_lowest_timestamp():
    windowed = rows(batch(), [13, 1]).window(TumblingEventTimeWindows.of(20))
    windowed = windowed.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(20)))
    fired = windowed.aggregate(collect_list("at").alias("ats"))
    assert [row["ats"] for row in fired.execute_and_collect()] == [[1, 13]]


def test_a_continuous_trigger_on_a_global_window_ends_in_batch_mode_alone():
    def windows(env):
        windowed = keyed(env, [3, 1]).window(GlobalWindows.create())
        return windowed.trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(5))).process(Values())

    assert list(windows(batch()).execute_and_collect()) == [("a", [1, 3])] * 2
    with pytest.raises(ProgramError, match="would not end with its input"):
        windows(local_environment()).execute_and_collect()


class EveryTen(Trigger):
    """Sets its next timer whenever one fires: of event time, or by the clock."""

    def __init__(self, *, by_clock=False):
        self._by_clock = by_clock

    def on_element(self, element, timestamp, window, ctx):
        self._register(timestamp, ctx)
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        self._register(time, ctx)
        return TriggerResult.FIRE

    def on_processing_time(self, time, window, ctx):
        self._register(time, ctx)
        return TriggerResult.FIRE

    def _register(self, time, ctx):
        (ctx.register_processing_time_timer if self._by_clock else ctx.register_event_time_timer)(time + 10)

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        pass


@pytest.mark.parametrize("by_clock", [False, True])
@pytest.mark.parametrize("is_guarded", [False, True])
def test_a_trigger_that_sets_its_next_timer_when_one_fires_ends(by_clock, is_guarded):
    windowed = keyed(batch(), [1]).window(GlobalWindows.create()).trigger(EveryTen(by_clock=by_clock))
    fired = windowed.process(Values())
    if is_guarded:
        fired = fired.side_output_dead_letters(LETTERS)
    assert list(fired.execute_and_collect()) == [("a", [1])]


class Again(KeyedProcessFunction):
    """Sets its next timers, of both kinds, whenever one fires."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value)
        ctx.timer_service().register_processing_time_timer(value)
        yield "element", value

    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 1)
        yield ctx.time_domain().name, timestamp


@pytest.mark.parametrize("is_guarded", [False, True])
def test_timers_fire_once_after_all_elements_those_of_event_time_first(is_guarded):
    again = keyed(batch(), [9, 1]).process(Again())
    if is_guarded:
        again = again.side_output_dead_letters(LETTERS)
    kinds = ("element", "EVENT_TIME", "PROCESSING_TIME")
    assert list(again.execute_and_collect()) == [(kind, at) for kind in kinds for at in (1, 9)]


RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Rules(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1)
        yield "element", value, ctx.get_broadcast_state(RULES).get("last")

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)["last"] = value
        yield "rule", value, None

    def on_timer(self, timestamp, ctx):
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        yield "timer", timestamp, None


def test_rules_come_first_in_the_order_of_arrival_and_timers_beside_them_end():
    env = batch()
    found = keyed(env, [9, 1]).connect(timed(env, [8, 2]).broadcast(RULES)).process(Rules()).execute_and_collect()
    assert [entry for entry in found if entry[0] != "rule"] == [
        ("element", 1, 2),
        ("element", 9, 2),
        ("timer", 2, None),
        ("timer", 10, None),
    ]


class Sides(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self._seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element1(self, value, ctx):
        self._seen.add(value)
        ctx.timer_service().register_event_time_timer(100)
        return ()

    def process_element2(self, value, ctx):
        return self.process_element1(-value, ctx)

    def on_timer(self, timestamp, ctx):
        yield list(self._seen)


def test_two_keyed_inputs_come_in_one_order_of_timestamps():
    env = batch()
    both = keyed(env, [9, 1, 5]).connect(keyed(env, [4, 8, 2, 6])).process(Sides())
    assert list(both.execute_and_collect()) == [[1, -2, -4, 5, -6, -8, 9]]


class Here(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


def test_without_keys_the_order_is_that_of_arrival():
    assert list(timed(batch(1), [9, 1, 5]).process(Here()).execute_and_collect()) == [9, 1, 5]


class WithTimers(KeyedProcessFunction):
    """Gives its elements at once, and what is between them by timers."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value + 1)
        yield value

    def on_timer(self, timestamp, ctx):
        yield timestamp


def test_what_elements_gave_and_what_timers_gave_comes_to_the_next_operator_in_one_order():
    first = keyed(batch(), [5, 1, 3]).process(WithTimers(), Types.LONG())
    assert list(
        first.map(str, Types.STRING()).key_by(lambda _: "a").reduce(lambda a, b: a + b).execute_and_collect()
    ) == ["123456"]


def test_windows_by_the_clock_take_elements_in_the_order_of_timestamps():
    windowed = keyed(batch(), [9, 1, 5]).window(TumblingProcessingTimeWindows.of(Time.hours(1)))
    assert [elements for *_, elements in windowed.process(Contents()).execute_and_collect()] == [[1, 5, 9]]


class Joined:
    def __call__(self, first, second):
        return first, second


def test_the_elements_of_a_join_count_in_one_order_of_timestamps():
    env = batch()
    joined = timed(env, [5, 1]).join(timed(env, [9, 4])).where(lambda _: "a").equal_to(lambda _: "a").window(TENS)
    pairs = joined.trigger(CountTrigger.of(2)).apply(Joined()).execute_and_collect()
    assert list(pairs) == [(1, 4), (1, 4), (1, 9), (5, 4), (5, 9)]


def test_explain_says_why_batch_mode_does_not_reduce_before_the_shuffle():
    reduced = keyed(batch(), [1]).window(TENS).reduce(associative(lambda a, b: a + b))
    (operator,) = batch_operators(reduced)
    assert "not reduced before the shuffle, because batch mode reduces them in the order" in operator.speed


def test_lists_of_sliding_windows_run_on_columns_whose_parts_are_in_the_order_of_time_too():
    for env, speed in ((batch(), "columns"), (local_environment(), "element by element")):
        listed = rows(env, [1]).window(SlidingEventTimeWindows.of(20, 10)).aggregate(collect_list("at").alias("ats"))
        (operator,) = batch_operators(listed)
        assert operator.speed.startswith(speed)


class Endless(SourceFunction):
    def run(self, ctx):
        ctx.collect(1)

    def cancel(self):
        pass


def test_a_source_that_never_ends_is_refused_by_name():
    with pytest.raises(ProgramError, match="'clicks' of this program never ends"):
        batch().add_source(Endless(), "clicks").execute_and_collect()
