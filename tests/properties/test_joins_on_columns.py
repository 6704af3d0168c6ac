"""Joins on columns have the results of joins element by element, and of a grouped dictionary."""

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types, WatermarkStrategy
from eventide.datastream import OutputTag
from eventide.datastream.functions import in_python
from eventide.datastream.window import (
    CumulatingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingCalendarWindows,
    TumblingEventTimeWindows,
)
from eventide.joins import left, right, window
from eventide.local.runner import LocalCheckpoint
from eventide.runtime.joins.columns import equal, in_time
from eventide.testing import ScriptedSource, local_environment
from support.twin import by_sink, plan_of, run, runner

_ROW = Types.ROW_NAMED(["k", "at", "id"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])
_ELEMENTS = st.builds(
    lambda k, at, number: Row(k=k, at=at, id=number),
    st.sampled_from(["a", "b", None]),
    st.integers(-20, 30),
    st.integers(0, 10**6).map(float),
)
_BATCHES = st.lists(st.lists(st.tuples(st.sampled_from(["s", "t"]), _ELEMENTS), max_size=6), max_size=4)
_IN_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
_FIELDS = left("k"), left("id").alias("l"), right("id").alias("r"), right("at")
_LATE = OutputTag("late", _ROW)
_HOW = st.sampled_from(["inner", "left", "right", "full"])


@in_python
def _by_function(row):
    return row["k"]


def _streams(left_batches, right_batches):
    env = local_environment()
    return [
        env.from_source(ScriptedSource(["s", "t"], batches, type_info=_ROW), _IN_TIME, name)
        for name, batches in (("left", left_batches), ("right", right_batches))
    ]


def _restarted(make_plan):
    """The results of a job that is stopped after each micro-batch and goes on from its checkpoint."""
    checkpoint, found = LocalCheckpoint(), []
    while True:
        plan = make_plan()
        batch = next(iter(runner(plan, checkpoint=checkpoint).batches()), None)
        if batch is None:
            return found
        found.append(by_sink(plan, batch))


def _interval_plan(batches, bounds, key, *, late=True):
    keyed = [stream.key_by(key) for stream in _streams(*batches)]
    join = keyed[0].interval_join(keyed[1]).between(*bounds)
    if late:
        join = join.side_output_left_late_data(_LATE).side_output_right_late_data(_LATE)
    results = join.select(*_FIELDS)
    plan = plan_of(results, results.get_side_output(_LATE)) if late else plan_of(results)
    assert plan.operators[0].speed.startswith("columns") == (key == "k")
    return plan


@given(_BATCHES, _BATCHES, st.integers(-12, 12), st.integers(0, 12))
def test_an_interval_join_gives_the_same_in_the_same_order_on_columns(left_batches, right_batches, lower, width):
    batches, bounds = (left_batches, right_batches), (lower, lower + width)
    by_element = run(_interval_plan(batches, bounds, _by_function))
    by_column = run(_interval_plan(batches, bounds, "k"))
    assert [batch[0] for batch in by_column] == [batch[0] for batch in by_element]
    assert [Counter(map(repr, batch[1])) for batch in by_column] == [
        Counter(map(repr, batch[1])) for batch in by_element
    ]


@given(_BATCHES, _BATCHES, st.integers(-12, 12), st.integers(0, 12))
@settings(max_examples=50)
def test_an_interval_join_on_columns_goes_on_after_a_restart(left_batches, right_batches, lower, width):
    batches, bounds = (left_batches, right_batches), (lower, lower + width)
    whole = [batch[0] for batch in run(_interval_plan(batches, bounds, "k", late=False))]
    parts = [batch[0] for batch in _restarted(lambda: _interval_plan(batches, bounds, "k", late=False))]
    assert [batch for batch in parts if batch] == [batch for batch in whole if batch]


def _any_time_plan(batches, key):
    keyed = [stream.key_by(key) for stream in _streams(*batches)]
    plan = plan_of(keyed[0].interval_join(keyed[1]).at_any_time().select(*_FIELDS))
    assert plan.operators[0].speed.startswith("columns") == (key == "k")
    return plan


@given(_BATCHES, _BATCHES)
def test_a_join_at_any_time_gives_all_pairs_of_a_key_at_the_later_time(left_batches, right_batches):
    batches = left_batches, right_batches
    by_column = [batch[0] for batch in run(_any_time_plan(batches, "k"))]
    assert by_column == [batch[0] for batch in run(_any_time_plan(batches, _by_function))]
    parts = [batch[0] for batch in _restarted(lambda: _any_time_plan(batches, "k"))]
    assert [batch for batch in parts if batch] == [batch for batch in by_column if batch]
    elements = [[row for batch in side for _, row in batch] for side in batches]
    pairs = [(a, b) for a in elements[0] for b in elements[1] if a.k == b.k]
    assert Counter(repr(entry) for batch in by_column for entry in batch) == Counter(
        repr((Row(k=a.k, l=a.id, r=b.id, at=b.at), max(a.at, b.at))) for a, b in pairs
    )


def _window_plan(batches, windows, how, key, lateness=0):
    one, other = _streams(*batches)
    joined = one.join(other).where(key).equal_to(key).window(windows).allowed_lateness(lateness)
    plan = plan_of(joined.select(*_FIELDS, window(), how=how))
    assert plan.operators[0].speed.startswith("columns") == (key == "k")
    return plan


_WINDOWS = st.sampled_from(
    [
        TumblingEventTimeWindows.of(7),
        SlidingEventTimeWindows.of(10, 4),
        SlidingEventTimeWindows.of(3, 5),
        TumblingEventTimeWindows.of(10, 3),
        CumulatingEventTimeWindows.of(12, 4),
        TumblingCalendarWindows.of("day"),
    ]
)


@given(_BATCHES, _BATCHES, _WINDOWS, _HOW)
def test_a_window_join_gives_the_same_on_columns(left_batches, right_batches, windows, how):
    batches = left_batches, right_batches
    by_element = run(_window_plan(batches, windows, how, _by_function))
    by_column = run(_window_plan(batches, windows, how, "k"))
    assert [_counted(batch[0]) for batch in by_column] == [_counted(batch[0]) for batch in by_element]


@given(_BATCHES, _BATCHES, _WINDOWS, _HOW, st.integers(1, 8))
def test_late_elements_have_windows_joined_again_on_columns(left_batches, right_batches, windows, how, lateness):
    """Element by element a window may fire several times in a micro-batch; by column, with the last of its results."""
    batches = left_batches, right_batches
    by_element = run(_window_plan(batches, windows, how, _by_function, lateness))
    by_column = run(_window_plan(batches, windows, how, "k", lateness))
    for found, expected in zip(by_column, by_element, strict=True):
        pairs = {repr(entry) for entry in found[0]}
        # Between late elements of two sides there is no order: which of them finds the other side empty is open.
        both = {repr(entry) for entry in found[0] if entry[0].l is not None and entry[0].r is not None}
        assert both <= {repr(entry) for entry in expected[0]}
        # Results with an empty side are followed by results with both.
        assert pairs >= {repr(entry) for entry in expected[0] if how == "inner"}


@given(_BATCHES, _BATCHES, _WINDOWS, _HOW)
@settings(max_examples=50)
def test_a_window_join_on_columns_goes_on_after_a_restart(left_batches, right_batches, windows, how):
    batches = left_batches, right_batches
    whole = [batch[0] for batch in run(_window_plan(batches, windows, how, "k", 3))]
    parts = [batch[0] for batch in _restarted(lambda: _window_plan(batches, windows, how, "k", 3))]
    assert [_counted(batch) for batch in parts if batch] == [_counted(batch) for batch in whole if batch]


def _counted(rows):
    return Counter(map(repr, rows))


_NUMBERS = st.lists(st.tuples(st.integers(0, 3), st.integers(-10, 10)), max_size=12)


@given(_NUMBERS, _NUMBERS, st.integers(-5, 5), st.integers(0, 5))
def test_rows_that_meet_in_time_are_those_of_a_nested_loop(rows, others, lower, width):
    found = in_time(*_columns(rows), *_columns(others), (lower, lower + width))
    expected = [
        (i, j)
        for i, (key, at) in enumerate(rows)
        for j, (other_key, other_at) in sorted(enumerate(others), key=lambda entry: entry[1][1])
        if key == other_key and lower <= other_at - at <= lower + width
    ]
    assert list(zip(*(array.tolist() for array in found), strict=True)) == expected


@given(_NUMBERS, _NUMBERS, st.booleans(), st.booleans())
def test_rows_with_equal_keys_are_those_of_a_grouped_dictionary(rows, others, keeps_rows, keeps_others):
    groups = defaultdict(lambda: ([], []))
    for side, entries in enumerate((rows, others)):
        for at, (key, _) in enumerate(entries):
            groups[key][side].append(at)
    expected = Counter()
    for first, second in groups.values():
        expected.update((i, j) for i in first for j in second)
        expected.update((i, -1) for i in first if keeps_rows and not second)
        expected.update((-1, j) for j in second if keeps_others and not first)
    found = equal(_columns(rows)[0], _columns(others)[0], (keeps_rows, keeps_others))
    assert Counter(zip(*(array.tolist() for array in found), strict=True)) == expected


def _columns(entries):
    return [np.array([entry[at] for entry in entries], np.int64) for at in (0, 1)]
