"""Transactions on keyed state: what is done to a key stands as a whole or not at all."""

import copy

import pytest

from eventide.common import Row, Types
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.expiring import ONE, SUFFIX
from eventide.runtime.state.transaction import TransactionalState

WINDOW = (0, 10)
GROWING = "growing"


@pytest.fixture
def state():
    state = TransactionalState(MemoryBackend(), 128, frozenset({GROWING}))
    for namespace in (None, WINDOW):
        state.write("a", namespace, "list", [1])
    state.write("a", WINDOW, GROWING, [1])
    state.event_timers.register(5, "a", None)
    return state


def content(state):
    return copy.deepcopy(dict(state.all_entries())), state.event_timers.all()


def change(state, time_ms=7):
    """Change every kind of state in place and by name, set a timer, and delete one."""
    for namespace in (None, WINDOW):
        state.read("a", namespace, "list").append(2)
        state.write("a", namespace, "new", 3)
    state.read("a", WINDOW, GROWING).append(2)
    state.event_timers.register(time_ms, "a", None)
    state.event_timers.delete(5, "a", None)


CHANGED = {"list": [1, 2], "new": 3}


def test_what_is_rolled_back_has_never_been(state):
    before = content(state)
    state.begin("a")
    change(state)
    state.rollback()
    assert content(state) == before


def test_timers_are_set_and_deleted_with_the_commit(state):
    state.begin("a")
    change(state)
    assert state.event_timers.all() == [(5, "a", None)]
    state.commit()
    assert content(state) == (
        {("a", None): CHANGED, ("a", WINDOW): {**CHANGED, GROWING: [1, 2]}},
        [(7, "a", None)],
    )


def test_what_is_taken_comes_back(state):
    before = content(state)
    state.begin("a")
    assert state.take("a", WINDOW, "list") == [1]
    state.take_all("a", None, "")
    state.rollback()
    assert content(state) == before


def test_one_within_another_is_rolled_back_by_itself(state):
    state.begin("a")
    state.write("a", WINDOW, "outer", 1)
    state.event_timers.register(6, "a", None)
    state.begin("a")
    change(state)
    state.rollback()
    state.commit()
    entries, timers = content(state)
    assert entries == {("a", None): {"list": [1]}, ("a", WINDOW): {"list": [1], GROWING: [1], "outer": 1}}
    assert timers == [(5, "a", None), (6, "a", None)]


def test_what_is_committed_within_another_goes_with_it(state):
    before = content(state)
    state.begin("a")
    state.read("a", WINDOW, GROWING).append(0)
    state.begin("a")
    change(state)
    state.commit()
    state.rollback()
    assert content(state) == before


def test_without_a_transaction_changes_take_effect_at_once(state):
    change(state)
    assert content(state)[1] == [(7, "a", None)]


def test_values_of_a_type_that_becomes_wider_within_a_transaction_stay_wide_if_it_is_rolled_back():
    narrow, wide = Types.ROW_NAMED(["a"], [Types.LONG()]), Types.ROW_NAMED(["b", "a"], [Types.LONG(), Types.LONG()])
    backend = MemoryBackend()
    state = TransactionalState(backend, 128)
    state.declare("row", narrow)
    for key, namespace in (("k", None), ("k", WINDOW), ("k", "untouched"), ("other", None)):
        state.write(key, namespace, "row", Row(a=1))
    state.write("k", None, "row" + SUFFIX, (10, ONE, (5, Row(a=1))))
    state.flush()

    state = TransactionalState(backend, 128)
    state.begin("k")
    state.take("k", WINDOW, "row")
    state.begin("k")
    state.declare("row", wide)
    for namespace in (None, "new"):
        state.write("k", namespace, "row", Row(b=2, a=2))
    state.rollback()
    assert state.read("k", None, "row") == Row(b=None, a=1)
    state.rollback()
    state.declare("row", wide)
    row = Row(b=None, a=1)
    assert state.all_entries() == {
        ("k", None): {"row": row, "row" + SUFFIX: (10, ONE, (5, row))},
        ("k", WINDOW): {"row": row},
        ("k", "untouched"): {"row": row},
        ("other", None): {"row": row},
    }
