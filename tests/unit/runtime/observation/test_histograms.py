"""Counted lengths keep what they promise."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.observation.histograms import DurationHistogram

SHORT = st.integers(0, 2_047)
ANY = st.one_of(SHORT, st.integers(0, 2**52))


def of(values: list[int]) -> DurationHistogram:
    lengths = DurationHistogram()
    lengths.add(np.array(values, np.int64))
    return lengths


@given(st.lists(SHORT, min_size=1), SHORT)
def test_short_lengths_are_counted_exactly(values: list[int], bound: int) -> None:
    assert of(values).longer_than(bound) == sum(value > bound for value in values)


@given(st.lists(ANY, min_size=1), ANY)
def test_of_long_ones_at_most_a_thousandth_too_many_count_as_longer(values: list[int], bound: int) -> None:
    found = of(values).longer_than(bound)
    assert sum(value > bound for value in values) <= found <= sum(value > bound * 0.999 - 1 for value in values)


@given(st.lists(ANY, min_size=1), st.floats(0, 0.99))
def test_no_more_than_the_share_is_longer_and_no_much_shorter_length_has_that(values: list[int], share: float) -> None:
    found = of(values).within(share)
    allowed = int(share * len(values))
    assert sum(value > found for value in values) <= allowed
    assert found == 0 or sum(value > found * 0.999 - 1 for value in values) > allowed
    assert found <= max(values)


@given(st.lists(ANY), st.lists(ANY))
def test_merged_counts_are_those_of_all(one: list[int], other: list[int]) -> None:
    merged = of(one)
    merged.merge(of(other))
    expected = of(one + other)
    assert merged.longest_ms == expected.longest_ms
    assert merged.total == len(one) + len(other)
    assert [part.tolist() for part in merged.points()] == [part.tolist() for part in expected.points()]


@given(st.lists(ANY, min_size=1))
def test_the_points_of_the_curve_are_bounds_and_what_is_behind_by_more(values: list[int]) -> None:
    lengths = of(values)
    bounds, late = lengths.points()
    assert [lengths.longer_than(bound) for bound in bounds.tolist()] == late.tolist()
    assert bounds.tolist() == sorted(set(bounds.tolist()))


def test_what_is_longer_than_a_float_can_count_is_the_longest() -> None:
    assert of([2**62]).longest_ms == 2**52
