"""A bucket of entries: found, replaced and split by hash, without a look at the others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.state.bucket import Bucket, StoredEntry
from eventide.runtime.state.linear_hashing import address

ENTRIES = st.builds(
    StoredEntry, st.none() | st.binary(max_size=9), st.tuples(st.none() | st.integers(-5, 5), st.none() | st.just(7))
)
CHANGES = st.lists(st.dictionaries(st.integers(0, 20) | st.just(2**64 - 1), ENTRIES, max_size=8), max_size=5)


def times_of(entries, kind):
    return [entry.times[kind] for entry in entries.values() if entry.times[kind] is not None]


@given(CHANGES, st.integers(1, 6))
def test_a_bucket_is_a_dict_of_entries_by_hash(changes, count):
    bucket, model = Bucket.empty(), {}
    for drawn in changes:
        change = {h: e if e.content is not None else StoredEntry(None, (None, None)) for h, e in drawn.items()}
        bucket = bucket.replaced(change)
        model = {h: e for h, e in (model | change).items() if e.content is not None}
        stored = bucket.stored()
        assert (stored is None) == (not model)
        bucket = Bucket.empty() if stored is None else Bucket.read(stored)
        assert bucket.hashes.tolist() == sorted(model)
        asked = np.array([*range(22), 2**64 - 1], np.uint64)
        assert bucket.contents(asked) == [model[h].content if h in model else None for h in asked.tolist()]
        for kind in (0, 1):
            assert bucket.earliest()[kind] == min(times_of(model, kind), default=None)
            due = sorted(h for h, e in model.items() if e.times[kind] is not None and e.times[kind] <= 2)
            assert bucket.due(kind, 2).tolist() == due
            assert bucket.later(kind, 2) == min((t for t in times_of(model, kind) if t > 2), default=None)
            assert bucket.earliest_of_others(kind, dict.fromkeys(range(10))) == min(
                times_of({h: e for h, e in model.items() if h >= 10}, kind), default=None
            )
    parts = dict(bucket.split(count))
    assert sum(map(len, parts.values())) == len(model)
    for number, part in parts.items():
        here = {h: e for h, e in model.items() if address(h, count) == number}
        assert part.hashes.tolist() == sorted(here)
        assert part.contents(part.hashes) == [here[h].content for h in sorted(here)]
        assert part.earliest() == tuple(min(times_of(here, kind), default=None) for kind in (0, 1))
