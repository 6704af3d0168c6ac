"""Aggregate functions that are sums and extremes are called before the shuffle, and give what they give after it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Time, Types, WatermarkStrategy
from eventide.datastream.functions import AggregateFunction, in_python
from eventide.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from eventide.pickling.pickles import dumps, loads
from eventide.runtime.exchange.partitioners import KeyGroupPartitioner
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.folds import aggregate_fold_of
from eventide.runtime.window.contents import Accumulated, Aggregated
from eventide.runtime.window.reducing import ReducingPartitioner
from eventide.testing import local_environment
from support.columns import in_columns

EVENT = Types.ROW_NAMED(
    ["user", "v", "w", "f", "at"], [Types.STRING(), Types.LONG(), Types.INT(), Types.DOUBLE(), Types.LONG()]
)


class _Aggregate(AggregateFunction):
    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        raise NotImplementedError


class Mean(_Aggregate):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value.v, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]


class Extremes(_Aggregate):
    def create_accumulator(self):
        return {"n": 0, "highest": -1, "lowest": 2**62, "first": "", "kind": "x"}

    def add(self, value, accumulator):
        return {
            **accumulator,
            "n": accumulator["n"] + (1 if value.w > 0 else 0),
            "highest": max(accumulator["highest"], value.v),
            "lowest": value.w if value.w <= accumulator["lowest"] else accumulator["lowest"],
            "first": max(accumulator["first"], f"{value.user}-{value.w}"),
        }


class Some(_Aggregate):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value.v * value.w if value.f > 0.5 else accumulator


class Asks(Some):
    def add(self, value, accumulator):
        return accumulator if value.v is None else accumulator + value.v


AGGREGATES = [Mean, Extremes, Some, Asks]


class Floats(Some):
    def create_accumulator(self):
        return 0.0

    def add(self, value, accumulator):
        return accumulator + value.f


class FromOne(Some):
    def create_accumulator(self):
        return 1


class Bounded(Some):
    def add(self, value, accumulator):
        return accumulator + value.v if accumulator < 100 else accumulator


class Resets(Some):
    def add(self, value, accumulator):
        return 0 if value.v == 3 else accumulator + value.v


class InRuns(Mean):
    def add(self, value, accumulator):
        return (value.v, accumulator[1]) if value.v > accumulator[0] else (accumulator[0], accumulator[1] + 1)


class AsksOfItself(Some):
    def add(self, value, accumulator):
        return value.v if accumulator is None else accumulator + value.v


class Listed(Some):
    def create_accumulator(self):
        return [0]


class Scaled(Some):
    def __init__(self):
        self.factor = 2

    def add(self, value, accumulator):
        return accumulator + value.v * self.factor


def events(rows):
    return [Row(user=user, v=v, w=w, f=f, at=at) for user, v, w, f, at in rows]


def windowed(rows, function, assigner=None, kind=EVENT):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    env = local_environment().set_parallelism(2)
    half = len(rows) // 2
    source = in_columns(kind, events(rows[:half]), events(rows[half:]), splits=2)
    keyed = env.from_source(source, strategy, "events").key_by(lambda e: e.user)
    return keyed.window(assigner or TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(function)


def partitioner_of(stream):
    stream.print()
    plan = stream._env.get_plan()
    (edge,) = plan.sources[0].root.all_edges()
    return edge.partitioner, plan.operators[0].speed


WHOLE = st.integers(-50, 50) | st.sampled_from([2**53 + 1, 2**62, -(2**62), 2**63 - 1])
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abcß"),
        WHOLE,
        st.integers(-3, 3),
        st.sampled_from([0.0, 0.7, float("nan")]),
        st.integers(0, 40),
    ),
    max_size=25,
)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@given(rows=ROWS)
def test_results_are_those_of_the_function_called_with_each_element(aggregate, rows):
    rows = sorted(rows, key=lambda row: row[-1])
    rows = [(user, None if aggregate is Asks and v == 0 else v, *rest) for user, v, *rest in rows]
    expected = []
    function = aggregate()
    for window, of_window in itertools.groupby(rows, lambda row: row[-1] // 10):
        by_key = {}
        for event in events(of_window):
            accumulator = by_key.get(event.user)
            before = function.create_accumulator() if accumulator is None else accumulator
            by_key[event.user] = function.add(event, before)
        expected += [(window, repr(function.get_result(accumulator))) for accumulator in by_key.values()]
    for one in (aggregate(), in_python(aggregate())):
        results = list(map(repr, windowed(rows, one).execute_and_collect()))
        assert sorted(results) == sorted(result for _, result in expected)


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_they_are_called_before_the_shuffle_and_say_so(aggregate):
    found, speed = partitioner_of(windowed([("a", 1, 1, 1.0, 1)], aggregate()))
    assert isinstance(found, ReducingPartitioner)
    assert f"reduced before the shuffle, because {aggregate.__name__} (line " in speed


@pytest.mark.parametrize(
    ("aggregate", "why"),
    [
        (Floats, "a sum of floating-point numbers depends on their order"),
        (FromOne, "a sum that starts with 1, not with 0"),
        (Bounded, "a condition on the accumulator that does not choose a highest or lowest value"),
        (Resets, "not a sum of whole numbers, nor a highest or lowest value"),
        (InRuns, "a sum depends on the value of the accumulator"),
        (AsksOfItself, "not a sum of whole numbers, nor a highest or lowest value"),
        (Listed, "it returns a list"),
        (Scaled, "it takes values from outside, which may change"),
        (lambda: in_python(Some()), "the program says in_python"),
    ],
)
def test_what_is_not_seen_to_be_one_is_called_after_the_shuffle_and_says_why(aggregate, why):
    with pytest.raises(NotTraceable, match=why):
        aggregate_fold_of(aggregate(), EVENT)
    found, speed = partitioner_of(windowed([("a", 1, 1, 1.0, 1)], aggregate()))
    assert isinstance(found, KeyGroupPartitioner)
    assert why in speed


def test_sliding_windows_are_not_among_them():
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
    found, speed = partitioner_of(windowed([("a", 1, 1, 1.0, 1)], Mean(), sliding))
    assert isinstance(found, KeyGroupPartitioner)
    assert "for tumbling windows only" in speed


@given(rows=ROWS, cuts=st.lists(st.booleans(), min_size=25, max_size=25))
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_elements_and_accumulators_mix_in_a_window_in_any_order(aggregate, rows, cuts):
    """A checkpoint may hold elements, of a program that called the function after the shuffle, and accumulators."""
    function = aggregate()
    how = {Mean: ("sum", "sum"), Extremes: ("sum", "max", "min", "max", "first"), Some: ("sum",), Asks: ("sum",)}[
        aggregate
    ]
    contents, kept, expected, values = Aggregated(function), {}, function.create_accumulator(), []
    for event, is_part in zip(events(rows), cuts, strict=False):
        expected = function.add(event, expected)
        part = Accumulated(function.add(event, function.create_accumulator()), how)
        values.append(loads(dumps(part)) if is_part else event)
    contents.add_each(kept, ["key"] * len(values), values, None)
    assert kept == ({"key": [expected]} if values else {})
    one_by_one = None
    for value in values:
        one_by_one = contents.add(one_by_one, value, None)
    assert one_by_one == kept.get("key")
