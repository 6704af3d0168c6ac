"""Buckets: what is kept of some keys, side by side, cut where a bucket ends, and back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.elements.keys import stable_hash
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.bucket import NO_BUCKET, NO_TIMES, Bucket, Pickled, buckets_of, column, live, owned
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.timers import earliest_of, timers_of

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


@given(KEPT, st.integers(1, 5), st.integers(0, 31))
def test_buckets_have_all_that_is_kept_and_say_when_they_are_due(kept, count, most):
    keyed = KeyedState(MemoryBackend(), 8)
    keyed.open_all(range(31))
    for key, (values, timers) in kept.items():
        for name, value in values.items():
            keyed.write(key, None, name, value)
        for time_ms, namespace in timers:
            keyed.event_timers.register(time_ms, key, namespace)
    hashes = np.array([stable_hash(key) for key in keyed.keys], np.uint64)
    timers_of_both_kinds = [keyed.event_timers, keyed.processing_timers]
    numbers = np.array([key % count if key < most else NO_BUCKET for key in keyed.keys])
    buckets = buckets_of(keyed.keys, hashes, numbers, keyed.values, {}, timers_of_both_kinds)
    found = {}
    for number, filled in buckets.items():
        bucket = Bucket.from_bytes(filled.to_bytes())
        assert [key % count for key in bucket.keys] == [number] * len(bucket.keys)
        assert bucket.hashes == [stable_hash(key) for key in bucket.keys]
        here = found | {key: ({}, {}) for key in bucket.keys}
        for name, (owners, are_pickled, values) in bucket.values.items():
            for key, value in owned(bucket.keys, owners, map(Pickled, values) if are_pickled else values):
                here[key][0][name] = live(value)
        plain, spaced = bucket.timers[0]
        for time_ms, key, _ in timers_of(bucket.keys, plain) if plain else ():
            here[key][1][time_ms, None] = None
        for time_ms, (key, namespace), _ in timers_of(bucket.keys, spaced) if spaced else ():
            here[key][1][time_ms, namespace] = None
        times = [time_ms for key in bucket.keys for time_ms, _ in here[key][1]]
        assert bucket.earliest == (min(times, default=None), None, None)
        assert earliest_of([plain, spaced]) == min(times, default=None)
        found = here
    assert found == {key: parts for key, parts in kept.items() if any(parts) and key < most}


def test_nothing_is_in_no_bucket():
    nothing = np.array([], np.uint64)
    assert buckets_of([], nothing, nothing.astype(np.int64), {}, {}, []) == {}
    assert Bucket([], []).earliest == NO_TIMES
