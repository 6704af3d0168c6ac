"""The rules of time at the millisecond before, at, and after."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import CumulatingEventTimeWindows, SlidingEventTimeWindows, TumblingCalendarWindows
from eventide.runtime.columnar.panes import panes_of
from eventide.runtime.eventtime.rules import cleanup_time, has_passed, is_element_late, is_window_late


@pytest.mark.parametrize(("watermark", "late"), [(8, False), (9, True), (10, True)])
def test_a_window_is_late_when_the_watermark_is_at_its_last_millisecond(watermark, late):
    assert is_window_late(last_ms=9, lateness_ms=0, watermark_ms=watermark) is late


@pytest.mark.parametrize(("watermark", "late"), [(13, False), (14, True), (15, True)])
def test_allowed_lateness_moves_that_by_as_much(watermark, late):
    assert is_window_late(last_ms=9, lateness_ms=5, watermark_ms=watermark) is late
    assert is_element_late(timestamp_ms=9, lateness_ms=5, watermark_ms=watermark) is late
    assert (watermark >= cleanup_time(last_ms=9, lateness_ms=5)) is late


@pytest.mark.parametrize(("last", "lateness"), [(MAX_MS, 0), (MAX_MS, 1), (MAX_MS - 1, 1), (9, MAX_MS)])
def test_a_window_without_a_cleanup_time_is_late_at_the_end_of_time_only(last, lateness):
    assert cleanup_time(last, lateness) is None
    assert not is_window_late(last, lateness, MAX_MS - 1)
    assert is_window_late(last, lateness, MAX_MS)


def test_the_last_cleanup_time_is_one_before_the_end_of_time():
    assert cleanup_time(MAX_MS - 1, 0) == MAX_MS - 1


NEAR_ENDS = st.one_of(st.integers(-99, 99), st.integers(MAX_MS - 99, MAX_MS), st.integers(MIN_MS + 100, MIN_MS + 200))


ASSIGNERS = st.one_of(
    st.builds(
        lambda size, slide, offset: SlidingEventTimeWindows(size, slide, offset % slide),
        *(st.integers(1, 30), st.integers(1, 30), st.integers(-30, 30)),
    ),
    st.builds(
        lambda step, steps, offset: CumulatingEventTimeWindows(step * steps, step, offset % (step * steps)),
        *(st.integers(1, 9), st.integers(1, 5), st.integers(-40, 40)),
    ),
    st.builds(TumblingCalendarWindows.of, st.sampled_from(["hour", "month"]), st.just("Europe/Berlin")),
)


@given(ASSIGNERS, NEAR_ENDS.filter(lambda time: time < MAX_MS), st.sampled_from([0, 1, 7, 2**62, MAX_MS]), NEAR_ENDS)
def test_numbers_of_windows_say_what_each_window_would(assigner, timestamp, lateness, watermark):
    panes = panes_of(assigner)
    pane = int(panes.start_of(np.array([timestamp]))[0])
    numbers = panes.windows_at(panes.number_of(pane))
    assert [panes.window(number) for number in numbers] == panes.windows(pane)
    for number, window in zip(numbers, panes.windows(pane), strict=True):
        last_ms = window.max_timestamp()
        cleanup_ms = cleanup_time(last_ms, lateness)
        assert (number <= panes.last_fired(watermark)) == has_passed(last_ms, watermark)
        assert (number <= panes.last_late(lateness, watermark)) == is_window_late(last_ms, lateness, watermark)
        is_cleaned_up = cleanup_ms is not None and has_passed(cleanup_ms, watermark)
        assert (number <= panes.last_cleaned_up(lateness, watermark)) == is_cleaned_up
