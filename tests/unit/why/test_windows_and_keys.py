"""The windows of a time, and those of a key, on columns and element by element."""

import pytest

from eventide.aggregates import count
from eventide.common import Row, Time, Types
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from eventide.errors import ProgramError, StateError
from eventide.testing import ScriptedSource, local_environment
from eventide.why import why
from unit.why.stories import MINUTE, NOON, Story, bounded

ORDER = Types.ROW_NAMED(["shop", "city", "at"], [Types.STRING(), Types.STRING(), Types.LONG()])
SLIDING = SlidingEventTimeWindows.of(Time.minutes(2), Time.minutes(1))


def orders(batches):
    script = [[("p", Row(shop=shop, city="here", at=at)) for shop, at in batch] for batch in batches]
    source = ScriptedSource(["p"], script, ORDER, bounded=False)
    return local_environment().from_source(source, bounded().with_timestamp_assigner("at"), "orders")


def on_columns(windows, *batches):
    return Story(orders(batches).key_by("shop", "city").window(windows).aggregate(count().alias("n")).name("totals"))


def on_elements(windows, *batches):
    return Story(orders(batches).key_by(lambda o: o.shop).window(windows).reduce(lambda a, b: a).name("totals"))


BATCHES = ([("a", NOON + 1_000), ("b", NOON + 2_000)], [("a", NOON + 30_000), ("a", NOON + 70_000)])


@pytest.mark.parametrize(("kind", "key"), [(on_columns, "a,here"), (on_elements, "a")])
def test_a_key_is_in_the_windows_that_have_not_gone(kind, key):
    [answer] = kind(MINUTE, *BATCHES).why(key=key).keys
    assert [(one.window.start, one.window.phase.name) for one in answer.windows] == [(NOON + 60_000, "OPEN")]
    text = str(kind(MINUTE, *BATCHES).why(key=key))
    assert f"key '{key}' is in the window 2026-09-21 14:15:00 UTC to 2026-09-21 14:16:00 UTC of 'totals'" in text


@pytest.mark.parametrize(("kind", "key"), [(on_columns, "a,here"), (on_elements, "a")])
def test_where_windows_slide_a_key_is_in_several(kind, key):
    [answer] = kind(SLIDING, *BATCHES).why(key=key).keys
    assert [one.window.start for one in answer.windows] == [NOON, NOON + 60_000]


def test_on_columns_it_is_known_how_many_elements_a_key_has():
    [answer] = on_columns(MINUTE, [("a", NOON), ("a", NOON + 1), ("b", NOON)]).why(key="a,here").keys
    assert [one.elements for one in answer.windows] == [2]


def test_element_by_element_it_is_shown_what_is_kept():
    [answer] = on_elements(MINUTE, [("a", NOON), ("b", NOON)]).why(key="a").keys
    assert f"at={NOON}" in answer.windows[0].kept


def test_objects_of_the_program_are_not_made_where_the_program_is_not():
    story = on_elements(MINUTE, [("a", NOON)])
    evidence = story.evidence()
    object.__setattr__(evidence, "loads", type(evidence).__dataclass_fields__["loads"].default)
    with pytest.raises(StateError, match="should be plain values, and has"):
        why(evidence, key="a")


def test_a_key_that_has_nothing():
    answer = on_columns(MINUTE, *BATCHES).why(key="nobody")
    assert answer.keys[0].windows == []
    assert "key 'nobody' has nothing in 'totals'" in str(answer)
    assert answer.to_json()["keys"] == [{"operator": "totals", "key": "nobody", "windows": []}]


def test_sessions_have_no_fixed_windows():
    answer = on_columns(EventTimeSessionWindows.with_gap(Time.minutes(1)), *BATCHES).why(key="a,here", at=NOON)
    assert answer.keys[0].windows is None
    assert answer.windows == ()
    assert "no fixed windows" in str(answer)


@pytest.mark.parametrize("kind", [on_columns, on_elements])
def test_what_a_window_holds_where_windows_slide(kind):
    answer = kind(SLIDING, *BATCHES).why(at=NOON + 61_000)
    assert [(window.start, window.phase.name) for _, window in answer.windows] == [
        (NOON, "OPEN"),
        (NOON + 60_000, "OPEN"),
    ]
    assert all(window.held for _, window in answer.windows)


def test_a_time_is_written_as_iso_or_as_milliseconds():
    story = on_columns(MINUTE, *BATCHES)
    found = [story.why(at=at).windows[0][1] for at in (NOON, "2026-09-21T14:14", "2026-09-21T16:14+02:00", str(NOON))]
    assert {window.start for window in found} == {NOON}
    with pytest.raises(ProgramError, match="is no time"):
        story.why(at="noon")
