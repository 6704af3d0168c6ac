"""Which channels are silent for too long."""

import json

import pytest

from eventide.runtime.eventtime.valve import Idleness


def watched(*heard, clock=0):
    """Two channels, of which one or the other is heard in a micro-batch."""
    idleness = Idleness(timeout_ms=99)
    for channel in heard:
        idleness.hear(channel)
    idleness.end_batch(["a", "b"], clock)
    return idleness


@pytest.mark.parametrize(("clock", "silent"), [(99, set()), (100, {"a", "b"}), (101, {"a", "b"})])
def test_the_timeout_runs_from_the_batch_in_which_a_channel_was_heard_of(clock, silent):
    idleness = watched("a")
    idleness.end_batch(["a", "b"], clock)
    assert idleness.silent == silent


def test_elements_start_the_timeout_anew_and_end_the_silence_at_once():
    idleness = watched()
    idleness.end_batch(["a", "b"], 100)
    assert (idleness.silent, idleness.next_deadline_ms) == ({"a", "b"}, None)
    idleness.hear("b")
    assert idleness.silent == {"a"}
    idleness.end_batch(["a", "b"], 110)
    assert (idleness.silent, idleness.next_deadline_ms) == ({"a"}, 210)


def test_the_next_deadline_is_that_of_the_channel_that_was_silent_longest_but_not_too_long():
    idleness = watched()
    idleness.hear("a")
    idleness.end_batch(["a", "b"], 30)
    assert idleness.next_deadline_ms == 100
    idleness.end_batch(["a", "b"], 100)
    assert idleness.next_deadline_ms == 130


def test_a_channel_that_is_gone_is_forgotten_and_starts_anew_when_it_comes_back():
    idleness = watched()
    idleness.end_batch(["a"], 50)
    idleness.end_batch(["a", "b"], 100)
    assert idleness.silent == {"a"}
    idleness.end_batch([], 100)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), None)


def test_a_restart_changes_nothing():
    before = watched()
    before.hear("a")
    before.end_batch(["a", "b"], 60)
    after = Idleness(timeout_ms=99)
    after.restore(json.loads(json.dumps(before.snapshot())))
    for idleness in (before, after):
        assert (idleness.silent, idleness.next_deadline_ms) == (set(), 100)
        idleness.end_batch(["a", "b"], 100)
        assert (idleness.silent, idleness.next_deadline_ms) == ({"b"}, 160)


def test_the_clock_stands_still_for_a_channel_that_is_held_from_then_until_it_is_let_go():
    idleness = Idleness(timeout_ms=100)
    idleness.hear("b")
    idleness.end_batch(["a", "b"], 0)
    idleness.hold("a", True)
    idleness.end_batch(["a", "b"], 60)  # what went by before it was held counts
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 101)
    again = Idleness(timeout_ms=100)
    again.restore(json.loads(json.dumps(idleness.snapshot())))
    for held in (idleness, again):
        held.hold("a", False)
        held.end_batch(["a", "b"], 1_060)
        assert (held.silent, held.next_deadline_ms) == ({"b"}, 1_101)
        held.end_batch(["a", "b"], 1_100)
        assert held.silent == {"b"}
        held.end_batch(["a", "b"], 1_101)
        assert held.silent == {"a", "b"}


def test_what_an_older_version_stored_holds_nobody():
    idleness = Idleness(timeout_ms=100)
    idleness.restore([{"a": 50}, []])
    idleness.end_batch(["a"], 150)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 151)


def test_a_clock_that_is_set_back_adds_nothing_and_takes_nothing_away():
    idleness = watched(clock=1_000)
    idleness.hear("a")
    idleness.end_batch(["a", "b"], 1_060)
    idleness.end_batch(["a", "b"], 0)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 40)
    idleness.end_batch(["a", "b"], 40)
    assert (idleness.silent, idleness.next_deadline_ms) == ({"b"}, 100)


def test_a_channel_that_is_held_stays_so_when_timeouts_begin_anew():
    idleness = Idleness(timeout_ms=100)
    idleness.hold("a", True)
    idleness.end_batch(["a", "b"], 0)
    idleness.end_batch(["a", "b"], 101)
    assert idleness.begin_anew() == {"b"}
    idleness.end_batch(["a", "b"], 10_000)
    assert (idleness.silent, idleness.next_deadline_ms) == (set(), 10_101)
    idleness.end_batch(["a", "b"], 10_101)
    assert idleness.silent == {"b"}
