"""A function is given to an operator as it is then, and each operator has one of its own."""

# ruff: noqa: B023 - that functions use the variable of a loop is what is tested

from __future__ import annotations

import pytest

from eventide.common import Types, WatermarkStrategy
from eventide.datastream import (
    CoFlatMapFunction,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
)
from eventide.testing import local_environment

BY_TIME = WatermarkStrategy.for_monotonous_timestamps()


def given(stream):
    return sorted(stream.execute_and_collect())


@pytest.fixture
def numbers():
    return local_environment().from_collection([1, 2, 3])


def test_lambdas_of_a_loop_keep_its_variable(numbers):
    first, second = [numbers.filter(lambda v: v > least).map(lambda v: (least, v)) for least in (1, 2)]
    assert given(first.union(second)) == [(1, 2), (1, 3), (2, 3)]


def test_keys_and_timestamps_of_a_loop_keep_its_variable(numbers):
    counted, timed = [], []
    for modulus in (1, 2):
        counted.append(numbers.key_by(lambda v: v % modulus).reduce(lambda a, b: a + b).map(lambda v: (modulus, v)))
        strategy = BY_TIME.with_timestamp_assigner(lambda v, _: v * modulus)
        timed.append(numbers.assign_timestamps_and_watermarks(strategy).process(Timed()))
    assert given(counted[0].union(counted[1])) == [(1, 1), (1, 3), (1, 6), (2, 1), (2, 2), (2, 4)]
    assert given(timed[0].union(timed[1])) == [1, 2, 2, 3, 4, 6]


class Timed(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp()


def test_classes_of_a_loop_keep_its_variable():
    words, sides = local_environment().from_collection(["x1", "y1"]), []
    for tag in (OutputTag("x"), OutputTag("y")):

        class Route(ProcessFunction):
            def process_element(self, value, ctx):
                if value[0] == tag.tag_id:
                    yield tag, value

        sides.append(words.process(Route()).get_side_output(tag).map(lambda v: (tag.tag_id, v)))
    assert given(sides[0].union(sides[1])) == [("x", "x1"), ("y", "y1")]


def test_an_attribute_that_is_set_later_makes_no_difference(numbers):
    class Times(MapFunction):
        by = 2

        def map(self, value):
            return value * self.by

    function = Times()
    doubled = numbers.map(function)
    function.by = 10
    assert given(doubled.union(numbers.map(function))) == [2, 4, 6, 10, 20, 30]


def test_elements_of_a_collection_are_as_they_were_when_it_was_given():
    elements = [{"n": 1}]
    stream = local_environment().from_collection(elements)
    elements[0]["n"] = 5
    elements.append({"n": 6})
    assert list(stream.execute_and_collect()) == [{"n": 1}]


class Fresh(FilterFunction):
    def __init__(self):
        self.seen = set()

    def filter(self, value):
        is_new = value not in self.seen
        self.seen.add(value)
        return is_new


class Both(CoFlatMapFunction):
    def __init__(self):
        self.seen = set()

    def flat_map1(self, value):
        if value not in self.seen:
            self.seen.add(value)
            yield value

    flat_map2 = flat_map1


class Counting(KeyedProcessFunction):
    def __init__(self):
        self.counts = {}

    def process_element(self, value, ctx):
        self.counts[value] = self.counts.get(value, 0) + 1
        yield self.counts[value]


def test_one_function_in_several_operators_is_one_in_each(numbers):
    fresh, both, counting, shared = Fresh(), Both(), Counting(), []
    assert given(numbers.filter(fresh).union(numbers.filter(fresh), numbers.filter(fresh).filter(fresh))) == [
        *(1, 1, 1),
        *(2, 2, 2),
        *(3, 3, 3),
    ]
    pairs = numbers.connect(numbers)
    assert given(pairs.flat_map(both).union(pairs.flat_map(both))) == [1, 1, 2, 2, 3, 3]
    keyed = numbers.key_by(lambda v: v, Types.INT())
    assert given(keyed.process(counting).union(keyed.process(counting))) == [1] * 6
    both_lists = [numbers.map(lambda v: (shared.append(v), len(shared))[1]) for _ in "ab"]
    assert given(both_lists[0].union(both_lists[1])) == [1, 1, 2, 2, 3, 3]


def test_each_operator_opens_its_own():
    class Named(ProcessFunction):
        def open(self, runtime_context):
            self.name = runtime_context.get_task_name()

        def process_element(self, value, ctx):
            yield [*value, self.name]

    function = Named()
    found = local_environment().from_collection([[]]).process(function).name("A").process(function).name("B")
    [[first, second]] = found.execute_and_collect()
    assert ("A" in first, "B" in second) == (True, True)
