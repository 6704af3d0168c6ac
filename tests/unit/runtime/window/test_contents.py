"""Many elements added at once are the same as each added by itself, and no elements change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Row
from eventide.datastream.functions import AggregateFunction, ReduceFunction
from eventide.runtime.window.contents import Aggregated, AllElements, AtElement, Evictable, Reduced

ENTRIES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=12)


class Listed(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def reduced(function):
    return Reduced(ReduceFunction.of(function))


CONTENTS = [
    AllElements(),
    reduced(lambda a, b: a * 10 + b),
    reduced(lambda a, b: None if b == 5 else a * 10 + b),
    Aggregated(Listed()),
    Evictable(),
    Evictable(Aggregated(Listed())),
]


@pytest.mark.parametrize("contents", CONTENTS, ids=lambda contents: contents.describe())
@given(entries=ENTRIES, more=ENTRIES)
def test_each_of_many_is_added_as_if_by_itself(contents, entries, more):
    one_by_one, at_once = {}, {}
    for some in (entries, more):
        for key, value in some:
            one_by_one[key] = contents.add(one_by_one.get(key), value, value + 100)
        keys, values = [key for key, _ in some], [value for _, value in some]
        contents.add_each(at_once, keys, values, np.array(values, np.int64) + 100)
    assert at_once == one_by_one
    assert list(at_once) == list(one_by_one)


@pytest.mark.parametrize("many", [False, True])
def test_a_function_may_change_its_first_argument(many):
    def grow(a, b):
        a["n"] += b["n"]
        return a

    elements = [Row(n=1), Row(n=2), Row(n=4)]
    contents, kept = reduced(grow), {}
    if many:
        contents.add_each(kept, "kkk", elements, np.zeros(3, np.int64))
    else:
        for element in elements:
            kept["k"] = contents.add(kept.get("k"), element, 0)
    assert list(contents.view(kept["k"])) == [Row(n=7)]
    assert elements[1:] == [Row(n=2), Row(n=4)]


def test_a_result_that_the_function_has_kept_is_not_changed_by_the_next_call():
    seen = []

    def last(a, b):
        for one in seen:
            one["spoilt"] = True
        seen.append(b)
        return b

    kept = {}
    reduced(last).add_each(kept, "kkkk", [{"n": n} for n in range(4)], np.zeros(4, np.int64))
    assert kept == {"k": [{"n": 3}]}


def test_after_a_result_of_none_the_next_element_begins_anew():
    contents, kept = reduced(lambda a, b: None if b == 5 else a * 10 + b), {}
    contents.add_each(kept, "kkkkk", [1, 5, 7, 8, 9], np.zeros(5, np.int64))
    assert kept == {"k": [789]}


@pytest.mark.parametrize("contents", [reduced(lambda a, b: a + b), Aggregated(Listed())])
def test_what_merges_with_none_stays_as_it_is(contents):
    assert contents.merge([None], [[1]]) == contents.merge([[1]], [None]) == [[1]]
    assert contents.view(contents.merge([None], [None])) is None


PARTS = st.lists(st.lists(st.none() | st.integers(1, 9), max_size=5), max_size=5)


@given(parts=PARTS)
def test_parts_of_a_window_give_the_same_where_elements_are_none(parts):
    """None drops what was there before, in an earlier part, too."""
    contents, kept, at_once = reduced(lambda a, b: f"{a}{b}"), None, None
    for part in filter(None, parts):
        later = {}
        contents.add_each(later, "k" * len(part), part, np.zeros(len(part), np.int64))
        kept = later["k"] if kept is None else contents.continued(kept, later["k"])
        for value in part:
            at_once = contents.add(at_once, value, 0)
    assert kept == at_once


class Shares(Listed):
    def add(self, value, accumulator):
        return [*accumulator, 1 / value]


@pytest.mark.parametrize("contents", [reduced(lambda a, b: a / b), Aggregated(Shares())])
def test_a_function_that_raises_is_told_with_key_and_element(contents):
    with pytest.raises(AtElement) as raised:
        contents.add_each({}, "abab", [1, 1, 0, 5], np.zeros(4, np.int64))
    assert (raised.value.key, raised.value.element, type(raised.value.error)) == ("a", 0, ZeroDivisionError)
