"""Timers against dicts: any interleaving of register, delete, advance and restart, also from within a firing."""

from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.elements.keys import groups_of_hashes, hashes_of
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState

KIND = st.sampled_from(["event_timers", "processing_timers"])
TIMER = st.tuples(st.integers(0, 9), st.sampled_from("abcd"), st.sampled_from(["w", None]))
CHANGE = st.tuples(st.sampled_from(["register", "delete"]), KIND, TIMER)
ADVANCE = st.tuples(st.just("advance"), KIND, st.integers(0, 9))
RESTART = st.tuples(st.just("restart"), st.none(), st.none())


GROUPS = dict(zip("abcd", groups_of_hashes(hashes_of([*"abcd"]), 2).tolist(), strict=True))


def change(keyed, expected, what, kind, timer):
    """Change a timer, and the expected ones, which lie in the order in which they were set."""
    getattr(getattr(keyed, kind), what)(*timer)
    if what == "register":
        expected[kind].setdefault(timer)
    else:
        expected[kind].pop(timer, None)


def first_of(timers):
    """The timer that fires first: of two of one time and key group, the one that was set first."""
    return min(timers, key=lambda timer: (timer[0], GROUPS[timer[1]]))


@given(st.lists(CHANGE | ADVANCE | RESTART, max_size=30), st.lists(CHANGE, max_size=10))
def test_timers_fire_once_in_their_order(steps, changes_while_firing):
    backend, changes = MemoryBackend(), list(changes_while_firing)
    keyed, expected = KeyedState(backend, 2), {"event_timers": {}, "processing_timers": {}}
    for what, kind, argument in [*steps, ("advance", "event_timers", 9), ("advance", "processing_timers", 9)]:
        if what == "restart":
            keyed.flush()
            keyed = KeyedState(backend, 2)
        elif what == "advance":
            for timer in getattr(keyed, kind).due(argument):
                assert timer == first_of(expected[kind])
                del expected[kind][timer]
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
