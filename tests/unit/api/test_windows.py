import pickle
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import CountWindow, GlobalWindow, TimeWindow, TriggerResult
from support.window_contexts import RecordingMergeCallback

small = st.integers(-30, 30)
windows = st.tuples(small, st.integers(1, 10)).map(lambda w: TimeWindow(w[0], w[0] + w[1]))


def merged(candidates):
    """Return the windows that are left when `candidates` have merged."""
    callback = RecordingMergeCallback()
    TimeWindow.merge_windows(candidates, callback)
    gone = {window for group in callback.merged.values() for window in group}
    return (set(candidates) - gone) | set(callback.merged)


def test_the_end_is_outside_and_the_last_millisecond_is_one_before():
    assert TimeWindow(0, 10).max_timestamp() == 9
    assert TimeWindow(MIN_MS, MIN_MS).max_timestamp() == MIN_MS


def test_windows_hash_as_they_compare_and_order_by_start_then_end():
    ordered = [TimeWindow(-1, 5), TimeWindow(0, 5), TimeWindow(0, 6), TimeWindow(1, 2)]
    assert sorted([ordered[i] for i in (2, 0, 3, 1)]) == ordered
    assert len({TimeWindow(0, 5), TimeWindow(0, 5)}) == 1
    assert pickle.loads(pickle.dumps(ordered)) == ordered


@given(windows, windows)
def test_two_windows_intersect_if_a_timestamp_is_in_both_or_they_touch(one, other):
    share = bool(set(range(one.start, one.end)) & set(range(other.start, other.end)))
    touch = one.end == other.start or other.end == one.start
    assert one.intersects(other) == other.intersects(one) == (share or touch)


@pytest.mark.parametrize(("start", "meets"), [(9, True), (10, True), (11, False)])
def test_windows_that_touch_intersect_and_one_millisecond_between_separates(start, meets):
    assert TimeWindow(0, 10).intersects(TimeWindow(start, 20)) is meets


@given(st.lists(windows, min_size=1))
def test_a_cover_holds_all_and_nothing_beyond(candidates):
    cover = reduce(TimeWindow.cover, candidates)
    assert cover == TimeWindow(min(w.start for w in candidates), max(w.end for w in candidates))


@given(st.lists(windows), st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_the_order(candidates, random):
    assert merged(random.sample(candidates, len(candidates))) == merged(candidates)


@given(st.lists(windows), st.lists(windows))
def test_merging_is_associative(earlier, later):
    assert merged([*merged(earlier), *later]) == merged([*earlier, *later])


@given(st.lists(windows))
def test_merging_forgets_nothing_and_leaves_windows_apart(candidates):
    left = sorted(merged(candidates))
    assert all(any(w.start <= c.start and c.end <= w.end for w in left) for c in candidates)
    assert all(one.end < other.start for one, other in pairwise(left))


@given(st.lists(windows))
def test_only_windows_that_change_are_reported(candidates):
    callback = RecordingMergeCallback()
    TimeWindow.merge_windows(candidates, callback)
    assert all(len(set(group)) == len(group) > 1 for group in callback.merged.values())


def test_there_is_one_global_window_and_time_does_not_close_it():
    assert {GlobalWindow.get(), GlobalWindow(), pickle.loads(pickle.dumps(GlobalWindow()))} == {GlobalWindow.get()}
    assert GlobalWindow.get().max_timestamp() == MAX_MS


def test_count_windows_are_known_by_their_number():
    assert CountWindow(1) == CountWindow(1) != CountWindow(2)
    assert CountWindow(1).max_timestamp() == MAX_MS


def test_a_trigger_result_says_what_to_do():
    assert [(r.is_fire(), r.is_purge()) for r in TriggerResult] == [
        (False, False),
        (True, True),
        (True, False),
        (False, True),
    ]
