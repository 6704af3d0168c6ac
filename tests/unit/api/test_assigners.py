import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Duration, Time
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from eventide.errors import DataError, ProgramError
from support.window_contexts import FakeAssignerContext, RecordingMergeCallback

timestamps = st.integers(MIN_MS + 1, MAX_MS - 1) | st.integers(-1000, 1000)


def assign(assigner, timestamp, element="element"):
    return assigner.assign_windows(element, timestamp, None)


class GapOfElement(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element


@pytest.mark.parametrize(("timestamp", "start"), [(-11, -20), (-10, -10), (-1, -10), (0, 0), (9, 0), (10, 10)])
def test_a_tumbling_window_starts_at_a_multiple_of_its_size(timestamp, start):
    assert assign(TumblingEventTimeWindows.of(10), timestamp) == [TimeWindow(start, start + 10)]


@pytest.mark.parametrize(("offset", "start"), [(-3, 7), (0, 0), (3, 3)])
def test_an_offset_shifts_windows_either_way(offset, start):
    assert assign(TumblingEventTimeWindows.of(10, offset), 8) == [TimeWindow(start, start + 10)]


@given(timestamps, st.integers(1, 10**7), st.data())
def test_a_timestamp_is_in_exactly_one_tumbling_window(timestamp, size, data):
    offset = data.draw(st.integers(-size + 1, size - 1))
    (window,) = assign(TumblingEventTimeWindows.of(size, offset), timestamp)
    assert window.start <= timestamp <= window.max_timestamp()
    inside = window.start > MIN_MS and window.end < MAX_MS
    assert not inside or (window.end - window.start == size and (window.start - offset) % size == 0)


@given(timestamps, st.integers(1, 1000), st.integers(1, 30), st.data())
def test_a_timestamp_is_in_size_by_slide_sliding_windows(timestamp, slide, count, data):
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    found = assign(SlidingEventTimeWindows.of(slide * count, slide, offset), timestamp)
    assert len(set(found)) == len(found) == count
    assert found == sorted(found, reverse=True)
    assert all(window.start <= timestamp <= window.max_timestamp() for window in found)


@given(st.integers(-1000, 1000), st.integers(1, 50), st.integers(1, 50))
def test_sliding_windows_are_all_those_that_contain_the_timestamp(timestamp, size, slide):
    every = [TimeWindow(start, start + size) for start in range(-1100 * slide, 1100 * slide, slide)]
    expected = {window for window in every if window.start <= timestamp < window.end}
    assert set(assign(SlidingEventTimeWindows.of(size, slide), timestamp)) == expected


def test_an_element_between_sliding_windows_has_none():
    gappy = SlidingEventTimeWindows.of(5, 10)
    assert [len(assign(gappy, t)) for t in (-1, 0, 4, 5, 9, 10)] == [0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize("timestamp", [MIN_MS + 1, MAX_MS - 1, MAX_MS])
def test_windows_at_the_ends_of_the_range_stay_inside_it(timestamp):
    for assigner in (TumblingEventTimeWindows.of(10), SlidingEventTimeWindows.of(10, 5), EventTimeSessionWindows(10)):
        assert all(MIN_MS <= w.start <= w.end <= MAX_MS for w in assign(assigner, timestamp))


@pytest.mark.parametrize(
    "assigner",
    [TumblingEventTimeWindows.of(1), SlidingEventTimeWindows.of(2, 1), EventTimeSessionWindows.with_gap(1)],
)
def test_an_element_without_timestamp_is_bad_data_for_windows_of_time(assigner):
    with pytest.raises(DataError, match="'element' has no timestamp"):
        assign(assigner, MIN_MS)


def test_a_session_lasts_from_its_element_for_the_gap():
    assert assign(EventTimeSessionWindows.with_gap(Time.seconds(1)), -5) == [TimeWindow(-5, 995)]


@pytest.mark.parametrize(("second", "sessions"), [(9, 1), (10, 1), (11, 2)])
def test_elements_exactly_one_gap_apart_are_one_session(second, sessions):
    assigner = EventTimeSessionWindows.with_gap(10)
    callback = RecordingMergeCallback()
    assigner.merge_windows([*assign(assigner, 0), *assign(assigner, second)], callback)
    assert len(callback.merged) == 2 - sessions


@pytest.mark.parametrize("extractor", [GapOfElement(), lambda element: element])
def test_a_dynamic_gap_comes_from_the_element(extractor):
    assigner = EventTimeSessionWindows.with_dynamic_gap(extractor)
    assert isinstance(assigner, DynamicEventTimeSessionWindows)
    assert assign(assigner, 5, element=20) == [TimeWindow(5, 25)]


@pytest.mark.parametrize("gap", [0, -1, 1.5, True, None])
def test_a_dynamic_gap_that_is_no_positive_integer_names_the_element(gap):
    with pytest.raises(DataError, match=f"element {gap!r}"):
        assign(EventTimeSessionWindows.with_dynamic_gap(GapOfElement()), 5, element=gap)


@pytest.mark.parametrize(
    ("assigner", "trigger", "evictor"),
    [
        (TumblingEventTimeWindows.of(1), EventTimeTrigger(), None),
        (SlidingEventTimeWindows.of(1, 1), EventTimeTrigger(), None),
        (EventTimeSessionWindows.with_gap(1), EventTimeTrigger(), None),
        (EventTimeSessionWindows.with_dynamic_gap(GapOfElement()), EventTimeTrigger(), None),
        (TumblingProcessingTimeWindows.of(1), ProcessingTimeTrigger(), None),
        (SlidingProcessingTimeWindows.of(1, 1), ProcessingTimeTrigger(), None),
        (ProcessingTimeSessionWindows.with_gap(1), ProcessingTimeTrigger(), None),
        (ProcessingTimeSessionWindows.with_dynamic_gap(GapOfElement()), ProcessingTimeTrigger(), None),
        (GlobalWindows.create(), NeverTrigger(), None),
        (CountTumblingWindowAssigner.of(3), PurgingTrigger.of(CountTrigger.of(3)), None),
        (CountSlidingWindowAssigner.of(5, 2), PurgingTrigger.of(CountTrigger.of(5)), None),
    ],
)
def test_every_assigner_brings_its_trigger_and_evictor(assigner, trigger, evictor):
    assert assigner.get_default_trigger() == assigner.get_default_trigger(None) == trigger
    assert assigner.get_default_evictor() == evictor


def test_only_sessions_merge_and_only_windows_of_time_follow_event_time():
    time_windows = [TumblingEventTimeWindows.of(1), SlidingEventTimeWindows.of(1, 1)]
    sessions = [EventTimeSessionWindows.with_gap(1), EventTimeSessionWindows.with_dynamic_gap(GapOfElement())]
    others = [GlobalWindows.create(), CountTumblingWindowAssigner.of(1), CountSlidingWindowAssigner.of(1, 1)]
    assert [a.is_merging for a in (*time_windows, *sessions, *others)] == [False] * 2 + [True] * 2 + [False] * 3
    assert [a.is_event_time() for a in (*time_windows, *sessions, *others)] == [True] * 4 + [False] * 3
    assert [a.has_time_windows for a in (*time_windows, *sessions, *others)] == [True] * 4 + [False] * 3


PAIRS = [
    (TumblingEventTimeWindows.of(10, 3), TumblingProcessingTimeWindows.of(10, 3)),
    (SlidingEventTimeWindows.of(10, 4, 1), SlidingProcessingTimeWindows.of(10, 4, 1)),
    (EventTimeSessionWindows.with_gap(10), ProcessingTimeSessionWindows.with_gap(10)),
    (
        EventTimeSessionWindows.with_dynamic_gap(GapOfElement()),
        ProcessingTimeSessionWindows.with_dynamic_gap(GapOfElement()),
    ),
]


@pytest.mark.parametrize(("by_timestamp", "by_clock"), PAIRS)
@given(clock=st.integers(0, 10**15), timestamp=st.integers(MIN_MS, MAX_MS))
def test_by_the_clock_an_element_is_in_the_windows_of_its_micro_batch_whatever_its_timestamp(
    by_timestamp, by_clock, clock, timestamp
):
    windows = by_clock.assign_windows(7, timestamp, FakeAssignerContext(clock))
    assert windows == assign(by_timestamp, clock, element=7)


@pytest.mark.parametrize(("by_timestamp", "by_clock"), PAIRS)
def test_windows_by_the_clock_are_windows_of_time_but_not_of_event_time(by_timestamp, by_clock):
    assert (by_clock.is_event_time(), by_clock.has_time_windows) == (False, True)
    assert by_clock.is_merging is by_timestamp.is_merging
    assert by_clock != by_timestamp


@pytest.mark.parametrize("gaps", [ProcessingTimeSessionWindows, DynamicProcessingTimeSessionWindows])
def test_sessions_by_the_clock_take_their_gap_from_the_element(gaps):
    assigner = gaps.with_dynamic_gap(lambda element: element)
    assert isinstance(assigner, DynamicProcessingTimeSessionWindows)
    assert assigner.assign_windows(20, MIN_MS, FakeAssignerContext(5)) == [TimeWindow(5, 25)]
    with pytest.raises(DataError, match="element 0"):
        assigner.assign_windows(0, MIN_MS, FakeAssignerContext(5))


@pytest.mark.parametrize("assigner", [GlobalWindows.create(), CountTumblingWindowAssigner.of(2)])
def test_global_and_count_windows_need_no_timestamp(assigner):
    assert assign(assigner, MIN_MS) == [GlobalWindow.get()]


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(Time.hours(1), Duration.of_minutes(-15)),
        SlidingEventTimeWindows.of(Duration.of_seconds(10), Time.seconds(5), 1),
        EventTimeSessionWindows.with_gap(Duration.of_minutes(1)),
        TumblingProcessingTimeWindows.of(Time.hours(1), Duration.of_minutes(-15)),
        SlidingProcessingTimeWindows.of(Duration.of_seconds(10), Time.seconds(5), 1),
        ProcessingTimeSessionWindows.with_gap(Duration.of_minutes(1)),
        CountSlidingWindowAssigner.of(4, 2),
    ],
)
def test_assigners_are_values(assigner):
    assert pickle.loads(pickle.dumps(assigner)) == assigner
    assert hash(pickle.loads(pickle.dumps(assigner))) == hash(assigner)


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda: TumblingEventTimeWindows.of(0), "0"),
        (lambda: TumblingEventTimeWindows.of(Time(-1)), "-1"),
        (lambda: TumblingEventTimeWindows.of("1 hour"), "1 hour"),
        (lambda: TumblingEventTimeWindows.of(10, 10), "10"),
        (lambda: TumblingEventTimeWindows.of(10, -10), "-10"),
        (lambda: SlidingEventTimeWindows.of(0, 1), "0"),
        (lambda: SlidingEventTimeWindows.of(1, 0), "0"),
        (lambda: SlidingEventTimeWindows.of(10, 5, 5), "5"),
        (lambda: EventTimeSessionWindows.with_gap(0), "0"),
        (lambda: TumblingProcessingTimeWindows.of(10, 10), "10"),
        (lambda: SlidingProcessingTimeWindows.of(1, 0), "0"),
        (lambda: ProcessingTimeSessionWindows.with_gap(-3), "-3"),
        (lambda: ProcessingTimeSessionWindows.with_dynamic_gap(17), "17"),
        (lambda: EventTimeSessionWindows.with_dynamic_gap(17), "17"),
        (lambda: CountTumblingWindowAssigner.of(0), "0"),
        (lambda: CountTumblingWindowAssigner.of(2.5), "2.5"),
        (lambda: CountSlidingWindowAssigner.of(-1, 1), "-1"),
        (lambda: CountSlidingWindowAssigner.of(1, 0), "0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_with_their_value(build, value):
    with pytest.raises(ProgramError, match=value):
        build()


@pytest.mark.parametrize("offset", [-9, 9])
def test_an_offset_one_below_the_size_is_accepted(offset):
    assert TumblingEventTimeWindows.of(10, offset).offset == offset
