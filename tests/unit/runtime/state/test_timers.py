"""Timers of both kinds: they fire once and in order, know the next one, and leave those of the other kind alone."""

import numpy as np
import pytest

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.runtime.elements.keys import key_group
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import WaitingTimers, _TimerRun
from support.counting_backend import CountingBackend


@pytest.fixture(params=["event_timers", "processing_timers"])
def kind(request):
    """The name of one kind of timers; the rules are the same for both."""
    return request.param


def timers_of(kind, backend=None):
    """The timers of a new subtask."""
    return getattr(KeyedState(backend or MemoryBackend(), 8), kind)


def stored(kind, backend, *timers):
    """Set timers in one micro-batch and start the next one."""
    keyed = KeyedState(backend, 8)
    for timer in timers:
        getattr(keyed, kind).register(*timer)
    keyed.flush()
    backend.calls.clear()
    return timers_of(kind, backend)


def test_an_advance_reads_only_the_keys_that_it_fires(kind):
    timers = stored(kind, CountingBackend(), (5, "a", "w"), (50, "c", "w"))
    assert list(timers.due(4)) == []
    assert timers._keys.keys == []
    assert list(timers.due(5)) == [(5, "a", "w")]
    assert timers._keys.keys == ["a"]


def test_an_advance_fires_only_what_is_due(kind):
    keyed = KeyedState(MemoryBackend(), 8)
    for time, key in [(5, "a"), (50, "b"), (7, "c")]:
        getattr(keyed, kind).register(time, key, "w")
    keyed.flush()
    assert list(getattr(keyed, kind).due(6)) == [(5, "a", "w")]
    assert [*keyed.index] == ["a"]
    assert getattr(keyed, kind).next_ms() == 7
    assert list(getattr(keyed, kind).due(7)) == [(7, "c", "w")]
    assert getattr(keyed, kind).next_ms() == 50


def test_a_timer_beyond_the_end_of_time_is_stored_as_one_at_its_end(kind):
    timers = stored(kind, CountingBackend(), (2**70, "a", None), (-(2**70), "b", "w"))
    assert timers.all() == [(MIN_MS, "b", "w"), (MAX_MS, "a", None)]


def test_timers_of_one_time_fire_by_key_group_and_then_as_they_were_set_loaded_or_not(kind):
    keys = [f"k{i}" for i in range(20)]
    expected = sorted(keys, key=lambda key: key_group(key, 8))
    for touched in ([], ["k3", "k11"], keys):
        keyed = KeyedState(MemoryBackend(), 8)
        for key in keys[:10]:
            getattr(keyed, kind).register(1, key, "w")
        keyed.flush()
        for key in touched:
            keyed.read(key, "w", "n")
        for key in keys[10:]:
            getattr(keyed, kind).register(1, key, "w")
        assert [key for _, key, _ in getattr(keyed, kind).due(1)] == expected


def test_a_timer_at_the_end_of_time_fires_then(kind):
    timers = stored(kind, CountingBackend(), (MAX_MS, "a", "w"), (MIN_MS, "b", "w"))
    assert list(timers.due(MIN_MS)) == [(MIN_MS, "b", "w")]
    assert list(timers.due(MAX_MS - 1)) == []
    assert list(timers.due(MAX_MS)) == [(MAX_MS, "a", "w")]


def test_a_timer_at_the_end_of_time_comes_up_by_itself(kind):
    for namespace in (None, "w"):
        timers = stored(kind, CountingBackend(), (MAX_MS, "a", namespace))
        assert timers.next_ms() == MAX_MS - 1  # together with those of the millisecond before
        assert list(timers.due(MAX_MS - 1)) == []
        assert list(timers.due(MAX_MS)) == [(MAX_MS, "a", namespace)]


def test_timers_fire_at_their_time_in_order_over_all_keys_and_once(kind):
    timers = timers_of(kind)
    for time, key in [(3, "a"), (1, "b"), (2, "c"), (1, "b"), (4, "d")]:
        timers.register(time, key, "w")
    assert list(timers.due(0)) == []
    assert list(timers.due(3)) == [(1, "b", "w"), (2, "c", "w"), (3, "a", "w")]
    assert list(timers.due(3)) == []
    assert list(timers.due(4)) == [(4, "d", "w")]
    assert timers.all() == []


def test_a_deleted_timer_does_not_fire_and_deleting_nothing_is_nothing(kind):
    timers = timers_of(kind)
    timers.register(1, "a", "w")
    timers.delete(1, "a", "v")
    timers.delete(2, "a", "w")
    assert timers.all() == [(1, "a", "w")]
    timers.delete(1, "a", "w")
    assert list(timers.due(9)) == []


def test_a_timer_set_while_others_fire_fires_in_the_same_advance_if_it_is_due(kind):
    timers = timers_of(kind)
    timers.register(1, "a", "w")
    timers.register(5, "b", "w")
    fired = []
    for time, key, _ in timers.due(5):
        fired.append((time, key))
        if key == "a" and time < 9:
            timers.register(time + 3, "a", "w")
    assert fired == [(1, "a"), (4, "a"), (5, "b")]
    assert timers.all() == [(7, "a", "w")]


def test_a_timer_deleted_while_others_fire_does_not_fire_even_if_it_is_set_and_deleted_again(kind):
    timers = timers_of(kind)
    for time in (1, 2, 3):
        timers.register(time, "a", "w")
    fired = []
    for time, _, _ in timers.due(5):
        fired.append(time)
        timers.delete(2, "a", "w")
        timers.register(3, "a", "w")
        timers.delete(3, "a", "w")
        if time == 1:
            timers.register(4, "a", "w")
            timers.delete(4, "a", "w")
            timers.register(4, "a", "w")
    assert fired == [1, 4]
    assert timers.all() == []


def test_the_next_timer_is_known_without_reading_anything_else(kind):
    backend = CountingBackend()
    timers = stored(kind, backend, (7, "a", "w"), (5, "b", "w"), (50, "b", "v"))
    assert timers.next_ms() == 5
    assert timers._keys.keys == []


@pytest.mark.parametrize(("of_key", "of_window"), [(5, 7), (7, 5), (5, None), (None, 5)])
def test_the_next_timer_is_that_of_a_key_or_of_a_window(kind, of_key, of_window):
    backend = CountingBackend()
    keyed = KeyedState(backend, 8)
    for time_ms, namespace in ((of_key, None), (of_window, "w")):
        if time_ms is not None:
            getattr(keyed, kind).register(time_ms + 90, "later", namespace)
            getattr(keyed, kind).register(time_ms, "a", namespace)
    keyed.flush()
    backend.calls.clear()
    timers = timers_of(kind, backend)
    assert (timers.next_ms(), timers._keys.keys) == (5, [])


def test_the_next_timer_follows_what_is_set_deleted_and_fired(kind):
    timers = stored(kind, CountingBackend(), (7, "a", "w"), (5, "b", "w"))
    timers.register(3, "b", None)
    assert timers.next_ms() == 3
    timers.delete(3, "b", None)
    timers.delete(5, "b", "w")
    assert timers.next_ms() == 7
    assert list(timers.due(7)) == [(7, "a", "w")]
    assert timers.next_ms() is None


def test_the_next_timer_is_known_after_the_state_was_stored(kind):
    keyed = KeyedState(MemoryBackend(), 8)
    timers = getattr(keyed, kind)
    assert timers.next_ms() is None
    timers.register(7, "a", "w")
    keyed.flush()
    assert timers.next_ms() == 7
    assert list(timers.due(7)) == [(7, "a", "w")]
    keyed.flush()
    assert timers.next_ms() is None


def test_the_kinds_know_nothing_of_each_other():
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8)
    keyed.event_timers.register(1, "a", "w")
    keyed.processing_timers.register(2, "a", "w")
    keyed.flush()
    keyed = KeyedState(backend, 8)
    assert (keyed.event_timers.next_ms(), keyed.processing_timers.next_ms()) == (1, 2)
    assert list(keyed.processing_timers.due(9)) == [(2, "a", "w")]
    assert keyed.event_timers.all() == [(1, "a", "w")]
    keyed.processing_timers.register(1, "a", "w")
    keyed.event_timers.delete(1, "a", "w")
    assert keyed.processing_timers.all() == [(1, "a", "w")]


def test_a_timer_set_for_the_other_kind_while_timers_fire_waits_for_its_own_time():
    keyed = KeyedState(MemoryBackend(), 8)
    keyed.event_timers.register(1, "a", "w")
    for time, key, namespace in keyed.event_timers.due(5):
        keyed.processing_timers.register(time, key, namespace)
    assert keyed.processing_timers.all() == [(1, "a", "w")]


def test_a_timer_that_waits_is_brought_up_when_it_is_due_and_stored_as_it_was(kind):
    backend = CountingBackend()
    timers = stored(kind, backend, (5, "a", None), (7, "a", None), (9, "a", None))
    timers.register(7, "a", None)
    timers.delete(9, "a", None)
    timers.delete(5, "a", None)
    timers.register(5, "a", None)
    timers.register(6, "a", None)
    assert timers.next_ms() == 5
    assert list(timers.due(5)) == [(5, "a", None)]
    timers._keys.flush()
    timers = timers_of(kind, backend)
    timers.register(8, "a", None)
    assert timers.all() == [(6, "a", None), (7, "a", None), (8, "a", None)]


def test_a_timer_that_is_set_again_fires_in_the_place_of_the_first_time(kind):
    first, second = sorted(["k0", "k1", "k2"], key=lambda key: key_group(key, 1))[:2]
    keyed = KeyedState(MemoryBackend(), 1)
    for key in (first, second):
        getattr(keyed, kind).register(5, key, None)
    for again in (first, second):
        keyed.flush()
        getattr(keyed, kind).register(5, again, None)
        keyed.flush()
    getattr(keyed, kind).delete(5, first, None)
    getattr(keyed, kind).register(5, first, None)
    assert [key for _, key, _ in getattr(keyed, kind).due(5)] == [second, first]


def test_an_advance_looks_only_at_waiting_timers_of_which_some_are_due(kind, monkeypatch):
    looked_at = []
    take = _TimerRun.take
    monkeypatch.setattr(_TimerRun, "take", lambda run, until_ms: (looked_at.append(run), take(run, until_ms))[1])
    timers = stored(kind, CountingBackend(), *((100 + number, f"k{number}", None) for number in range(20)))
    for number in range(20):
        timers.register(200, f"k{number}", None)
        assert list(timers.due(50 + number)) == []
    assert looked_at == []
    assert [key for _, key, _ in timers.due(101)] == ["k0", "k1"]
    assert 0 < len(looked_at) < 20


def test_timers_whose_keys_are_known_by_place_alone_are_taken_out_step_by_step():
    waiting = WaitingTimers([])
    waiting.add((np.array([1, 0, 1, 0]), np.array([7, 5, 6, 8]), np.arange(4)))
    taken = []
    for until_ms in (5, 6, 7):
        places, times, _ = waiting.take(until_ms)
        taken.append((places.tolist(), times.tolist(), waiting.next_ms({})))
    assert taken == [([0], [5], 6), ([1], [6], 7), ([1], [7], 8)]


def test_in_batch_execution_no_timer_of_either_kind_is_set_once_one_fires():
    keyed = KeyedState(MemoryBackend(), 8, in_batch=True)
    keyed.event_timers.register(1, "a", None)
    keyed.event_timers.register(1, "a", None)
    keyed.processing_timers.register(5, "a", None)
    fired = []
    for timer in keyed.event_timers.due(MAX_MS):
        fired.append(timer)
        keyed.event_timers.register(timer[0] + 1, "a", None)
        keyed.processing_timers.register(6, "a", None)
    assert fired == [(1, "a", None)]
    assert list(keyed.processing_timers.due(MAX_MS)) == [(5, "a", None)]
