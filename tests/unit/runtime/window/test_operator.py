"""The window operator, one step at a time; each test ends with no output, timer or state left."""

import pytest

from eventide.common import Types
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream import OutputTag
from eventide.datastream.functions import AggregateFunction, AllWindowFunction, ProcessWindowFunction, WindowFunction
from eventide.datastream.state import ListStateDescriptor, ReducingStateDescriptor, ValueStateDescriptor
from eventide.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    Evictor,
    GlobalWindows,
    MergingWindowAssigner,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeEvictor,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from eventide.errors import DataError, ProgramError
from eventide.testing import OperatorHarness, local_environment
from support.twin import AllContents, Contents, Values, timed

TENS = TumblingEventTimeWindows.of(10)
LATE = OutputTag("late")
AUDIT = OutputTag("audit")


def keyed(assigner):
    return timed(local_environment(), []).key_by(lambda e: e[0]).window(assigner)


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


@pytest.mark.parametrize(
    ("watermark", "fired"), [(8, []), (9, [("a", 0, 10, [("a", 5)])]), (10, [("a", 0, 10, [("a", 5)])])]
)
def test_a_window_fires_when_the_watermark_is_at_its_last_millisecond(watermark, fired):
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        harness.process(("a", 5), timestamp=5)
        harness.advance_watermark(watermark)
        assert harness.outputs() == fired
        harness.advance_watermark(MAX_MS)
        assert len(harness.outputs()) == 1 - len(fired)


def test_results_carry_the_last_millisecond_of_their_window():
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        harness.process(("a", 5), timestamp=5)
        harness.advance_watermark(30)
        assert harness.outputs_with_timestamps() == [(("a", 0, 10, [("a", 5)]), 9)]


@pytest.mark.parametrize(("timestamp", "late"), [(9, True), (10, False)])
def test_an_element_of_a_window_that_the_watermark_has_passed_is_late(timestamp, late):
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        harness.advance_watermark(9)
        harness.process(("a", timestamp), timestamp=timestamp)
        assert harness.late() == ([("a", timestamp)] if late else [])
        harness.advance_watermark(MAX_MS)
        assert len(harness.outputs()) == 1 - late


@pytest.mark.parametrize("tag", [None, LATE])
def test_late_elements_are_counted_or_go_to_the_side_output_and_never_into_results(tag):
    windowed = keyed(TENS)
    if tag is not None:
        windowed.side_output_late_data(tag)
    with OperatorHarness(windowed.process(Contents())) as harness:
        harness.advance_watermark(9)
        harness.process(("a", 3), timestamp=3)
        assert harness.outputs() == []
        assert harness.late() == [("a", 3)]
        harness.advance_watermark(MAX_MS)


def test_an_element_within_the_allowed_lateness_fires_its_window_again():
    with OperatorHarness(keyed(TENS).allowed_lateness(5).side_output_late_data(LATE).process(Contents())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", 0, 10, [("a", 1)])]
        harness.advance_watermark(13)
        harness.process(("a", 3), timestamp=3)
        assert harness.outputs() == [("a", 0, 10, [("a", 1), ("a", 3)])]
        assert harness.late() == []
        assert [time for time, _, _ in harness.timers()] == [14]
        harness.advance_watermark(14)
        harness.process(("a", 4), timestamp=4)
        assert harness.late() == [("a", 4)]


def test_a_window_that_is_opened_within_the_allowed_lateness_fires_at_once():
    with OperatorHarness(keyed(TENS).allowed_lateness(5).process(Contents())) as harness:
        harness.advance_watermark(13)
        harness.process(("a", 3), timestamp=3)
        assert harness.outputs() == [("a", 0, 10, [("a", 3)])]
        harness.advance_watermark(14)


def test_an_element_that_is_late_for_one_of_its_windows_is_kept_in_the_others():
    with OperatorHarness(keyed(SlidingEventTimeWindows.of(10, 5)).process(Contents())) as harness:
        harness.advance_watermark(9)
        harness.process(("a", 7), timestamp=7)
        assert harness.late() == []
        harness.advance_watermark(MAX_MS)
        assert harness.outputs() == [("a", 5, 15, [("a", 7)])]


def test_an_element_between_windows_is_neither_late_nor_an_error():
    with OperatorHarness(keyed(SlidingEventTimeWindows.of(5, 10)).process(Contents())) as harness:
        harness.process(("a", 7), timestamp=7)
        assert harness.late() == []
        harness.advance_watermark(7)
        harness.process(("a", 7), timestamp=7)
        assert harness.late() == [("a", 7)]


def test_windows_fire_in_the_order_of_time_over_all_keys():
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        for key, timestamp in [("a", 25), ("b", 5), ("a", 15), ("c", 1), ("a", -5)]:
            harness.process((key, timestamp), timestamp=timestamp)
        harness.advance_watermark(MAX_MS)
        assert [(key, start) for key, start, _, _ in harness.outputs()] == [
            ("a", -10),
            ("b", 0),
            ("c", 0),
            ("a", 10),
            ("a", 20),
        ]


def test_windows_at_the_ends_of_time_hold_their_elements():
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        harness.process(("a", MIN_MS + 1), timestamp=MIN_MS + 1)
        harness.advance_watermark(MAX_MS - 1)
        assert [elements for *_, elements in harness.outputs()] == [[("a", MIN_MS + 1)]]


def test_an_element_without_a_timestamp_is_refused():
    harness = OperatorHarness(keyed(TENS).process(Contents()))
    with pytest.raises(
        DataError,
        match=r"TumblingEventTimeWindows.process.*key 'a'.*element \('a', 5\).*no timestamp.*assign_timestamps",
    ):
        harness.process(("a", 5))


def test_reduce_and_aggregate_keep_one_value_and_give_it():
    for stream, result in [
        (keyed(TENS).reduce(lambda a, b: (a[0], a[1] + b[1])), ("a", 6)),
        (keyed(TENS).aggregate(Sum()), 6),
    ]:
        with OperatorHarness(stream) as harness:
            for value in (1, 2, 3):
                harness.process(("a", value), timestamp=value)
            ((_, stored),) = harness.state_entries().items()
            assert stored == {"contents": [result]}
            harness.advance_watermark(9)
            assert harness.outputs() == [result]


def test_a_window_function_on_top_gets_the_one_result():
    class Apply(WindowFunction):
        def apply(self, key, window, inputs):
            return [(key, window.end, *inputs)]

    with OperatorHarness(keyed(TENS).aggregate(Sum(), Apply())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.process(("a", 2), timestamp=2)
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", 10, 3)]


def test_an_accumulator_that_is_its_own_result_is_given_as_it_was():
    class Lists(AggregateFunction):
        def create_accumulator(self):
            return []

        def add(self, value, accumulator):
            accumulator.append(value[1])
            return accumulator

        def get_result(self, accumulator):
            return accumulator

        def merge(self, acc_a, acc_b):
            return acc_a + acc_b

    with OperatorHarness(keyed(TENS).allowed_lateness(5).aggregate(Lists())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(9)
        (first,) = harness.outputs()
        harness.process(("a", 2), timestamp=2)
        assert (first, harness.outputs()) == ([1], [[1, 2]])
        harness.advance_watermark(14)


def test_windows_over_the_whole_stream_have_no_key():
    class Apply(AllWindowFunction):
        def apply(self, window, inputs):
            yield window.start, sorted(inputs)

    stream = timed(local_environment(), [])
    for results in (
        stream.window_all(TENS).apply(Apply()),
        stream.key_by(lambda e: e[0]).window_all(TENS).apply(Apply()),
    ):
        with OperatorHarness(results) as harness:
            harness.process(("a", 1), timestamp=1)
            harness.process(("b", 2), timestamp=2)
            harness.advance_watermark(9)
            assert harness.outputs() == [(0, [("a", 1), ("b", 2)])]


def test_window_state_goes_with_its_window_and_global_state_stays():
    class Firings(ProcessWindowFunction):
        HERE = ValueStateDescriptor("firings", Types.INT())
        ALL = ReducingStateDescriptor("firings", lambda a, b: a + b, Types.INT())

        def process(self, key, context, elements):
            here, everywhere = (
                context.window_state().get_state(self.HERE),
                context.global_state().get_reducing_state(self.ALL),
            )
            here.update((here.value() or 0) + 1)
            everywhere.add(1)
            yield context.window().start, here.value(), everywhere.get(), context.current_watermark()

        def clear(self, context):
            context.window_state().get_state(self.HERE).clear()
            if context.window().start == 10:
                context.global_state().get_reducing_state(self.ALL).clear()

    with OperatorHarness(keyed(TENS).allowed_lateness(5).process(Firings())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(9)
        assert harness.outputs() == [(0, 1, 1, 9)]
        harness.process(("a", 2), timestamp=2)
        assert harness.outputs() == [(0, 2, 2, 9)]
        harness.process(("a", 11), timestamp=11)
        harness.advance_watermark(19)
        assert harness.outputs() == [(10, 1, 3, 19)]
        assert set(harness.state_entries()) == {("a", None), ("a", TimeWindow(10, 20))}
        harness.advance_watermark(24)


def test_window_state_that_a_function_forgets_to_clear_is_cleared():
    class Forgetful(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.window_state().get_list_state(ListStateDescriptor("seen", Types.INT())).add(1)
            return []

    with OperatorHarness(keyed(TENS).process(Forgetful())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(9)


def test_window_state_is_refused_where_windows_merge():
    class Uses(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.window_state()

    harness = OperatorHarness(keyed(EventTimeSessionWindows.with_gap(10)).process(Uses()))
    harness.process(("a", 1), timestamp=1)
    with pytest.raises(ProgramError, match=r"EventTimeSessionWindows.process.*key 'a'.*merge.*use global_state"):
        harness.advance_watermark(MAX_MS)


def test_functions_may_give_to_side_outputs_and_nothing_at_all():
    class Audits(ProcessWindowFunction):
        def process(self, key, context, elements):
            if key == "quiet":
                return
            yield AUDIT, key
            yield key, len(list(elements))

    with OperatorHarness(keyed(TENS).process(Audits())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.process(("quiet", 1), timestamp=1)
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", 1)]
        assert harness.side_output(AUDIT) == ["a"]


class EverySecondThenEnd(Trigger):
    """Fires with every second element, and at the end; its count is a state that can merge."""

    COUNT = ReducingStateDescriptor("count", lambda a, b: a + b, Types.INT())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        count = ctx.get_partitioned_state(self.COUNT)
        count.add(1)
        return TriggerResult.FIRE if count.get() % 2 == 0 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.COUNT)
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.COUNT).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


class Careless(EverySecondThenEnd):
    """Forgets to clear its state."""

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


@pytest.mark.parametrize("trigger", [EverySecondThenEnd(), Careless()])
def test_a_trigger_of_the_users_own_fires_and_leaves_nothing(trigger):
    with OperatorHarness(keyed(TENS).trigger(trigger).process(Values())) as harness:
        for value in (1, 2, 3):
            harness.process(("a", value), timestamp=value)
        assert harness.outputs() == [("a", [("a", 1), ("a", 2)])]
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", [("a", 1), ("a", 2), ("a", 3)])]


@pytest.mark.parametrize("trigger", [EverySecondThenEnd(), Careless()])
def test_the_state_of_a_trigger_merges_with_its_windows(trigger):
    sessions = keyed(EventTimeSessionWindows.with_gap(10)).trigger(trigger)
    with OperatorHarness(sessions.process(Contents())) as harness:
        harness.process(("a", 0), timestamp=0)
        harness.process(("a", 20), timestamp=20)
        harness.process(("b", 0), timestamp=0)
        assert harness.outputs() == []
        harness.process(("a", 10), timestamp=10)
        assert harness.outputs() == []
        harness.process(("a", 5), timestamp=5)
        assert harness.outputs() == [("a", 0, 30, [("a", 0), ("a", 20), ("a", 10), ("a", 5)])]
        assert [(time, key) for time, key, _ in harness.timers()] == [(9, "b"), (29, "a")]
        harness.advance_watermark(29)
        assert [(key, start, end) for key, start, end, _ in harness.outputs()] == [("b", 0, 10), ("a", 0, 30)]


def test_sessions_that_touch_become_one_and_a_millisecond_more_keeps_them_apart():
    for second, windows in [(10, [(0, 20)]), (11, [(0, 10), (11, 21)])]:
        with OperatorHarness(keyed(EventTimeSessionWindows.with_gap(10)).process(Contents())) as harness:
            harness.process(("a", 0), timestamp=0)
            harness.process(("a", second), timestamp=second)
            harness.advance_watermark(MAX_MS)
            assert [(start, end) for _, start, end, _ in harness.outputs()] == windows


def test_merged_sessions_merge_accumulators():
    with OperatorHarness(keyed(EventTimeSessionWindows.with_gap(10)).aggregate(Sum())) as harness:
        for timestamp in (0, 20, 40, 10, 30):
            harness.process(("a", timestamp), timestamp=timestamp)
        harness.advance_watermark(MAX_MS)
        assert harness.outputs() == [100]


def test_an_element_below_the_watermark_is_not_late_if_it_joins_an_open_session():
    with OperatorHarness(keyed(EventTimeSessionWindows.with_gap(10)).process(Contents())) as harness:
        harness.process(("a", 10), timestamp=10)
        harness.advance_watermark(15)
        harness.process(("a", 1), timestamp=1)
        assert harness.late() == []
        harness.process(("b", 1), timestamp=1)
        assert harness.late() == [("b", 1)]
        harness.advance_watermark(19)
        assert harness.outputs() == [("a", 1, 20, [("a", 10), ("a", 1)])]


def test_a_purged_session_goes_on_without_what_it_showed():
    with OperatorHarness(
        keyed(EventTimeSessionWindows.with_gap(10)).trigger(PurgingTrigger.of(CountTrigger.of(2))).process(Values())
    ) as harness:
        for timestamp in (0, 1, 5):
            harness.process(("a", timestamp), timestamp=timestamp)
        assert harness.outputs() == [("a", [("a", 0), ("a", 1)])]
        harness.process(("a", 15), timestamp=15)
        assert harness.outputs() == [("a", [("a", 5), ("a", 15)])]
        harness.advance_watermark(MAX_MS)


class Shrinking(MergingWindowAssigner):
    """Breaks its contract: what merges ends before its parts."""

    def assign_windows(self, element, timestamp, context):
        return [TimeWindow(timestamp, timestamp + 10)]

    def merge_windows(self, windows, callback):
        windows = sorted(windows)
        if len(windows) > 1:
            callback.merge(windows, TimeWindow(0, 1))

    def get_default_trigger(self, env=None):
        return EventTimeTrigger()

    def is_event_time(self):
        return True


def test_a_merged_window_that_is_late_is_refused():
    harness = OperatorHarness(keyed(Shrinking()).process(Contents()))
    harness.process(("a", 10), timestamp=10)
    harness.advance_watermark(5)
    with pytest.raises(ProgramError, match=r"Shrinking.*merged.*TimeWindow\(start=0, end=1\).*watermark 5"):
        harness.process(("a", 12), timestamp=12)


class ByParity(WindowAssigner):
    """Windows of 10 ms for odd elements; even ones have none."""

    def assign_windows(self, element, timestamp, context):
        return TENS.assign_windows(element, timestamp, context) if element[1] % 2 else []

    def get_default_trigger(self, env=None):
        return EventTimeTrigger()

    def is_event_time(self):
        return True


def test_an_assigner_of_the_users_own_may_give_no_window():
    with OperatorHarness(keyed(ByParity()).process(Contents())) as harness:
        for value in (1, 2, 3):
            harness.process(("a", value), timestamp=value)
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", 0, 10, [("a", 1), ("a", 3)])]
        assert harness.late() == []


class Nowhere(ByParity):
    """Follows no time and has no windows."""

    def assign_windows(self, element, timestamp, context):
        return []

    def is_event_time(self):
        return False


def test_nothing_is_late_for_an_assigner_that_does_not_follow_event_time():
    with OperatorHarness(keyed(Nowhere()).process(Contents())) as harness:
        harness.advance_watermark(50)
        harness.process(("a", 3), timestamp=3)
        assert harness.late() == []


class DropEvens(Evictor):
    """Drops even elements before, and all but the newest after; gives tuples, which is not asked for but harmless."""

    def evict_before(self, elements, size, window, ctx):
        return tuple(element for element in elements if element.value[1] % 2)

    def evict_after(self, elements, size, window, ctx):
        return tuple(element for element in elements if element.timestamp > ctx.get_current_watermark() - 5)


def test_an_evictor_of_the_users_own_decides_what_is_shown_and_kept():
    with OperatorHarness(keyed(TENS).trigger(CountTrigger.of(3)).evictor(DropEvens()).process(Values())) as harness:
        harness.advance_watermark(6)
        for value in (1, 2, 3, 5):
            harness.process(("a", value), timestamp=value)
        assert harness.outputs() == [("a", [("a", 1), ("a", 3)])]
        for value in (7, 9):
            harness.process(("a", value), timestamp=value)
        assert harness.outputs() == [("a", [("a", 3), ("a", 5), ("a", 7), ("a", 9)])]
        harness.advance_watermark(MAX_MS)


@pytest.mark.parametrize(("after", "firings"), [(False, [[1, 2], [3, 4]]), (True, [[1, 2], [1, 2, 3, 4]])])
def test_an_evictor_applies_before_or_after_the_function(after, firings):
    windowed = keyed(TENS).trigger(CountTrigger.of(2)).evictor(CountEvictor.of(2, after))
    with OperatorHarness(windowed.process(Values())) as harness:
        for value in (1, 2, 3, 4):
            harness.process(("a", value), timestamp=value)
        assert [[v for _, v in elements] for _, elements in harness.outputs()] == firings
        harness.advance_watermark(MAX_MS)


def test_reduce_under_an_evictor_sees_what_was_not_evicted():
    windowed = keyed(TENS).evictor(TimeEvictor.of(3))
    for stream, result in [
        (windowed.reduce(lambda a, b: ("a", a[1] + b[1])), [("a", 15)]),
        (windowed.aggregate(Sum()), [15]),
    ]:
        with OperatorHarness(stream) as harness:
            for value in (1, 7, 8):
                harness.process(("a", value), timestamp=value)
            harness.advance_watermark(9)
            assert harness.outputs() == result


def test_an_evictor_that_leaves_nothing_gives_an_empty_window_or_none():
    windowed = keyed(TENS).evictor(TimeEvictor.of(0))
    for stream, result in [
        (windowed.process(Values()), [("a", [])]),
        (windowed.aggregate(Sum()), [0]),  # of an empty accumulator, as in Flink
        (windowed.reduce(lambda a, b: a), [None]),  # as in Flink: the null of ReduceApplyWindowFunction
    ]:
        with OperatorHarness(stream) as harness:
            harness.process(("a", 1), timestamp=1)
            harness.advance_watermark(9)
            assert harness.outputs() == result


class SumOfMany(Sum):
    """Has a result from 3 on."""

    def get_result(self, accumulator):
        return accumulator if accumulator >= 3 else None


class ListOf(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield list(elements)


class EventTime(EventTimeTrigger):
    """A subclass, which may do anything: its windows take elements one by one."""


def sum_of_many(a, b):
    return ("a", a[1] + b[1]) if a[1] + b[1] >= 3 else None


@pytest.mark.parametrize(
    ("results", "at_next"),
    [
        (lambda windowed: windowed.reduce(sum_of_many), ("a", 1)),  # begins anew
        (lambda windowed: windowed.reduce(sum_of_many, ListOf()), [("a", 1)]),
        (lambda windowed: windowed.aggregate(SumOfMany()), 3),
        (lambda windowed: windowed.aggregate(SumOfMany(), ListOf()), [3]),
    ],
    ids=["reduce", "reduce under a function", "aggregate", "aggregate under a function"],
)
def test_a_window_without_a_result_does_not_fire_unless_it_has_an_evictor(results, at_next):
    late = keyed(TENS).allowed_lateness(100)
    for stream in (
        results(late),
        results(late.trigger(EventTime())),
        results(late).side_output_dead_letters(OutputTag("dead")),
    ):
        with OperatorHarness(stream) as harness:
            harness.process(("a", 1), timestamp=1)
            harness.process(("a", 1), timestamp=2)
            harness.advance_watermark(9)
            assert harness.outputs() == []
            harness.process(("a", 1), timestamp=3)
            assert harness.outputs() == [at_next]
            harness.advance_watermark(MAX_MS)
    with OperatorHarness(results(late.evictor(CountEvictor.of(5)))) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.process(("a", 1), timestamp=2)
        harness.advance_watermark(9)
        assert harness.outputs() == [[None] if isinstance(at_next, list) else None]
        harness.advance_watermark(MAX_MS)


def test_evicted_sessions_merge():
    with OperatorHarness(
        keyed(EventTimeSessionWindows.with_gap(10)).evictor(CountEvictor.of(2)).process(Contents())
    ) as harness:
        for timestamp in (0, 20, 10):
            harness.process(("a", timestamp), timestamp=timestamp)
        harness.advance_watermark(MAX_MS)
        assert harness.outputs() == [("a", 0, 30, [("a", 20), ("a", 10)])]


def test_a_timer_that_a_trigger_sets_while_it_fires_fires_in_the_same_advance():
    class Chain(EverySecondThenEnd):
        def on_element(self, element, timestamp, window, ctx):
            ctx.register_event_time_timer(2)
            return TriggerResult.CONTINUE

        def on_event_time(self, time, window, ctx):
            if time < 6:
                ctx.register_event_time_timer(time + 2)
            return TriggerResult.FIRE

    with OperatorHarness(keyed(TENS).trigger(Chain()).process(Values())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(5)
        assert len(harness.outputs()) == 2
        harness.advance_watermark(20)
        assert len(harness.outputs()) == 2


def count_windows(size, slide=0):
    return local_environment().from_collection([]).key_by(lambda e: e[0]).count_window(size, slide).process(Values())


def test_count_windows_fire_with_every_so_many_elements_of_a_key_and_need_no_time():
    harness = OperatorHarness(count_windows(2))
    for key, value in [("a", 1), ("b", 2), ("a", 3), ("a", 4)]:
        harness.process((key, value))
    assert harness.outputs_with_timestamps() == [(("a", [("a", 1), ("a", 3)]), MAX_MS)]
    harness.advance_watermark(MAX_MS)
    assert harness.outputs() == []


def test_sliding_count_windows_show_the_last_elements():
    harness = OperatorHarness(count_windows(3, 2))
    for value in range(1, 7):
        harness.process(("a", value))
    assert [[v for _, v in elements] for _, elements in harness.outputs()] == [[1, 2], [2, 3, 4], [4, 5, 6]]


@pytest.mark.parametrize(
    ("size", "slide", "fired"),
    [
        (3, 2, [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8]]),
        (2, 1, [[n, n + 1] for n in range(9)]),
        (2, 2, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]),
        (1, 3, [[0], [3], [6], [9]]),
        (11, 1, []),
    ],
)
def test_a_sliding_count_assigner_fires_its_windows_when_they_are_full_as_pyflinks_does(size, slide, fired):
    stream = local_environment().from_collection([]).key_by(lambda e: e[0])
    harness = OperatorHarness(stream.window(CountSlidingWindowAssigner.of(size, slide)).process(Values()))
    for value in range(10):
        harness.process(("a", value))
        harness.process(("b", -value))
    results = harness.outputs()
    assert [[v for _, v in elements] for key, elements in results if key == "a"] == fired
    assert [[-v for _, v in elements] for key, elements in results if key == "b"] == fired
    assert harness.state_entries()["a", None] == {"assigner:count": 10}


def test_global_windows_under_a_purging_trigger_keep_only_the_count():
    stream = local_environment().from_collection([]).key_by(lambda e: e[0]).window(GlobalWindows.create())
    with OperatorHarness(stream.trigger(PurgingTrigger.of(CountTrigger.of(2))).process(Values())) as harness:
        harness.process(("a", 1))
        harness.process(("a", 2))
        assert harness.outputs() == [("a", [("a", 1), ("a", 2)])]


def test_all_windows_keep_the_order_of_arrival():
    with OperatorHarness(timed(local_environment(), []).window_all(TENS).process(AllContents())) as harness:
        for value in (5, 1, 3):
            harness.process(("a", value), timestamp=value)
        harness.advance_watermark(9)
        assert harness.outputs() == [(0, 10, [("a", 5), ("a", 1), ("a", 3)])]


def test_merged_windows_leave_no_timer_behind():
    with OperatorHarness(
        keyed(EventTimeSessionWindows.with_gap(10)).allowed_lateness(5).process(Contents())
    ) as harness:
        for timestamp in (0, 5, 10):
            harness.process(("a", timestamp), timestamp=timestamp)
        assert harness.timers() == [(19, "a", TimeWindow(0, 20)), (24, "a", TimeWindow(0, 20))]
        harness.advance_watermark(24)
        assert harness.outputs() == [("a", 0, 20, [("a", 0), ("a", 5), ("a", 10)])]


def test_a_function_may_change_the_list_that_it_gets():
    class Pops(ProcessWindowFunction):
        def process(self, key, context, elements):
            while elements:
                yield elements.pop()

    with OperatorHarness(keyed(TENS).allowed_lateness(5).process(Pops())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(9)
        harness.process(("a", 2), timestamp=2)
        assert harness.outputs() == [("a", 1), ("a", 2), ("a", 1)]
        harness.advance_watermark(14)
