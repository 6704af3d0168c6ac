"""NaN, times outside the range, results that are none: each has a meaning, or a sentence that says what is wrong."""

import math

import numpy as np
import pytest

from eventide.common import Time, Types
from eventide.datastream import KeyedProcessFunction
from eventide.datastream.functions import ProcessWindowFunction
from eventide.datastream.window import DeltaEvictor, TimestampedValue, TumblingEventTimeWindows
from eventide.errors import EventideError, ProgramError, UserFunctionError
from eventide.testing import local_environment
from support.twin import Values, plan_of, run, timed, values

NAN = float("nan")


@pytest.mark.parametrize("numbers", [[NAN, 5.0, 3.0], [5.0, NAN, 3.0], [5.0, 3.0, NAN]])
def test_nan_is_higher_than_any_number(numbers):
    def last(roll):
        keyed = local_environment().from_collection([(number,) for number in numbers]).key_by(lambda _: 0)
        return list(roll(keyed).execute_and_collect())[-1][0]

    assert last(lambda keyed: keyed.min(0)) == last(lambda keyed: keyed.min_by(0)) == 3.0
    assert math.isnan(last(lambda keyed: keyed.max(0)))
    assert math.isnan(last(lambda keyed: keyed.max_by(0)))


@pytest.mark.parametrize(("first", "place"), [(True, 0), (False, 1)])
def test_all_nan_are_equal_to_each_other(first, place):
    keyed = local_environment().from_collection([(NAN, 0), (NAN, 1)]).key_by(lambda _: 0)
    assert [n for _, n in keyed.max_by(0, first=first).execute_and_collect()][-1] == place


def test_a_distance_of_nan_does_not_reach_the_threshold_of_a_delta_evictor():
    evictor = DeltaEvictor.of(3, lambda element, last: abs(element - last))
    elements = [TimestampedValue(value) for value in (NAN, 1.0, 8.0, 6.0)]
    assert [kept.value for kept in evictor.evict_before(elements, 4, None, None)][1:] == [8.0, 6.0]
    assert len(evictor.evict_before([*elements, TimestampedValue(NAN)], 5, None, None)) == 5


class SetsTimer(KeyedProcessFunction):
    def __init__(self, time_ms):
        self.time_ms = time_ms

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(self.time_ms)

    def on_timer(self, timestamp, ctx):
        yield "fired", timestamp


def fired(time_ms):
    """The results and timestamps of a timer that is set for a time, after event-time windows."""
    stream = timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0]).process(SetsTimer(time_ms))
    windows = TumblingEventTimeWindows.of(Time.milliseconds(10))
    windowed = stream.key_by(lambda e: e[0]).window(windows).process(Values())
    return values(run(plan_of(windowed)))


def test_a_timer_before_the_beginning_of_time_is_refused_where_it_is_set():
    with pytest.raises(ProgramError, match=r"element \('a', 1\).* a timer is set for -9223372036854775809 ms"):
        fired(-(2**63) - 1)


def test_a_timer_after_the_end_of_time_fires_at_the_end():
    assert fired(2**70) == [("fired", [("fired", 2**63 - 1)])]


class Zero(ProcessWindowFunction):
    def process(self, key, context, elements):
        return 0


@pytest.mark.parametrize("returned", [0, False, 0.0])
def test_a_flat_map_that_returns_no_list_is_told_so(returned):
    stream = local_environment().from_collection([1]).flat_map(lambda _: returned)
    with pytest.raises(EventideError, match="it has to return a list of its results, or to yield them"):
        list(stream.execute_and_collect())


def test_a_window_function_that_returns_no_list_is_told_so():
    windows = TumblingEventTimeWindows.of(Time.milliseconds(5))
    stream = timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0]).window(windows).process(Zero())
    with pytest.raises(EventideError, match="the function returned 0; it has to return a list"):
        list(stream.execute_and_collect())


class FalseList(list):
    def __bool__(self):
        return False


class Returns(ProcessWindowFunction):
    def __init__(self, returned):
        self.returned = returned

    def process(self, key, context, elements):
        return self.returned


@pytest.mark.parametrize("returned", [np.array([0]), np.array([0, 1]), FalseList([0])])
def test_results_are_not_asked_for_their_truth(returned):
    stream = local_environment().from_collection([1]).flat_map(lambda _: returned)
    assert list(stream.execute_and_collect()) == list(returned)
    windows = TumblingEventTimeWindows.of(Time.milliseconds(5))
    stream = timed(local_environment(), [("a", 1)]).key_by(lambda e: e[0]).window(windows).process(Returns(returned))
    assert list(stream.execute_and_collect()) == list(returned)


@pytest.mark.parametrize("declared", [None, Types.STRING()])
def test_a_map_that_finds_nothing_to_take_fails_the_job(declared):
    names = [(1, "one"), (3, "three")]
    stream = local_environment().from_collection([1, 2, 3])
    stream = stream.map(lambda number: next(name for of, name in names if of == number), declared)
    with pytest.raises(UserFunctionError, match=r"element 2.*StopIteration"):
        list(stream.execute_and_collect())


@pytest.mark.parametrize("returned", [None, [], (), {}, ""])
def test_what_is_empty_has_no_results(returned):
    assert list(local_environment().from_collection([1]).flat_map(lambda _: returned).execute_and_collect()) == []
