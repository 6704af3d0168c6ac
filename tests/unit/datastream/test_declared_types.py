"""Elements have their declared type from the source on, and after every function that declares one."""

from decimal import Decimal
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import MapFunction, OutputTag, ProcessWindowFunction
from eventide.datastream.connectors import CollectionSource
from eventide.datastream.window import CountTumblingWindowAssigner, TumblingEventTimeWindows
from eventide.errors import DataError
from eventide.testing import OperatorHarness, local_environment
from support.typed_values import any_type

INFO = Types.ROW_NAMED(["id", "info"], [Types.INT(), Types.STRING()])
TIMED = Types.ROW_NAMED(["key", "ts"], [Types.STRING(), Types.LONG()])
BESIDE = OutputTag("beside", INFO)
TENS = TumblingEventTimeWindows.of(10)


def collected(stream):
    return list(stream.execute_and_collect())


def numbers(elements, type_info=None):
    return local_environment().from_collection(elements, type_info)


@pytest.mark.parametrize("element", [(1, "a"), [1, "a"], {"id": 1, "info": "a"}, Row(1, "a"), Row(info="a", id=1)])
def test_tuples_of_a_source_are_rows_for_map_filter_and_flat_map(element):
    assert collected(numbers([element], INFO).map(lambda data: data.info)) == ["a"]
    assert collected(numbers([element], INFO).filter(lambda data: data.info == "a")) == [Row(id=1, info="a")]
    assert collected(numbers([element], INFO).flat_map(lambda data: [data.id, data["info"]])) == [1, "a"]


class Keys(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, [element.info for element in elements]


@pytest.mark.parametrize("key", ["info", lambda data: data.info])
def test_key_selectors_find_the_fields_of_a_declared_row(key):
    windows = numbers([(1, "a"), (2, "b"), (3, "a")], INFO).key_by(key).window(CountTumblingWindowAssigner.of(1))
    assert sorted(collected(windows.process(Keys()))) == [("a", ["a"]), ("a", ["a"]), ("b", ["b"])]


@pytest.mark.parametrize("assigner", ["ts", lambda data, _: data.ts])
def test_timestamp_assigners_find_the_fields_of_a_declared_row(assigner):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    stream = numbers([("a", 1), ("a", 12)], TIMED).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by("key").window(TENS).reduce(lambda a, b: (a.key, a.ts + b.ts))
    assert collected(windows.map(lambda data: data.ts)) == [1, 12]


def test_after_a_map_or_flat_map_with_a_declared_type_the_next_function_finds_its_fields():
    one = numbers([1]).map(lambda n: (n, "a"), INFO).map(lambda data: data.info)
    many = numbers([1]).flat_map(lambda n: [(n, "a"), [n, "b"]], INFO).map(lambda data: data.info)
    assert (collected(one), collected(many)) == (["a"], ["a", "b"])


def test_what_a_window_function_gives_has_its_declared_type_for_the_next_function():
    class Pairs(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, "window"
            yield BESIDE, (key, "beside")

    windows = numbers([1]).key_by(lambda n: n).window(CountTumblingWindowAssigner.of(1)).process(Pairs(), INFO)
    assert collected(windows.map(lambda data: data.info)) == ["window"]
    assert collected(windows.get_side_output(BESIDE).map(lambda data: data.info)) == ["beside"]


def test_a_row_without_names_has_the_fields_f0_f1_and_so_on():
    stream = numbers([(1, "a"), Row(2, "b"), Row(f1="c", f0=3)], Types.ROW([Types.INT(), Types.STRING()]))
    assert collected(stream.map(lambda data: (data.f1, data["f0"], data[0]))) == [("a", 1, 1), ("b", 2, 2), ("c", 3, 3)]
    windows = stream.key_by("f1").window(CountTumblingWindowAssigner.of(1)).reduce(lambda a, b: a)
    assert sorted(collected(windows.map(lambda data: data.f0))) == [1, 2, 3]


def test_an_element_that_does_not_fit_is_told_with_its_split_before_any_function_sees_it():
    with pytest.raises(DataError, match=r"'collection', while it read its source .*field id: expected INT, got 'x'"):
        collected(numbers([(1, "a"), ("x", "b")], INFO).map(lambda data: data.nothing))


def test_the_harness_hands_over_elements_of_the_declared_type():
    windows = numbers([], INFO).key_by("info").window(CountTumblingWindowAssigner.of(1)).process(Keys())
    with OperatorHarness(windows) as harness:
        harness.process((1, "a"))
        assert harness.outputs() == [("a", ["a"])]


class Sees(MapFunction):
    """Remembers the elements that pass, and how they look, by its name."""

    passed: ClassVar[dict[str, list[tuple[str, Any]]]] = {}

    def __init__(self, name):
        self.name = name
        self.passed[name] = []

    def map(self, value):
        self.passed[self.name].append((repr(value), value))
        return value


@given(st.data())
def test_every_element_looks_the_same_before_and_after_a_shuffle(data):
    kind, values = data.draw(any_type.filter(lambda pair: not pair[0].is_pickled))
    elements = data.draw(st.lists(values, min_size=1, max_size=4))
    stream = numbers(elements, kind).map(Sees("before"), kind).key_by(lambda _: "k", Types.STRING())
    collected(stream.window(CountTumblingWindowAssigner.of(1)).reduce(lambda a, b: a).map(Sees("behind"), kind))
    assert Sees.passed["before"] == Sees.passed["behind"]
    assert [value for _, value in Sees.passed["before"]] == elements


@pytest.mark.parametrize("kind", [Types.BIG_DEC(), Types.BIG_DEC(10, 2)])
def test_decimals_keep_their_digits_as_elements_and_keys(kind):
    prices = [Decimal("1.10"), Decimal("2.00"), Decimal("-3.50")]

    class Of(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield repr((key, list(elements)))

    stream = numbers(prices, kind).map(lambda price: price, kind).key_by(lambda price: price, kind)
    results = collected(stream.window(CountTumblingWindowAssigner.of(1)).process(Of()))
    assert sorted(results) == sorted(f"({price!r}, [{price!r}])" for price in prices)


def test_late_elements_are_of_the_declared_type_too():
    late = OutputTag("late", TIMED)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    stream = numbers([("a", 50), ("a", 1)], TIMED).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by("key").window(TENS).side_output_late_data(late).process(Keys())
    with OperatorHarness(windows) as harness:
        harness.advance_watermark(40)
        harness.process(("a", 1), timestamp=1)
        assert harness.late() == [Row(key="a", ts=1)]


def test_a_collection_gives_its_elements_as_they_are_to_who_reads_it_by_hand():
    assert list(CollectionSource([(1, "a")], INFO).read("collection", 0, 1)) == [(1, "a")]
