"""Panes: every timestamp of a pane is in the same windows as the assigner says, at the ends of the range too."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import (
    CumulatingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
)
from eventide.runtime.columnar.panes import RegularPanes, WholeWindows, panes_of

DAY_MS = 86_400_000
SIZES = st.integers(1, 30)
OFFSETS = st.integers(-40, 40)
ASSIGNERS = st.one_of(
    st.builds(lambda size, offset: TumblingEventTimeWindows(size, offset % size), SIZES, OFFSETS),
    st.builds(lambda size, slide, offset: SlidingEventTimeWindows(size, slide, offset % slide), SIZES, SIZES, OFFSETS),
    st.builds(
        lambda step, steps, offset: CumulatingEventTimeWindows(step * steps, step, offset % (step * steps)),
        *(st.integers(1, 9), st.integers(1, 5), OFFSETS),
    ),
    st.builds(
        TumblingCalendarWindows.of,
        st.sampled_from(["hour", "day", "week", "month", "quarter", "year"]),
        st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns", "Asia/Kathmandu"]),
    ),
)
NEAR_THE_ENDS = st.one_of(st.integers(MIN_MS + 1, MIN_MS + 60), st.integers(MAX_MS - 60, MAX_MS - 1))
TIMES = st.one_of(
    st.integers(-100, 100), NEAR_THE_ENDS, st.integers(0, 20_000).map(lambda day: day * DAY_MS), st.integers(0, 2**42)
)


@given(ASSIGNERS, st.lists(TIMES, min_size=1, max_size=20))
def test_a_pane_is_in_the_windows_of_each_of_its_timestamps(assigner, times):
    panes = panes_of(assigner)
    starts = panes.start_of(np.array(times))
    for time, start in zip(times, starts.tolist(), strict=True):
        assert start <= time
        assert panes.windows(start) == sorted(assigner.assign_windows("element", time, None))
    for time, start, last in zip(times, starts.tolist(), panes.last_of(starts).tolist(), strict=True):
        if start > MIN_MS + 60 and time < MAX_MS - 60:
            assert time <= last
            assert panes.start_of(np.array([last])).tolist() == [start]


@given(st.integers(1, 40), st.integers(1, 40))
def test_a_slide_has_two_panes_at_most(size, slide):
    times = np.arange(10 * slide, 11 * slide)
    assert len(set(RegularPanes(size, slide).start_of(times).tolist())) <= 2


def test_a_tumbling_window_is_one_pane():
    assert RegularPanes(5, 5).start_of(np.arange(-5, 10)).tolist() == [-5] * 5 + [0] * 5 + [5] * 5


def test_no_timestamps_have_no_panes():
    assert RegularPanes(5, 5).start_of(np.array([], np.int64)).tolist() == []


@given(ASSIGNERS, st.lists(TIMES, min_size=2, max_size=20))
def test_panes_and_windows_are_numbered_in_the_order_of_time(assigner, times):
    panes = panes_of(assigner)
    starts = sorted(panes.start_of(np.array(times)).tolist())
    numbers = [panes.number_of(start) for start in starts]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(set(starts))
    for number in numbers:
        for window in panes.windows_at(number):
            assert number in panes.panes_in(window)
            assert len(panes.panes_in(window)) <= panes.per_window


@given(ASSIGNERS, st.lists(TIMES, min_size=1, max_size=20), TIMES, st.integers(0, 50))
def test_windows_with_some_panes_are_those_that_each_of_them_is_in(assigner, times, watermark, count):
    for panes in (panes_of(assigner), WholeWindows(panes_of(assigner))):
        numbers = sorted({panes.number_of(start) for start in panes.start_of(np.array(times)).tolist()})
        first = panes.last_fired(watermark) + 1
        windows = sorted({window for number in numbers for window in panes.windows_at(number)})
        assert panes.windows_with(numbers, first, first + count) == [w for w in windows if first <= w <= first + count]
        assert panes.count_windows_with(numbers, first) == sum(1 for window in windows if window >= first)


@given(ASSIGNERS, TIMES, TIMES)
def test_a_time_is_late_when_its_last_window_is(assigner, time, watermark):
    panes = panes_of(assigner)
    late = panes.last_late(0, watermark)
    windows = panes.windows_at(panes.number_of(int(panes.start_of(np.array([time]))[0])))
    if windows:
        assert (time <= panes.last_time_of(late)) == (windows.stop - 1 <= late)
