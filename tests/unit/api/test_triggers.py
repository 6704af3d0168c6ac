import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Duration, Time
from eventide.common.ms import MAX_MS
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    GlobalWindow,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TimeWindow,
    TriggerResult,
)
from eventide.errors import ProgramError
from support.window_contexts import FakeTriggerContext

CONTINUE, FIRE, FIRE_AND_PURGE = TriggerResult.CONTINUE, TriggerResult.FIRE, TriggerResult.FIRE_AND_PURGE
WINDOW = TimeWindow(0, 10)


def assert_clear_leaves_nothing(trigger, context):
    trigger.clear(context.window, context)
    assert (context.timers, context.clock_timers, context.values) == (set(), set(), {})


@pytest.mark.parametrize(("watermark", "result", "timers"), [(8, CONTINUE, [9]), (9, FIRE, []), (10, FIRE, [])])
def test_event_time_fires_an_element_at_once_if_the_window_has_passed(watermark, result, timers):
    context = FakeTriggerContext(WINDOW)
    context.watermark = watermark
    assert context.add(EventTimeTrigger.create(), 5) is result
    assert context.times() == timers
    assert_clear_leaves_nothing(EventTimeTrigger.create(), context)


def test_event_time_fires_when_the_watermark_reaches_the_last_millisecond():
    trigger, context = EventTimeTrigger.create(), FakeTriggerContext(WINDOW)
    context.add(trigger, 5)
    assert context.advance(trigger, 8) == []
    assert context.advance(trigger, 9) == [(9, FIRE)]
    assert context.timers == set()


def test_event_time_ignores_timers_that_are_not_the_windows_end():
    context = FakeTriggerContext(WINDOW)
    assert EventTimeTrigger().on_event_time(8, WINDOW, context) is CONTINUE
    assert EventTimeTrigger().on_processing_time(9, WINDOW, context) is CONTINUE


@pytest.mark.parametrize(("watermark", "timers"), [(18, [19]), (19, []), (20, [])])
def test_event_time_waits_for_a_merged_window_unless_it_has_passed(watermark, timers):
    trigger, context = EventTimeTrigger(), FakeTriggerContext(WINDOW)
    context.add(trigger, 5)
    context.watermark = watermark
    context.merge(trigger, [WINDOW], TimeWindow(0, 20))
    assert context.times() == timers


def test_processing_time_fires_when_the_clock_reaches_the_last_millisecond():
    trigger, context = ProcessingTimeTrigger.create(), FakeTriggerContext(WINDOW)
    context.watermark = 50
    assert context.add(trigger, 5) is CONTINUE
    assert (context.times(), context.clock_times()) == ([], [9])
    assert context.set_clock(trigger, 8) == []
    assert context.set_clock(trigger, 9) == [(9, FIRE)]
    assert trigger.on_event_time(9, WINDOW, context) is CONTINUE
    assert_clear_leaves_nothing(trigger, context)


def test_processing_time_waits_for_a_window_whose_end_is_past_too():
    trigger, context = ProcessingTimeTrigger(), FakeTriggerContext(WINDOW)
    context.clock = 30
    assert context.add(trigger, 5) is CONTINUE
    assert context.clock_times() == [9]
    assert_clear_leaves_nothing(trigger, context)


@pytest.mark.parametrize(("clock", "times"), [(18, [19]), (19, []), (20, [])])
def test_processing_time_waits_for_a_merged_window_unless_the_clock_has_reached_its_end(clock, times):
    trigger, context = ProcessingTimeTrigger(), FakeTriggerContext(WINDOW)
    context.add(trigger, 5)
    context.clock = clock
    assert trigger.can_merge()
    context.merge(trigger, [WINDOW], TimeWindow(0, 20))
    assert context.clock_times() == times


def test_count_fires_with_every_nth_element_and_forgets_the_count():
    trigger, context = CountTrigger.of(3), FakeTriggerContext(WINDOW)
    assert [context.add(trigger, 0) for _ in range(7)] == [CONTINUE, CONTINUE, FIRE] * 2 + [CONTINUE]
    assert_clear_leaves_nothing(trigger, context)


def test_count_does_not_fire_by_time():
    trigger, context = CountTrigger.of(2), FakeTriggerContext(WINDOW)
    context.add(trigger, 0)
    assert context.advance(trigger, MAX_MS) == []
    assert trigger.on_event_time(9, WINDOW, context) is CONTINUE


def test_count_adds_up_when_windows_merge_and_the_next_element_decides():
    trigger, context = CountTrigger.of(3), FakeTriggerContext(WINDOW)
    other = TimeWindow(15, 25)
    context.add(trigger, 0)
    context.window = other
    context.add(trigger, 15)
    context.merge(trigger, [WINDOW, other], TimeWindow(0, 25))
    assert context.add(trigger, 10) is FIRE
    assert context.values == {}


def test_purging_turns_fire_into_fire_and_purge_and_leaves_the_rest():
    trigger, context = PurgingTrigger.of(CountTrigger.of(2)), FakeTriggerContext(WINDOW)
    assert [context.add(trigger, 0) for _ in range(3)] == [CONTINUE, FIRE_AND_PURGE, CONTINUE]
    assert_clear_leaves_nothing(trigger, context)


@pytest.mark.parametrize("inner", [NeverTrigger(), EventTimeTrigger(), ProcessingTimeTrigger(), CountTrigger(2)])
def test_purging_merges_as_its_inner_trigger_does(inner):
    assert PurgingTrigger.of(inner).can_merge() is inner.can_merge()


def test_never_is_never():
    context = FakeTriggerContext(GlobalWindow.get())
    assert context.add(NeverTrigger(), 0) is CONTINUE
    assert context.advance(NeverTrigger(), MAX_MS) == []
    with pytest.raises(ProgramError, match="NeverTrigger"):
        NeverTrigger().on_merge(WINDOW, context)
    assert_clear_leaves_nothing(NeverTrigger(), context)


def test_continuous_fires_at_every_multiple_and_at_the_end():
    trigger, context = ContinuousEventTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    assert context.add(trigger, 1) is CONTINUE
    assert context.times() == [4, 9]
    assert context.advance(trigger, 3) == []
    assert context.advance(trigger, 4) == [(4, FIRE)]
    assert context.times() == [8, 9]
    assert context.advance(trigger, 20) == [(8, FIRE), (9, FIRE)]
    assert_clear_leaves_nothing(trigger, context)


def test_continuous_fires_once_where_a_multiple_is_the_windows_last_millisecond():
    trigger, context = ContinuousEventTimeTrigger.of(3), FakeTriggerContext(WINDOW)
    context.add(trigger, 7)
    assert context.advance(trigger, 20) == [(9, FIRE)]


def test_continuous_counts_below_zero_as_flink_does():
    """Flink's scenario window-009: three firings, because Java's remainder of a negative time is negative."""
    window = TimeWindow(-7001, -1)
    trigger, context = ContinuousEventTimeTrigger.of(1750), FakeTriggerContext(window)
    context.add(trigger, -6720)
    assert context.advance(trigger, -2) == [(-3500, FIRE), (-1750, FIRE), (-2, FIRE)]


def test_continuous_fires_a_late_element_at_once():
    trigger, context = ContinuousEventTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    context.watermark = 9
    assert context.add(trigger, 5) is FIRE
    assert (context.timers, context.values) == (set(), {})


def test_continuous_keeps_one_multiple_however_many_elements_come():
    trigger, context = ContinuousEventTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    for timestamp in (5, 1, 9):
        context.add(trigger, timestamp)
    assert context.times() == [8, 9]


def test_continuous_goes_on_with_the_earliest_multiple_when_windows_merge():
    trigger, context = ContinuousEventTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    other, result = TimeWindow(9, 19), TimeWindow(0, 19)
    context.add(trigger, 1)
    context.window = other
    context.add(trigger, 9)
    assert trigger.can_merge()
    context.merge(trigger, [WINDOW, other], result)
    context.add(trigger, 5)
    assert context.timers == {(result, 4), (result, 18)}
    assert context.advance(trigger, 18) == [(4, FIRE), (8, FIRE), (12, FIRE), (16, FIRE), (18, FIRE)]
    assert_clear_leaves_nothing(trigger, context)


def test_continuous_works_in_the_global_window_whose_end_is_the_end_of_time():
    trigger, context = ContinuousEventTimeTrigger.of(10), FakeTriggerContext(GlobalWindow.get())
    context.add(trigger, MAX_MS - 15)
    assert context.advance(trigger, MAX_MS) == [(MAX_MS - 7, FIRE), (MAX_MS, FIRE)]


@given(st.integers(0, 99), st.integers(1, 40), st.lists(st.integers(0, 120)))
def test_how_often_continuous_fires_does_not_depend_on_the_steps_of_the_watermark(timestamp, interval, steps):
    trigger = ContinuousEventTimeTrigger.of(interval)
    stepwise, at_once = FakeTriggerContext(TimeWindow(0, 100)), FakeTriggerContext(TimeWindow(0, 100))
    stepwise.add(trigger, timestamp)
    at_once.add(trigger, timestamp)
    fired = [result for watermark in [*sorted(steps), 120] for result in stepwise.advance(trigger, watermark)]
    multiples = [(t, FIRE) for t in range(timestamp // interval * interval + interval, 99, interval)]
    assert fired == at_once.advance(trigger, 120) == [*multiples, (99, FIRE)]


def test_continuous_by_the_clock_fires_at_every_multiple_and_at_the_end():
    trigger, context = ContinuousProcessingTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    context.clock = 1
    assert context.add(trigger, 700) is CONTINUE
    assert (context.times(), context.clock_times()) == ([], [4])
    assert context.set_clock(trigger, 3) == []
    assert context.set_clock(trigger, 4) == [(4, FIRE)]
    assert context.clock_times() == [8]
    assert context.set_clock(trigger, 20) == [(8, FIRE), (9, FIRE)]
    assert trigger.on_event_time(8, WINDOW, context) is CONTINUE
    assert_clear_leaves_nothing(trigger, context)


def test_continuous_by_the_clock_keeps_one_multiple_however_many_elements_come():
    trigger, context = ContinuousProcessingTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    for clock in (1, 2, 3):
        context.clock = clock
        context.add(trigger, 0)
    assert context.clock_times() == [4]
    assert trigger.on_processing_time(5, WINDOW, context) is CONTINUE
    assert_clear_leaves_nothing(trigger, context)


def test_continuous_by_the_clock_fires_a_window_of_the_past_once_whenever_elements_come():
    trigger, context = ContinuousProcessingTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    for clock in (1_000, 2_000):
        context.clock = clock
        context.add(trigger, 5)
        context.add(trigger, 6)
        assert context.set_clock(trigger, clock) == [(9, FIRE)]
    assert_clear_leaves_nothing(trigger, context)


def test_continuous_by_the_clock_goes_on_with_the_earliest_multiple_when_windows_merge():
    trigger, context = ContinuousProcessingTimeTrigger.of(4), FakeTriggerContext(WINDOW)
    other, result = TimeWindow(9, 19), TimeWindow(0, 19)
    context.add(trigger, 0)
    context.window, context.clock = other, 3
    context.add(trigger, 0)
    assert trigger.can_merge()
    context.merge(trigger, [WINDOW, other], result)
    assert context.clock_timers == {(result, 4)}
    assert context.set_clock(trigger, 18) == [(4, FIRE), (8, FIRE), (12, FIRE), (16, FIRE), (18, FIRE)]
    assert_clear_leaves_nothing(trigger, context)


def test_continuous_by_the_clock_works_in_the_global_window():
    trigger, context = ContinuousProcessingTimeTrigger.of(10), FakeTriggerContext(GlobalWindow.get())
    context.add(trigger, 0)
    assert context.set_clock(trigger, 25) == [(10, FIRE), (20, FIRE)]
    assert context.clock_times() == [30]
    assert_clear_leaves_nothing(trigger, context)


@pytest.mark.parametrize(
    "trigger",
    [
        EventTimeTrigger.create(),
        ProcessingTimeTrigger.create(),
        ContinuousProcessingTimeTrigger.of(Duration.of_seconds(1)),
        ContinuousEventTimeTrigger.of(Time.seconds(1)),
        ContinuousEventTimeTrigger.of(Duration.of_seconds(1)),
        CountTrigger.of(5),
        PurgingTrigger.of(CountTrigger.of(5)),
        NeverTrigger(),
    ],
)
def test_triggers_are_values(trigger):
    assert pickle.loads(pickle.dumps(trigger)) == trigger


def test_triggers_of_different_kinds_of_time_are_different():
    assert ContinuousEventTimeTrigger.of(1) != ContinuousProcessingTimeTrigger.of(1)
    assert EventTimeTrigger() != ProcessingTimeTrigger()


@pytest.mark.parametrize(
    "build",
    [
        lambda: CountTrigger.of(0),
        lambda: CountTrigger.of(True),
        lambda: ContinuousEventTimeTrigger.of(0),
        lambda: ContinuousProcessingTimeTrigger.of(-1),
        lambda: PurgingTrigger.of("count"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(build):
    with pytest.raises(ProgramError):
        build()
