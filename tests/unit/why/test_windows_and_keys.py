"""The windows of a time, and those of a key, on columns and element by element."""

import dataclasses

import pytest

from eventide.aggregates import count
from eventide.common import Row, Time, Types
from eventide.datastream.functions import KeyedProcessFunction, ProcessJoinFunction, in_python
from eventide.datastream.state import ListStateDescriptor, StateTtlConfig, ValueStateDescriptor
from eventide.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from eventide.errors import ProgramError
from eventide.joins import left, right
from eventide.pickling.stand_ins import shown_loads
from eventide.testing import ScriptedSource, local_environment
from eventide.why import why
from support.stories import MINUTE, NOON, Story, bounded
from support.twin import Contents

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


def with_all_elements(windows, *batches):
    return Story(orders(batches).key_by("shop", "city").window(windows).process(Contents()).name("totals"))


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


def test_elements_that_are_kept_on_columns_are_counted_and_shown():
    batches = [("a", NOON), ("b", NOON)], [("a", NOON + 1)]
    [answer] = with_all_elements(MINUTE, *batches).why(key="a,here").keys
    assert [one.elements for one in answer.windows] == [2]
    assert f"'at': {NOON + 1}" in answer.windows[0].kept
    fine = SlidingEventTimeWindows.of(Time.minutes(2), Time.seconds(1))  # several windows share an element
    [answer] = with_all_elements(fine, *batches).why(key="a,here").keys
    assert [one.elements for one in answer.windows] == [2] * 120


@pytest.mark.parametrize(("kind", "key"), [(on_columns, "None,here"), (on_elements, "None")])
def test_a_missing_key_is_asked_for_by_its_name_in_python(kind, key):
    [answer] = kind(MINUTE, [("a", NOON), (None, NOON + 1)]).why(key=key).keys
    assert [one.window.start for one in answer.windows] == [NOON]


def without_the_program(story):
    """The evidence on a job of which only the checkpoint is left."""
    return dataclasses.replace(story.evidence(), loads=shown_loads)


def test_objects_of_the_program_are_shown_where_the_program_is_not():
    story = on_elements(MINUTE, [("a", NOON)])
    [answer] = why(without_the_program(story), key="a").keys
    assert f"Row(shop='a', city='here', at={NOON})" in answer.windows[0].kept


def test_a_key_that_has_nothing():
    answer = on_columns(MINUTE, *BATCHES).why(key="nobody")
    assert answer.keys[0].windows == []
    assert "key 'nobody' has nothing in 'totals'" in str(answer)
    assert answer.to_json()["keys"] == [{"operator": "totals", "key": "nobody", "windows": [], "kept": []}]


SESSIONS = EventTimeSessionWindows.with_gap(Time.minutes(1))


@pytest.mark.parametrize(("kind", "key"), [(on_columns, "a,here"), (on_elements, "a")])
def test_a_key_is_in_its_sessions(kind, key):
    answer = kind(SESSIONS, *BATCHES, [("a", NOON + 200_000)]).why(key=key)
    [found] = answer.keys
    assert [(one.window.start, one.window.end, one.window.phase.name) for one in found.windows] == [
        (NOON + 200_000, NOON + 260_000, "OPEN")
    ]
    assert f"key '{key}' is in the window 2026-09-21 14:17:20 UTC to 2026-09-21 14:18:20 UTC of 'totals'" in str(answer)
    assert "it fires when the watermark reaches 2026-09-21 14:18:19.999 UTC, for which it waits for 'p'" in str(answer)
    asked = kind(SESSIONS, *BATCHES).why(at=NOON)
    assert asked.windows == ()
    assert (
        "the windows of 'totals' are not fixed windows of event time, so they cannot be looked up by a time"
        in asked.notes
    )


class Price:
    """An object of the program's."""

    def __init__(self, euros):
        self.euros = euros

    def __repr__(self):
        raise AssertionError("nothing of it is called")


class Remembers(KeyedProcessFunction):
    """Keeps state of several kinds, and timers."""

    def open(self, runtime_context):
        seen = ListStateDescriptor("seen", Types.LONG())
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_list_state(seen)
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.price = runtime_context.get_state(ValueStateDescriptor("price", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        self.last.update(value.at)
        self.seen.add(value.at)
        self.price.update(Price(7))
        ctx.timer_service().register_event_time_timer(value.at + 60_000)
        ctx.timer_service().register_processing_time_timer(NOON + 3_600_000)


def test_a_function_has_state_and_timers_of_a_key():
    batches = [("a", NOON + 1_000), ("b", NOON + 2_000)], [("a", NOON + 30_000), ("a", NOON + 70_000)]
    story = Story(orders(batches).key_by(lambda order: order.shop).process(Remembers(), Types.LONG()).name("remembers"))
    answer = why(without_the_program(story), key="a")
    assert sorted(answer.keys[0].kept) == [
        ("state 'last'", str(NOON + 70_000)),
        ("state 'price'", "Price(euros=7)"),
        ("state 'seen'", repr([NOON + 1_000, NOON + 30_000, NOON + 70_000])),
        ("timer of event time", "2026-09-21 14:15:30 UTC"),
        ("timer of event time", "2026-09-21 14:16:10 UTC"),
        ("timer of processing time", "2026-09-21 15:14:00 UTC"),
    ]
    assert "key 'a' has in 'remembers': timer of event time: 2026-09-21 14:16:10 UTC" in str(answer)
    assert "key 'nobody' has nothing in 'remembers'" in str(why(without_the_program(story), key="nobody"))


@pytest.mark.parametrize("key", ["shop", lambda order: order.shop])
def test_a_key_that_has_changed_again_and_again_has_what_it_has_now(key):
    everyone = [(f"shop-{number}", NOON) for number in range(2_000)]
    again = [[(f"shop-{number}", NOON + 1_000)] for number in (*range(13), 5)]
    story = Story(orders([everyone, *again, [("shop-5", NOON + 2_000)]]).key_by(key).max_by("at").name("latest"))
    for number, at in ((4, NOON + 1_000), (5, NOON + 2_000), (13, NOON)):
        [(_, kept)] = story.why(key=f"shop-{number}").keys[0].kept
        assert f"at={at}" in kept


class BothTimes(ProcessJoinFunction):
    """Gives the times of both."""

    def process_element(self, left, right, ctx):
        yield left.at, right.at


def two_streams():
    """Two streams of orders of shop "a", each with two elements."""
    env = local_environment()
    for name in ("left", "right"):
        script = [[("p", Row(shop="a", city=name, at=NOON + second * 1_000)) for second in (1, 2)]]
        source = ScriptedSource(["p"], script, ORDER, bounded=False)
        yield env.from_source(source, bounded().with_timestamp_assigner("at"), name)


def test_an_interval_join_on_columns_has_elements_of_either_side():
    one, other = two_streams()
    join = one.key_by("shop").interval_join(other.key_by("shop")).between(0, 60_000)
    story = Story(join.select(left("city"), right("at")).name("join"))
    assert dict(why(without_the_program(story), key="a").keys[0].kept) == {
        "left elements": "2: {'city': 'left'}, {'city': 'left'}",
        "right elements": f"2: {{'at': {NOON + 1_000}}}, {{'at': {NOON + 2_000}}}",
    }


def test_an_interval_join_of_elements_has_elements_of_either_side():
    one, other = two_streams()
    join = one.key_by(lambda o: o.shop).interval_join(other.key_by(lambda o: o.shop)).between(0, 60_000)
    story = Story(join.process(in_python(BothTimes())).name("join"))
    kept = dict(why(without_the_program(story), key="a").keys[0].kept)
    assert kept["left elements"].startswith("2, of 2026-09-21 14:14:01 UTC to 2026-09-21 14:14:02 UTC: [Row(shop='a'")
    assert "right elements" in kept


@pytest.mark.parametrize("key", ["a", "b"])
def test_a_window_join_on_columns_has_rows_in_its_windows(key):
    one, other = two_streams()
    pairs = one.join(other).where("shop").equal_to("shop").window(MINUTE)
    answer = Story(pairs.select(left("city"), right("at")).name("join")).why(key=key, at=NOON)
    assert [one.elements for one in answer.keys[0].windows] == ([4] if key == "a" else [])
    assert [window.held for _, window in answer.windows] == [4]


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
    for at in ("noon", "--5", str(2**63), "9" * 5_000):
        with pytest.raises(ProgramError, match="is not a time"):
            story.why(at=at)
