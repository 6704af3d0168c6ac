"""Timers against a set: any interleaving of register, delete, advance and restart, also from within a firing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState

TIMER = st.tuples(st.integers(0, 9), st.sampled_from("abcd"), st.sampled_from(["w", None]))
CHANGE = st.tuples(st.sampled_from(["register", "delete"]), TIMER)
STEP = st.one_of(CHANGE, st.tuples(st.just("advance"), st.integers(0, 9)), st.tuples(st.just("restart"), st.none()))


def change(keyed, timers, kind, timer):
    if kind == "register":
        keyed.register_timer(*timer)
        timers.add(timer)
    else:
        keyed.delete_timer(*timer)
        timers.discard(timer)


@settings(deadline=None)
@given(st.lists(STEP, max_size=30), st.lists(CHANGE, max_size=10))
def test_timers_fire_once_and_the_earliest_first(steps, changes_while_firing):
    backend, changes = MemoryBackend(), list(changes_while_firing)
    keyed, timers = KeyedState(backend, 3), set()
    for kind, what in [*steps, ("advance", 9)]:
        if kind == "restart":
            keyed.flush()
            keyed = KeyedState(backend, 3)
        elif kind == "advance":
            for timer in keyed.due_timers(what):
                assert timer in timers
                assert timer[0] == min(time for time, _, _ in timers)
                timers.discard(timer)
                if changes:
                    change(keyed, timers, *changes.pop())
            assert all(time > what for time, _, _ in timers)
        else:
            change(keyed, timers, kind, what)
        assert set(keyed.all_timers()) == timers
        assert len(keyed.all_timers()) == len(timers)
