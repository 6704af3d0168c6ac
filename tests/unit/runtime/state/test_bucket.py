"""Buckets: what is kept of some keys, side by side; and where buckets lie, how many there are, and when each is due."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.state.backend import MemoryBackend, PartOfState
from eventide.runtime.state.bucket import TIMES, Pickled, column, live, owned, read_living
from eventide.runtime.state.bucket_store import BucketStore, Schedule, addresses, parents
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import timers_of
from support.buckets import address
from support.counting_backend import CountingBackend

VALUES = st.integers(-5, 5) | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=2)
KEPT = st.dictionaries(
    st.integers(0, 30),
    st.tuples(
        st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2),
        st.dictionaries(st.tuples(st.integers(-5, 5), st.none() | st.just("w")), st.none(), max_size=4),
    ),
    max_size=12,
)


@given(st.lists(st.none() | VALUES, min_size=1, max_size=8))
def test_a_column_gives_back_what_was_put_into_it(values):
    keys = [*"abcdefgh"[: len(values)]]
    owners, are_pickled, stored = column(values, sum(value is not None for value in values))
    back = owned(keys, owners, [Pickled(value) for value in stored] if are_pickled else stored)
    assert {key: live(value) for key, value in back} == {
        key: value for key, value in zip(keys, values, strict=True) if value is not None
    }


@given(KEPT, st.integers(1, 400))
def test_buckets_have_all_that_is_kept_and_say_when_they_are_due(kept, size):
    backend = MemoryBackend()
    keyed = KeyedState(backend, 8, 8 * size)
    keyed.open_all(range(31))
    for key, (values, timers) in kept.items():
        for name, value in values.items():
            keyed.write(key, None, name, value)
        for time_ms, namespace in timers:
            keyed.event_timers.register(time_ms, key, namespace)
    keyed.flush()
    store, found = BucketStore(backend, 1, TIMES), {}
    for number, content in store.get_many(range(store.count)).items():
        for bucket, places in [] if content is None else read_living(content):
            assert [address(stable_hash(key), store.count) for key in bucket.keys] == [number] * len(places)
            assert bucket.hashes.tolist() == [stable_hash(key) for key in bucket.keys]
            here = {key: ({}, {}) for key in bucket.keys}
            for name, (owners, are_pickled, values) in bucket.values.items():
                for key, value in owned(bucket.keys, owners, map(Pickled, values) if are_pickled else values):
                    here[key][0][name] = live(value)
            plain, spaced = bucket.timers[0]
            for time_ms, key, _ in timers_of(bucket.keys, plain) if plain else ():
                here[key][1][time_ms, None] = None
            for time_ms, (key, namespace), _ in timers_of(bucket.keys, spaced) if spaced else ():
                here[key][1][time_ms, namespace] = None
            times = [time_ms for _, timers in here.values() for time_ms, _ in timers]
            assert bucket.earliest == (min(times, default=None), None, None)
            found |= here
    assert found == {key: parts for key, parts in kept.items() if any(parts)}


@pytest.mark.parametrize(("wanted", "calls"), [(10, 10), (255, 255), (299, 299), (300, 1), (600, 1)])
def test_most_buckets_are_read_at_once_and_few_one_by_one(wanted, calls):
    backend = CountingBackend()
    store = BucketStore(PartOfState(backend, "left/"), 100, ())
    store.grow(60_000, 60_000)
    for bucket in range(0, store.count, 2):
        store.put(bucket, b"%d" % bucket)
    store.flush()
    backend.put("right/bucket/1", b"of somebody else")

    store = BucketStore(PartOfState(backend, "left/"), 100, ())
    backend.calls.clear()
    found = store.get_many(range(wanted))
    assert found == {bucket: None if bucket % 2 else b"%d" % bucket for bucket in range(wanted)}
    assert len(backend.calls) == calls


HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=50)
COUNTS = st.integers(1, 70)


@given(HASHES, COUNTS)
def test_every_hash_has_one_bucket(hashes, count):
    found = addresses(np.array(hashes, np.uint64), count).tolist()
    assert found == [address(key_hash, count) for key_hash in hashes]
    assert all(0 <= bucket < count for bucket in found)


@given(HASHES, COUNTS, st.integers(0, 70))
def test_what_moves_when_there_are_more_buckets_comes_from_the_parents(hashes, before, more):
    moved = [h for h in hashes if address(h, before) != address(h, before + more)]
    assert {address(h, before) for h in moved} <= set(parents(before, before + more))
    assert all(address(h, before + more) >= before for h in moved)


def test_buckets_split_in_turn():
    assert [parents(count, count + 1) for count in range(1, 8)] == [[0], [0], [1], [0], [1], [2], [3]]
    assert parents(5, 5) == []


def scheduled(*times):
    """A schedule with the times of some buckets, as the next micro-batch finds it."""
    backend = CountingBackend()
    schedule = Schedule(backend, "times", ())
    for bucket, time in times:
        schedule.set(bucket, time)
    schedule.flush()
    backend.calls.clear()
    return backend, Schedule(backend, "times", schedule.earliest)


def test_a_bucket_is_due_at_its_time_and_once():
    _, schedule = scheduled((3, 10), (4, 20), (900, 10), (5, 30))
    assert schedule.due(9) == []
    assert sorted(schedule.due(20)) == [3, 4, 900]
    assert schedule.due(20) == []
    assert schedule.due(30) == [5]


def test_only_pages_with_something_due_are_read():
    backend, schedule = scheduled((3, 10), (600, 20), (2_000, 30))
    assert schedule.earliest == [(0, 10), (1, 20), (3, 30)]
    assert schedule.next_but(()) == 10
    assert backend.calls == []
    assert schedule.due(20) == [3, 600]
    assert backend.calls == [("get", "times/0"), ("get", "times/1")]


def test_a_bucket_that_is_left_out_keeps_its_time_in_the_store():
    _, schedule = scheduled((3, 10), (4, 15))
    assert schedule.next() == (10, 3)
    assert schedule.next_but({3}) == 15
    assert schedule.next() == (15, 4)
    schedule.flush()
    assert schedule.due(10) == [3]


def test_a_page_is_written_if_a_time_in_it_changed():
    backend, schedule = scheduled((3, 10), (4, 20), (600, 20))
    schedule.set(3, 10)
    schedule.set(4, 25)
    schedule.flush()
    assert backend.calls == [("get", "times/0"), ("put", "times/0")]
    assert schedule.due(24) == [3, 600]


def test_a_page_without_times_is_deleted():
    backend, schedule = scheduled((3, -10), (600, 20))
    schedule.set(3, None)
    schedule.set(700, None)
    schedule.flush()
    assert [*backend.values] == ["times/1"]
    assert schedule.earliest == [(1, 20)]
