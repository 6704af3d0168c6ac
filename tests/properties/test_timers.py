"""Timers against sets: any interleaving of register, delete, advance and restart, also from within a firing."""

from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState

KIND = st.sampled_from(["event_timers", "processing_timers"])
TIMER = st.tuples(st.integers(0, 9), st.sampled_from("abcd"), st.sampled_from(["w", None]))
CHANGE = st.tuples(st.sampled_from(["register", "delete"]), KIND, TIMER)
ADVANCE = st.tuples(st.just("advance"), KIND, st.integers(0, 9))
RESTART = st.tuples(st.just("restart"), st.none(), st.none())


def change(keyed, expected, what, kind, timer):
    getattr(getattr(keyed, kind), what)(*timer)
    if what == "register":
        expected[kind].add(timer)
    else:
        expected[kind].discard(timer)


@given(st.lists(CHANGE | ADVANCE | RESTART, max_size=30), st.lists(CHANGE, max_size=10))
def test_timers_fire_once_and_the_earliest_first(steps, changes_while_firing):
    backend, changes = MemoryBackend(), list(changes_while_firing)
    keyed, expected = KeyedState(backend, 3), {"event_timers": set(), "processing_timers": set()}
    for what, kind, argument in [*steps, ("advance", "event_timers", 9), ("advance", "processing_timers", 9)]:
        if what == "restart":
            keyed.flush()
            keyed = KeyedState(backend, 3)
        elif what == "advance":
            for timer in getattr(keyed, kind).due(argument):
                assert timer in expected[kind]
                assert timer[0] == min(time for time, _, _ in expected[kind])
                expected[kind].discard(timer)
                if changes:
                    change(keyed, expected, *changes.pop())
            assert all(time > argument for time, _, _ in expected[kind])
        else:
            change(keyed, expected, what, kind, argument)
        for each, timers in expected.items():
            next_ms, earliest = getattr(keyed, each).next_ms(), min((time for time, _, _ in timers), default=None)
            # Of timers that were deleted, the times may still be there.
            assert earliest is None or (next_ms is not None and next_ms <= earliest)
    for each, timers in expected.items():
        assert sorted(getattr(keyed, each).all(), key=str) == sorted(timers, key=str)
