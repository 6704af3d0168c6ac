"""Panes: every timestamp of a pane is in the same windows as the assigner says, at the ends of the range too."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import SlidingEventTimeWindows
from eventide.runtime.columnar.panes import Panes

NEAR_THE_ENDS = st.one_of(st.integers(MIN_MS + 1, MIN_MS + 60), st.integers(MAX_MS - 60, MAX_MS - 1))
TIMES = st.one_of(st.integers(-100, 100), NEAR_THE_ENDS)


@given(st.integers(1, 30), st.integers(1, 30), st.data(), st.lists(TIMES, min_size=1, max_size=20))
def test_a_pane_is_in_the_windows_of_each_of_its_timestamps(size, slide, data, times):
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    panes = Panes(size, slide, offset)
    assigner = SlidingEventTimeWindows(size, slide, offset)
    for time, start in zip(times, panes.start_of(np.array(times)).tolist(), strict=True):
        assert start <= time
        assert panes.windows(start) == sorted(assigner.assign_windows("element", time, None))


@given(st.integers(1, 40), st.integers(1, 40))
def test_a_slide_has_two_panes_at_most(size, slide):
    times = np.arange(10 * slide, 11 * slide)
    assert len(set(Panes(size, slide).start_of(times).tolist())) <= 2


def test_a_tumbling_window_is_one_pane():
    assert Panes(5, 5).start_of(np.arange(-5, 10)).tolist() == [-5] * 5 + [0] * 5 + [5] * 5


def test_no_timestamps_have_no_panes():
    assert Panes(5, 5).start_of(np.array([], np.int64)).tolist() == []


@given(st.integers(1, 30), st.integers(1, 30), st.data(), st.lists(TIMES, min_size=2, max_size=20))
def test_panes_and_windows_are_numbered_in_the_order_of_time(size, slide, data, times):
    panes = Panes(size, slide, data.draw(st.integers(-slide + 1, slide - 1)))
    starts = sorted(panes.start_of(np.array(times)).tolist())
    numbers = [panes.number_of(start) for start in starts]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(set(starts))
    for number in numbers:
        for window in panes.windows_at(number):
            first = window * panes.per_slide
            assert first <= number < first + panes.per_window
