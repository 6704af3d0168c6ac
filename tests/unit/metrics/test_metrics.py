"""Metrics by themselves: what a function does with them, what is taken from them, and how readings become one."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import ProgramError, UserFunctionError
from eventide.metrics import MetricGroup
from eventide.metrics.metricbase import merged, value_of
from eventide.runtime.metrics import FunctionMetrics, JobMetrics

NUMBERS = st.integers(-1000, 1000)


@pytest.fixture
def group():
    return MetricGroup()


def spread_of(values):
    return ["spread", len(values), sum(values), min(values, default=None), max(values, default=None)]


def rate_of(number, at_s, span_s):
    return ["rate", number, span_s, at_s, [[at_s, number]] if number else []]


def shown(by_subtask):
    return ["shown", sorted(map(list, by_subtask.items()))]


def events(pairs, span_s):
    """The readings of a meter, for the number of events in each second."""
    return [rate_of(number, second, span_s) for second, number in pairs]


def folded(readings):
    first, *rest = readings
    for reading in rest:
        first = merged(first, reading)
    return first


READINGS = {
    "count": NUMBERS.map(lambda number: ["count", number]),
    "spread": st.lists(NUMBERS).map(spread_of),
    "rate": st.builds(rate_of, NUMBERS, st.integers(0, 90), st.integers(1, 60)),
    "shown": st.dictionaries(st.integers(0, 3), NUMBERS | st.text()).map(shown),
}
COMMUTING = ("count", "spread", "rate")
OF_ONE_KIND = st.sampled_from([*READINGS]).flatmap(lambda kind: st.lists(READINGS[kind], min_size=3, max_size=3))


class TestReadingsBecomeOne:
    @given(OF_ONE_KIND)
    def test_it_does_not_matter_which_are_merged_first(self, readings):
        one, two, three = readings
        assert merged(merged(one, two), three) == merged(one, merged(two, three))

    @given(st.sampled_from(COMMUTING).flatmap(lambda kind: st.tuples(READINGS[kind], READINGS[kind])))
    def test_the_order_does_not_matter(self, readings):
        one, two = readings
        assert merged(one, two) == merged(two, one)

    @given(st.dictionaries(st.integers(0, 3), NUMBERS), st.dictionaries(st.integers(4, 7), NUMBERS))
    def test_gauges_of_several_subtasks_have_no_order(self, one, two):
        assert merged(shown(one), shown(two)) == merged(shown(two), shown(one))

    def test_of_one_subtask_the_later_gauge_counts(self):
        assert value_of(merged(shown({0: 5, 1: 6}), shown({1: 4}))) == {0: 5, 1: 4}

    @given(st.sampled_from([*READINGS]).flatmap(READINGS.get), st.sampled_from([*READINGS]).flatmap(READINGS.get))
    def test_of_two_kinds_one_is_shown_whichever_comes_first(self, one, two):
        if one[0] != two[0]:
            assert merged(one, two) is merged(two, one)

    @given(st.lists(st.lists(NUMBERS), min_size=1))
    def test_a_distribution_in_parts_is_that_of_all_values(self, parts):
        assert folded(map(spread_of, parts)) == spread_of([value for part in parts for value in part])

    @given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9)), min_size=1), st.integers(1, 60))
    def test_a_rate_is_that_of_the_span_before_the_last_second(self, pairs, span_s):
        last = max(second for second, _ in pairs)
        recent = sum(number for second, number in pairs if last - span_s < second <= last)
        value = value_of(folded(events(pairs, span_s)))
        assert value == {"count": sum(number for _, number in pairs), "rate": recent / span_s}

    @given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 9)), min_size=1), st.integers(1, 60))
    def test_a_meter_remembers_no_more_seconds_than_its_span_has(self, pairs, span_s):
        assert len(folded(events(pairs, span_s))[-1]) <= span_s

    @given(st.sampled_from([*READINGS]).flatmap(READINGS.get))
    def test_a_reading_arrives_as_it_was_sent(self, reading):
        assert json.loads(json.dumps(reading)) == reading


class TestWhatIsTaken:
    def test_a_counter_tells_of_itself_at_first_and_then_what_is_new(self, group):
        counter = group.counter("c")
        assert counter.take(0, 0) == ["count", 0]
        assert counter.take(0, 0) is None
        counter.inc(3)
        counter.dec()
        assert counter.take(0, 0) == ["count", 2]
        counter.dec(5)
        assert counter.take(0, 0) == ["count", -5]
        assert counter.take(0, 0) is None
        assert counter.get_count() == -3

    @given(st.lists(st.lists(NUMBERS), min_size=1))
    def test_what_is_taken_of_a_distribution_merges_to_that_of_all_values(self, parts):
        distribution, taken = MetricGroup().distribution("d"), []
        for part in parts:
            for value in part:
                distribution.update(value)
            taken.append(distribution.take(0, 0))
        assert taken[0] is not None
        assert [reading is None for reading in taken[1:]] == [not part for part in parts[1:]]
        assert folded(filter(None, taken)) == spread_of([value for part in parts for value in part])

    def test_a_meter_says_too_that_there_was_nothing(self, group):
        meter = group.meter("m", time_span_in_seconds=10)
        meter.mark_event(20)
        busy = meter.take(0, clock_ms=5_999)
        quiet = meter.take(0, clock_ms=15_000)
        assert value_of(busy) == {"count": 20, "rate": 2.0}
        assert value_of(merged(busy, meter.take(0, clock_ms=14_999))) == {"count": 20, "rate": 2.0}
        assert value_of(merged(busy, quiet)) == {"count": 20, "rate": 0.0}
        assert meter.get_count() == 20

    def test_a_gauge_is_asked_each_time(self, group):
        answers = iter([1, "two", 3.5])
        group.gauge("g", lambda: next(answers))
        gauge = group.metrics()["g"]
        assert [value_of(gauge.take(2, 0)) for _ in range(3)] == [{2: 1}, {2: "two"}, {2: 3.5}]

    def test_numbers_of_numpy_do_not_wrap_around(self, group):
        numpy = pytest.importorskip("numpy")
        counter, meter, distribution = group.counter("c"), group.meter("m"), group.distribution("d")
        for _ in range(3):
            counter.inc(numpy.int8(100))
            meter.mark_event(numpy.uint8(200))
            distribution.update(numpy.int32(2**30))
        assert (counter.get_count(), meter.get_count()) == (300, 600)
        assert distribution.take(0, 0) == ["spread", 3, 3 * 2**30, 2**30, 2**30]
        group.counter("down").dec(numpy.uint8(1))
        assert group.counter("down").get_count() == -1

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "1", [1], None])
    def test_what_would_spoil_a_sum_is_refused_and_changes_nothing(self, group, value):
        counter, meter, distribution = group.counter("c"), group.meter("m"), group.distribution("d")
        for add in (counter.inc, counter.dec, meter.mark_event, distribution.update):
            with pytest.raises(ProgramError, match="a metric"):
                add(value)
        assert (counter.get_count(), meter.get_count()) == (0, 0)
        assert distribution.take(0, 0) == ["spread", 0, 0, None, None]

    @pytest.mark.parametrize("span", ["60", None, True, 0, float("nan")])
    def test_a_span_that_is_none_is_refused(self, group, span):
        with pytest.raises(ProgramError, match="the meter 'm' needs a span of 1 second or more"):
            group.meter("m", span)

    def test_a_gauge_that_gives_an_array_shows_no_number(self, group):
        numpy = pytest.importorskip("numpy")
        group.gauge("g", lambda: numpy.array([1.0, 2.0]))
        with pytest.raises(ProgramError, match="a gauge may show text, not array"):
            group.metrics()["g"].take(0, 0)

    def test_numbers_of_numpy_travel(self, group):
        numpy = pytest.importorskip("numpy")
        counter, distribution = group.counter("c"), group.distribution("d")
        counter.inc(numpy.int64(2))
        distribution.update(numpy.float64(2.5))
        group.gauge("g", lambda: numpy.int32(7))
        taken = [metric.take(0, 0) for metric in group.metrics().values()]
        assert json.loads(json.dumps(taken)) == [
            ["count", 2],
            ["spread", 1, 2.5, 2.5, 2.5],
            ["shown", [[0, 7]]],
        ]


class TestGroups:
    def test_a_name_stands_after_those_of_its_groups(self, group):
        group.counter("a")
        group.add_group("g").counter("b")
        group.add_group("key", "value").add_group("h").meter("c")
        assert [*group.metrics()] == ["a", "g.b", "key.value.h.c"]

    def test_one_name_is_one_metric(self, group):
        assert group.counter("a") is group.counter("a")
        assert group.add_group("g").meter("m") is group.add_group("g").meter("m")
        assert group.add_group("g").distribution("a") is not group.counter("a")

    def test_the_last_gauge_of_a_name_counts(self, group):
        group.gauge("g", lambda: 1)
        group.gauge("g", lambda: 2)
        assert group.metrics()["g"].take(0, 0) == shown({0: 2})

    @pytest.mark.parametrize(
        ("use", "says"),
        [
            (lambda g: g.meter("a"), "'a' is a counter already"),
            (lambda g: g.gauge("a", int), "'a' is a counter already"),
            (lambda g: (g.gauge("g", int), g.counter("g")), "'g' is a gauge already"),
            (lambda g: g.gauge("g", 5), "'g' needs a function without parameters, not 5"),
            (lambda g: g.meter("m", 0), "'m' needs a span of 1 second or more, not 0"),
            (lambda g: g.counter(""), "names of one or more letters, not ''"),
            (lambda g: g.add_group("x", 5), "names of one or more letters, not 5"),
        ],
    )
    def test_what_cannot_be_is_refused(self, group, use, says):
        group.counter("a")
        with pytest.raises(ProgramError, match=says):
            use(group)


class TestMetricsOfTheFunctionsOfATask:
    def test_names_of_eventides_own_counters_are_refused_unless_they_are_in_a_group(self):
        group = FunctionMetrics().group("map")
        with pytest.raises(ProgramError, match="'numRecordsIn' is counted by eventide itself"):
            group.counter("numRecordsIn")
        group.add_group("mine").counter("numRecordsIn")

    def test_functions_of_one_operator_share_what_has_one_name(self):
        metrics = FunctionMetrics()
        metrics.group("windows").counter("seen").inc()
        metrics.group("windows").counter("seen").inc()
        metrics.group("other").counter("seen").inc()
        assert metrics.take(0, 0) == [{"windows": {"seen": ["count", 2]}, "other": {"seen": ["count", 1]}}]

    def test_they_travel_empty(self):
        metrics = FunctionMetrics()
        metrics.group("map").gauge("g", lambda: 1)
        assert pickle.loads(pickle.dumps(metrics)).take(0, 0) == []

    def test_a_gauge_that_fails_is_named(self):
        metrics = FunctionMetrics()
        metrics.group("map").gauge("ratio", lambda: 1 // 0)
        with pytest.raises(UserFunctionError, match=r"in operator 'map', when its metric 'ratio' was read: .*ZeroDiv"):
            metrics.take(0, 0)

    def test_a_gauge_that_shows_no_number_is_named(self):
        metrics = FunctionMetrics()
        metrics.group("map").gauge("last", lambda: None)
        with pytest.raises(ProgramError, match=r"'last' was read: a metric shows numbers, .* not None"):
            metrics.take(0, 0)


def test_metrics_of_functions_stand_beside_eventides_own():
    metrics = JobMetrics()
    metrics.add({"operators": {"map": {"numRecordsIn": 3}}})
    metrics.add({"operators": {"map": {"numRecordsIn": 2}}, "functions": [{"map": {"b": ["count", 1]}, "x": {}}]})
    metrics.add({"operators": {}, "functions": [{"map": {"a": ["shown", [[1, 5]]]}}, {"map": {"b": ["count", 1]}}]})
    assert metrics.values() == {"map": {"numRecordsIn": 5, "a": {1: 5}, "b": 2}, "x": {}}
