"""The measure against its definition, in one piece and in any pieces."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.advisor.disorder import Disorder, DisorderMeter, Fronts, Stretch
from support.disorder_brute_force import Element, measured, stretch_of

TIMES = st.integers(-1_000, 1_000)
ELEMENTS = st.lists(st.tuples(st.sampled_from("abc"), TIMES, st.integers(0, 50)), min_size=1, max_size=30)
CUTS = st.lists(st.integers(0, 30), max_size=4)


def elements_of(drawn: list[tuple[str, int, int]]) -> list[Element]:
    """Elements that arrive one after the other, each some time later."""
    arrived = np.cumsum([later for _, _, later in drawn]).tolist()
    return [Element(split, time, at) for (split, time, _), at in zip(drawn, arrived, strict=True)]


def pieces(elements: list[Element], cuts: list[int]) -> list[list[Element]]:
    bounds = sorted({0, len(elements), *(min(cut, len(elements)) for cut in cuts)})
    return [elements[start:end] for start, end in pairwise(bounds)]


def shown(found: Disorder) -> dict[str, object]:
    """Return the measures that brute force finds too."""

    def values(lengths) -> list[int]:
        bounds, _ = lengths.points()
        return np.repeat(bounds, [count for _, count in lengths.steps()]).tolist()

    return {
        "own": values(found.own),
        "whole": values(found.whole),
        "gaps": values(found.gaps),
        "splits": {
            name: (
                split.rows,
                split.newest_ms,
                split.heard_ms,
                split.apart_ms,
                split.least_apart_ms,
                split.most_apart_ms,
                split.silence_ms,
            )
            for name, split in found.splits.items()
        },
    }


@pytest.mark.parametrize("has_clock", [False, True])
@given(drawn=ELEMENTS, cuts=CUTS)
def test_stretch_by_stretch_it_is_what_is_defined(
    has_clock: bool, drawn: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    elements, meter = elements_of(drawn), DisorderMeter()
    for piece in pieces(elements, cuts):
        meter.take(stretch_of(piece, has_clock=has_clock))
    assert shown(meter.disorder) == measured(elements, has_clock=has_clock)


@pytest.mark.parametrize("has_clock", [False, True])
@given(drawn=ELEMENTS, cuts=CUTS)
def test_stretches_measured_apart_with_what_those_before_have_left_add_up(
    has_clock: bool, drawn: list[tuple[str, int, int]], cuts: list[int]
) -> None:
    elements, before, found = elements_of(drawn), Fronts({}, {}), Disorder()
    for piece in pieces(elements, cuts):
        stretches = [stretch_of([element], has_clock=has_clock) for element in piece]
        meter, unknowing = DisorderMeter(before), DisorderMeter()
        for stretch in stretches:
            meter.take(stretch)
            unknowing.take(stretch)
        found.follow(meter.disorder)
        before = before.followed_by(unknowing.fronts)
    assert shown(found) == measured(elements, has_clock=has_clock)
    assert {name: split.newest_ms for name, split in found.splits.items()} == before.newest


def test_elements_from_after_their_arrival_are_counted() -> None:
    meter = DisorderMeter()
    meter.take(Stretch(np.array([0, 5_000, 2_500]), ["a"], np.zeros(3, np.int32), np.array([0, 1_000, 2_000])))
    assert (meter.disorder.future, meter.disorder.most_future_ms) == (1, 4_000)


def test_more_splits_than_sixteen_bits_can_number() -> None:
    names = [str(number) for number in range(40_000)]
    places = np.arange(40_000, dtype=np.int32)
    meter = DisorderMeter()
    meter.take(Stretch(np.arange(40_000), names, places))
    meter.take(Stretch(np.arange(40_000)[::-1].copy(), names, places))
    assert len(meter.disorder.splits) == 40_000
    assert meter.disorder.own.longest_ms == 39_999
    assert meter.disorder.splits["39999"].most_behind_ms == 39_999


def test_an_element_far_ahead_is_a_leap_if_the_others_do_not_follow() -> None:
    hour = 3_600_000
    steady = np.arange(100) * 1_000
    alone, night = steady.copy(), steady.copy()
    alone[20] += 5 * hour
    night[20:] += 5 * hour
    for times, leap in ((alone, 5 * hour + 1_000), (night, 0), (alone[:25], 0)):
        meter = DisorderMeter()
        meter.take(Stretch(times, ["a"], np.zeros(len(times), np.int32)))
        assert meter.disorder.splits["a"].leap_ms == leap


def test_a_split_without_elements_is_silent() -> None:
    meter = DisorderMeter()
    meter.take(Stretch(np.array([1]), ["a"], np.zeros(1, np.int32)))
    meter.take(Stretch(np.array([], np.int64), ["a", "b"], np.array([], np.int32)))
    assert meter.disorder.silent == ["b"]
