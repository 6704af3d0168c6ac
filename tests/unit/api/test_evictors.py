import pytest

from eventide.common import Duration
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream.window import CountEvictor, DeltaEvictor, TimeEvictor, TimestampedValue
from eventide.errors import ProgramError


def values(*times):
    return [TimestampedValue(time, time) for time in times]


def before(evictor, elements):
    return [kept.value for kept in evictor.evict_before(elements, len(elements), None, None)]


def after(evictor, elements):
    return [kept.value for kept in evictor.evict_after(elements, len(elements), None, None)]


@pytest.mark.parametrize(("count", "kept"), [(1, [3]), (2, [2, 3]), (3, [1, 2, 3]), (4, [1, 2, 3])])
def test_count_keeps_the_last(count, kept):
    assert before(CountEvictor.of(count), values(1, 2, 3)) == kept


@pytest.mark.parametrize(("size", "kept"), [(0, []), (3, [9, 7]), (4, [9, 7, 6]), (5, [5, 9, 7, 6])])
def test_time_keeps_what_is_newer_than_the_newest_minus_its_size(size, kept):
    assert before(TimeEvictor.of(size), values(5, 9, 7, 6)) == kept


def test_time_evicts_nothing_without_timestamps():
    elements = [TimestampedValue("a"), TimestampedValue("b")]
    assert before(TimeEvictor.of(0), elements) == ["a", "b"]


def test_time_saturates_at_the_ends_of_the_range():
    assert before(TimeEvictor.of(Duration.of_days(1)), values(MIN_MS + 5, MIN_MS + 6)) == [MIN_MS + 5, MIN_MS + 6]
    assert before(TimeEvictor.of(MAX_MS), values(-5, MAX_MS)) == [MAX_MS]


@pytest.mark.parametrize(("threshold", "kept"), [(2, [9]), (3, [7, 9]), (5, [5, 7, 9])])
def test_delta_keeps_what_is_nearer_to_the_last_than_the_threshold(threshold, kept):
    assert before(DeltaEvictor.of(threshold, lambda element, last: last - element), values(5, 7, 9)) == kept


@pytest.mark.parametrize("rule", [CountEvictor, TimeEvictor])
def test_an_evictor_works_on_one_side_of_the_function_only(rule):
    elements = values(1, 2)
    assert (before(rule.of(1), elements), after(rule.of(1), elements)) == ([2], [1, 2])
    late = rule.of(1, do_evict_after=True)
    assert (before(late, elements), after(late, elements)) == ([1, 2], [2])


@pytest.mark.parametrize("evictor", [CountEvictor.of(1), TimeEvictor.of(1), DeltaEvictor.of(1, lambda a, b: 0)])
def test_an_empty_window_stays_empty(evictor):
    assert before(evictor, []) == []


@pytest.mark.parametrize(
    "build", [lambda: CountEvictor.of(0), lambda: TimeEvictor.of(-1), lambda: DeltaEvictor.of(1, "distance")]
)
def test_parameters_that_make_no_sense_are_refused(build):
    with pytest.raises(ProgramError):
        build()
