"""Windows and triggers that follow the clock, one step at a time; what is over leaves no timer and no state."""

import pytest

from eventide.aggregates import count, max_, sum_
from eventide.common import Row, Types
from eventide.common.ms import MAX_MS
from eventide.datastream.functions import ProcessWindowFunction
from eventide.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SlidingProcessingTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import UserFunctionError
from eventide.testing import OperatorHarness, local_environment
from support.micro_batches import MicroBatches
from support.twin import Contents, Values, timed

TENS = TumblingProcessingTimeWindows.of(10)
SESSIONS = ProcessingTimeSessionWindows.with_gap(10)


def keyed(assigner):
    """Elements without timestamps in windows."""
    return local_environment().from_collection([]).key_by(lambda e: e[0]).window(assigner)


def keyed_in_event_time(assigner):
    return timed(local_environment(), []).key_by(lambda e: e[0]).window(assigner)


@pytest.mark.parametrize(("clock", "fired"), [(8, False), (9, True), (10, True)])
def test_a_window_fires_when_the_clock_is_at_its_last_millisecond(clock, fired):
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        harness.set_processing_time(5)
        harness.process(("a", 1))
        harness.set_processing_time(clock)
        results = [(("a", 0, 10, [("a", 1)]), 9)]
        assert harness.outputs_with_timestamps() == (results if fired else [])
        harness.set_processing_time(30)
        assert harness.outputs_with_timestamps() == ([] if fired else results)


def test_the_watermark_fires_nothing_and_nothing_is_late():
    with OperatorHarness(keyed_in_event_time(TENS).allowed_lateness(50).process(Contents())) as harness:
        harness.advance_watermark(1_000)
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(MAX_MS)
        assert (harness.outputs(), harness.late(), harness.timers()) == ([], [], [])
        assert harness.processing_timers() == [(9, "a", TimeWindow(0, 10))]
        harness.set_processing_time(9)
        assert harness.outputs() == [("a", 0, 10, [("a", 1)])]


def test_a_window_takes_the_elements_of_the_micro_batch_at_its_last_millisecond():
    batches = MicroBatches(keyed(TENS).process(Contents()))
    assert batches.run(3, ("a", 1)) == []
    assert batches.next_clock == 9
    assert batches.run(9, ("a", 2)) == [("a", 0, 10, [("a", 1), ("a", 2)])]
    assert batches.next_clock is None
    assert batches.run(10, ("a", 3)) == []
    assert batches.next_clock == 19
    assert batches.run(50, ("a", 4)) == [("a", 10, 20, [("a", 3)])]
    assert batches.run(59) == [("a", 50, 60, [("a", 4)])]
    assert batches.backend.values == {}


def test_windows_fire_in_the_order_of_time_over_all_keys():
    with OperatorHarness(keyed(TENS).process(Contents())) as harness:
        for clock, key in [(5, "b"), (6, "a"), (12, "a"), (13, "c")]:
            harness.set_processing_time(clock)
            harness.process((key, clock))
        assert [(key, start) for key, start, _, _ in harness.outputs()] == [("b", 0), ("a", 0)]
        harness.set_processing_time(19)
        assert [(key, start) for key, start, _, _ in harness.outputs()] == [("a", 10), ("c", 10)]


def test_sliding_windows_show_an_element_several_times():
    with OperatorHarness(keyed(SlidingProcessingTimeWindows.of(10, 5)).process(Contents())) as harness:
        harness.set_processing_time(7)
        harness.process(("a", 1))
        harness.set_processing_time(12)
        harness.process(("a", 2))
        assert harness.outputs() == [("a", 0, 10, [("a", 1)])]
        harness.set_processing_time(100)
        assert harness.outputs() == [("a", 5, 15, [("a", 1), ("a", 2)]), ("a", 10, 20, [("a", 2)])]


def test_sessions_merge_and_end_when_a_key_was_quiet_for_the_gap():
    with OperatorHarness(keyed(SESSIONS).process(Contents())) as harness:
        for clock, key in [(0, "a"), (4, "b"), (8, "a")]:
            harness.set_processing_time(clock)
            harness.process((key, clock))
        assert harness.processing_timers() == [(13, "b", TimeWindow(4, 14)), (17, "a", TimeWindow(0, 18))]
        harness.set_processing_time(17)
        assert harness.outputs() == [("b", 4, 14, [("b", 4)]), ("a", 0, 18, [("a", 0), ("a", 8)])]


@pytest.mark.parametrize(("clock", "sessions"), [(9, 1), (10, 2)])
def test_a_session_that_ended_before_a_micro_batch_takes_none_of_its_elements(clock, sessions):
    batches = MicroBatches(keyed(SESSIONS).process(Contents()))
    results = [*batches.run(0, ("a", 1)), *batches.run(clock, ("a", 2)), *batches.run(50)]
    assert len(results) == sessions
    assert batches.backend.values == {}


def test_sessions_may_take_their_gap_from_the_element():
    dynamic = ProcessingTimeSessionWindows.with_dynamic_gap(lambda e: e[1])
    with OperatorHarness(keyed(dynamic).process(Contents())) as harness:
        harness.process(("a", 20))
        harness.process(("a", 5))
        harness.set_processing_time(18)
        assert harness.outputs() == []
        harness.set_processing_time(19)
        assert harness.outputs() == [("a", 0, 20, [("a", 20), ("a", 5)])]


def test_a_continuous_trigger_shows_a_window_at_every_interval_and_at_its_end():
    with OperatorHarness(
        keyed(TENS).trigger(ContinuousProcessingTimeTrigger.of(4)).reduce(lambda a, b: (a[0], a[1] + b[1]))
    ) as harness:
        harness.set_processing_time(1)
        harness.process(("a", 1))
        harness.set_processing_time(4)
        assert harness.outputs() == [("a", 1)]
        harness.process(("a", 2))
        harness.set_processing_time(8)
        assert harness.outputs() == [("a", 3)]
        harness.set_processing_time(9)
        assert harness.outputs() == [("a", 3)]
        harness.set_processing_time(40)
        assert harness.outputs() == []


def test_a_continuous_trigger_goes_on_when_sessions_merge():
    with OperatorHarness(keyed(SESSIONS).trigger(ContinuousProcessingTimeTrigger.of(6)).process(Contents())) as harness:
        for clock in (1, 5):
            harness.set_processing_time(clock)
            harness.process(("a", clock))
        harness.set_processing_time(14)
        assert harness.outputs() == [("a", 1, 15, [("a", 1), ("a", 5)])] * 3


def test_a_continuous_trigger_shows_a_window_of_event_time_while_it_is_open_and_the_watermark_drops_it():
    windowed = keyed_in_event_time(TumblingEventTimeWindows.of(1_000)).trigger(ContinuousProcessingTimeTrigger.of(10))
    with OperatorHarness(windowed.process(Values())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.set_processing_time(25)
        assert harness.outputs() == [("a", [("a", 1)])] * 2
        harness.advance_watermark(999)
        assert harness.outputs() == []


def test_a_continuous_trigger_shows_a_window_of_the_past_once_in_a_micro_batch():
    windowed = keyed_in_event_time(TumblingEventTimeWindows.of(10)).trigger(ContinuousProcessingTimeTrigger.of(4))
    with OperatorHarness(windowed.process(Values())) as harness:
        harness.set_processing_time(1_000)
        harness.process(("a", 1), timestamp=1)
        harness.process(("a", 2), timestamp=2)
        harness.set_processing_time(1_000)
        assert harness.outputs() == [("a", [("a", 1), ("a", 2)])]
        harness.set_processing_time(2_000)
        assert harness.outputs() == []
        harness.advance_watermark(9)


def test_a_continuous_trigger_of_either_time_ends_with_its_window():
    bounded = local_environment().from_collection([("a", 1)]).key_by(lambda e: e[0])
    for stream in (
        bounded.window(TENS).trigger(ContinuousEventTimeTrigger.of(5)).process(Values()),
        bounded.window(GlobalWindows.create()).trigger(ContinuousProcessingTimeTrigger.of(5)).process(Values()),
    ):
        assert stream._transformation.operation.endless is None


def test_a_purging_trigger_empties_the_window_with_every_firing():
    trigger = PurgingTrigger.of(ContinuousProcessingTimeTrigger.of(4))
    with OperatorHarness(keyed(TENS).trigger(trigger).process(Values())) as harness:
        harness.process(("a", 1))
        harness.set_processing_time(4)
        assert harness.outputs() == [("a", [("a", 1)])]
        harness.process(("a", 2))
        harness.set_processing_time(9)
        assert harness.outputs() == [("a", [("a", 2)])]


def test_a_count_trigger_leaves_out_what_is_in_the_window_when_the_clock_ends_it():
    with OperatorHarness(keyed(TENS).trigger(CountTrigger.of(2)).process(Values())) as harness:
        for value in (1, 2, 3):
            harness.process(("a", value))
        assert harness.outputs() == [("a", [("a", 1), ("a", 2)])]
        harness.set_processing_time(9)
        assert harness.outputs() == []


def test_the_clock_ends_windows_under_a_trigger_of_event_time_too():
    with OperatorHarness(keyed_in_event_time(TENS).trigger(EventTimeTrigger()).process(Values())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", [("a", 1)])]
        harness.process(("a", 2), timestamp=2)
        assert harness.outputs() == [("a", [("a", 1), ("a", 2)])]
        harness.set_processing_time(9)
        assert harness.outputs() == []


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows.of(10), EventTimeSessionWindows.with_gap(9)])
def test_the_watermark_ends_windows_of_event_time_under_a_trigger_of_the_clock(assigner):
    windowed = keyed_in_event_time(assigner).trigger(ProcessingTimeTrigger())
    with OperatorHarness(windowed.process(Values())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.set_processing_time(8)
        assert harness.outputs() == []
        harness.advance_watermark(9)
        assert harness.processing_timers() == []
    with OperatorHarness(windowed.process(Values())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.set_processing_time(9)
        assert harness.outputs() == [("a", [("a", 1)])]
        harness.advance_watermark(9)


class OrAfter(Trigger):
    """Fires at the end of its window of event time, and some milliseconds of the clock after an element."""

    def __init__(self, timeout):
        self.timeout = timeout

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + self.timeout)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_event_time(self, time, window, ctx):
        ctx.delete_processing_time_timer(self.timeout)
        return TriggerResult.FIRE

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.delete_processing_time_timer(self.timeout)


def test_a_trigger_may_wait_for_both_kinds_of_time():
    windowed = keyed_in_event_time(TumblingEventTimeWindows.of(10)).trigger(OrAfter(100))
    with OperatorHarness(windowed.process(Values())) as harness:
        harness.process(("a", 1), timestamp=1)
        harness.process(("b", 2), timestamp=2)
        harness.process(("a", 12), timestamp=12)
        assert len(harness.timers()) == len(harness.processing_timers()) == 3
        harness.advance_watermark(9)
        assert harness.outputs() == [("a", [("a", 1)]), ("b", [("b", 2)])]
        assert harness.processing_timers() == [(100, "a", TimeWindow(10, 20))]
        harness.set_processing_time(100)
        assert harness.outputs() == [("a", [("a", 12)])]
        assert harness.processing_timers() == []
        harness.advance_watermark(19)
        assert harness.outputs() == [("a", [("a", 12)])]


def test_a_timer_set_for_a_time_that_has_passed_fires_when_the_clock_next_calls():
    class AtOnce(OrAfter):
        def on_processing_time(self, time, window, ctx):
            if time < 0:
                ctx.register_processing_time_timer(time + 1)
            return TriggerResult.FIRE

    with OperatorHarness(
        keyed_in_event_time(TumblingEventTimeWindows.of(10)).trigger(AtOnce(-2)).process(Values())
    ) as harness:
        harness.process(("a", 1), timestamp=1)
        assert harness.outputs() == []
        harness.set_processing_time(0)
        assert len(harness.outputs()) == 3
        harness.advance_watermark(9)
        assert len(harness.outputs()) == 1


def test_a_trigger_that_raises_when_the_clock_calls_is_told_with_key_and_window():
    class Broken(OrAfter):
        def on_processing_time(self, time, window, ctx):
            raise ValueError("no time")

    harness = OperatorHarness(keyed(TENS).trigger(Broken(1)).process(Values()))
    harness.process(("a", 1))
    with pytest.raises(
        UserFunctionError, match=r"when a window fired.*key 'a'.*TimeWindow\(start=0, end=10\).*no time"
    ):
        harness.set_processing_time(5)


def test_functions_and_evictors_see_the_time_of_the_micro_batch_while_timers_of_the_past_fire():
    class Times(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield context.window().end, context.current_processing_time(), len(list(elements))

    with OperatorHarness(keyed(TENS).evictor(CountEvictor.of(1)).process(Times())) as harness:
        harness.process(("a", 1))
        harness.process(("a", 2))
        harness.set_processing_time(35)
        assert harness.outputs() == [(10, 35, 1)]


def test_global_windows_have_no_end_on_the_clock():
    harness = OperatorHarness(keyed(GlobalWindows.create()).trigger(CountTrigger.of(2)).process(Values()))
    harness.process(("a", 1))
    harness.set_processing_time(MAX_MS)
    harness.process(("a", 2))
    assert harness.outputs() == [("a", [("a", 1), ("a", 2)])]
    assert harness.processing_timers() == []


@pytest.mark.parametrize("key", [("user",), (lambda row: row.user, Types.STRING())])
def test_aggregates_by_column_name_the_window(key):
    rows = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])
    stream = local_environment().from_collection([], rows).key_by(*key)
    for assigner, window in [(TENS, TimeWindow(0, 10)), (SESSIONS, TimeWindow(0, 14))]:
        totals = stream.window(assigner).aggregate(count(), sum_("amount").alias("total"), max_("amount"))
        name = "user" if key == ("user",) else "key"
        assert totals.get_type().field_names[:3] == [name, "window", "count"]
        with OperatorHarness(totals) as harness:
            harness.process(Row(user="ada", amount=1))
            harness.set_processing_time(4)
            harness.process(Row(user="ada", amount=2))
            harness.set_processing_time(13)
            (result,) = harness.outputs()
            assert (result[name], result["window"], result["count"], result["total"]) == ("ada", window, 2, 3)
