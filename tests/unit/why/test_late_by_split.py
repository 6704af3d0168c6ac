"""How many late elements came from which split: what the operator judged, by the split that each element names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.aggregates import count
from eventide.common import Row, Time, Types
from eventide.datastream import OutputTag
from eventide.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from eventide.testing import End, ScriptedSource, local_environment
from support.stories import NOON, Story, bounded

READING = Types.ROW_NAMED(["split", "key", "at"], [Types.STRING(), Types.STRING(), Types.LONG()])
LATE = OutputTag("late", READING)
SPLITS = ["a", "b", "c"]
FIXED = [
    TumblingEventTimeWindows.of(Time.seconds(10)),
    TumblingEventTimeWindows.of(Time.seconds(10), Time.seconds(3)),
    SlidingEventTimeWindows.of(Time.seconds(20), Time.seconds(7)),
]

READINGS = st.tuples(st.sampled_from(SPLITS), st.sampled_from("xy"), st.integers(0, 90).map(lambda s: NOON + s * 1_000))
BATCHES = st.lists(st.lists(READINGS, max_size=12), min_size=1, max_size=8)


def late_of(batches, windows, *, on_columns, lateness_ms=0):
    """The late elements of each split, counted by the elements themselves, and what ``why`` says of them."""
    script = [[(split, Row(split=split, key=key, at=at)) for split, key, at in batch] for batch in batches]
    source = ScriptedSource(SPLITS, script, READING, bounded=False)
    readings = local_environment().from_source(source, bounded(0).with_timestamp_assigner("at"), "readings")
    keyed = readings.key_by("key") if on_columns else readings.key_by(lambda reading: reading.key)
    windowed = keyed.window(windows).allowed_lateness(lateness_ms).side_output_late_data(LATE)
    found = windowed.aggregate(count().alias("n")) if on_columns else windowed.reduce(lambda one, other: one)
    story = Story(found.get_side_output(LATE).map(lambda reading: reading.split, Types.STRING()))
    [standing] = story.why().standings
    return {split: story.results.count(split) for split in SPLITS if split in story.results}, standing.late_from


@pytest.mark.parametrize("on_columns", [True, False])
@pytest.mark.parametrize("windows", FIXED, ids=str)
@settings(max_examples=20)
@given(batches=BATCHES, lateness_s=st.sampled_from([0, 4]))
def test_of_fixed_windows_it_is_exact(windows, on_columns, batches, lateness_s):
    counted, said = late_of(batches, windows, on_columns=on_columns, lateness_ms=lateness_s * 1_000)
    assert {one.split: one.elements for one in said} == counted
    assert all(one.is_exact for one in said)


@pytest.mark.parametrize("on_columns", [True, False])
@settings(max_examples=20)
@given(batches=BATCHES)
def test_of_sessions_it_is_a_share_of_what_was_late(on_columns, batches):
    windows = EventTimeSessionWindows.with_gap(Time.seconds(10))
    counted, said = late_of(batches, windows, on_columns=on_columns)
    assert counted.keys() <= {one.split for one in said} or sum(counted.values()) < len(SPLITS)
    if all(one.is_exact for one in said):
        assert {one.split: one.elements for one in said} == counted


def test_splits_that_have_ended_are_one():
    script = [
        [("p0", ("shop", NOON + 60_000)), ("p1", ("shop", NOON + 60_000))],
        [("p0", ("shop", NOON)), ("p1", ("shop", NOON + 1)), ("p1", ("shop", NOON + 2)), End("p1")],
    ]
    source = ScriptedSource(["p0", "p1"], script, Types.TUPLE([Types.STRING(), Types.LONG()]), bounded=False)
    shops = local_environment().from_source(source, bounded(0), "shops").key_by(lambda order: order[0])
    story = Story(shops.window(TumblingEventTimeWindows.of(Time.minutes(1))).reduce(max).name("latest"))
    [standing] = story.why().standings
    assert [(one.split, one.elements, one.is_exact) for one in standing.late_from] == [(None, 2, True), ("p0", 1, True)]
    assert "from       splits that ended: 2, by up to" in str(story.why())
