"""Session windows and count windows on columns."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventide.aggregates import sum_
from eventide.common import Types
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import CountTumblingWindowAssigner
from eventide.runtime.columnar.keyed_operators import CountOperator, sessions_of
from eventide.runtime.columnar.layout import key_numbers
from eventide.runtime.metrics import Metrics
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.tasks.operator import OperatorContext
from eventide.runtime.window.operation import open_columnar_windows
from eventide.testing import local_environment
from support.twin import plan_of

TIMES = st.one_of(st.integers(0, 60), st.integers(MIN_MS, MIN_MS + 30), st.integers(MAX_MS - 60, MAX_MS - 20))
INTERVALS = st.lists(st.tuples(st.integers(0, 2), TIMES, st.integers(1, 20)), max_size=30)


def merged_one_by_one(intervals):
    """For each interval, the bounds of its session, by merging whatever overlaps or touches until nothing does."""
    sessions = []
    for place, (key, first, length) in enumerate(intervals):
        start, end, members = first, first + length, {place}
        while True:
            touching = [s for s in sessions if s[0] == key and s[1] <= end and s[2] >= start]
            if not touching:
                break
            for session in touching:
                sessions.remove(session)
                start, end, members = min(start, session[1]), max(end, session[2]), members | session[3]
        sessions.append((key, start, end, members))
    return {place: (key, start, end) for key, start, end, members in sessions for place in members}


@given(INTERVALS)
def test_sessions_are_those_that_merging_one_by_one_finds(intervals):
    keys = key_numbers(pa.table({"key": pa.array([key for key, _, _ in intervals], pa.int64())}), ["key"])
    starts = np.array([start for _, start, _ in intervals], np.int64)
    ends = np.array([start + length for _, start, length in intervals], np.int64)
    found = sessions_of(keys, starts, ends)
    named = [intervals[first][0] for first in found.first.tolist()]
    bounds = zip(named, found.starts.tolist(), found.ends.tolist(), strict=True)
    by_number = dict(enumerate(bounds))
    assert {place: by_number[n] for place, n in enumerate(found.number.tolist())} == merged_one_by_one(intervals)


def test_intervals_that_touch_are_one_session_and_those_a_millisecond_apart_are_two():
    found = sessions_of(np.array([0, 0, 0]), np.array([0, 10, 21]), np.array([10, 20, 30]))
    assert found.number.tolist() == [0, 0, 1]


def test_only_keys_whose_intervals_have_no_moment_in_common_are_sorted():
    found = sessions_of(np.array([0, 1, 0, 1, 2]), np.array([0, 30, 50, 35, 7]), np.array([10, 40, 60, 45, 17]))
    assert found.number.tolist() == [2, 0, 3, 0, 1]
    assert found.first.tolist() == [1, 4, 0, 2]
    assert (found.starts.tolist(), found.ends.tolist()) == ([30, 7, 0, 50], [45, 17, 10, 60])


def test_a_key_is_one_number_whatever_its_columns_and_nulls_are():
    table = pa.table({"a": ["x", None, "x", None, "x"], "b": [1, 1, 1, None, 2]})
    numbers = key_numbers(table, ["a", "b"]).tolist()
    assert numbers[0] == numbers[2]
    assert len(set(numbers)) == 4
    assert key_numbers(table, []).tolist() == [0] * 5


ROW = Types.ROW_NAMED(["user", "amount"], [Types.STRING(), Types.LONG()])


def test_no_watermark_cuts_the_elements_of_a_batch():
    rows = local_environment().from_collection([], ROW)
    plan = plan_of(rows.key_by("user").window(CountTumblingWindowAssigner.of(2)).aggregate(sum_("amount")))
    operator = open_columnar_windows(plan.operators[0].operator, MemoryBackend(), OperatorContext(4, Metrics(), 0, 0))
    assert isinstance(operator, CountOperator)
    assert not operator.reacts_to(10)
    assert not operator.reacts_to(2**63 - 1)
