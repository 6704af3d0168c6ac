"""A bucket of entries: found, replaced and split by hash, without a look at the others."""

from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.state.bucket import KINDS_OF_TIME, Bucket
from eventide.runtime.state.linear_hashing import address

ENTRIES = st.tuples(st.binary(max_size=9), st.none() | st.integers(-5, 5), st.none() | st.just(7))
CHANGES = st.lists(
    st.dictionaries(st.integers(0, 20) | st.just(2**64 - 1), st.none() | ENTRIES, max_size=8), max_size=5
)


def times_of(entries, kind):
    return [entry[1 + kind] for entry in entries.values() if entry[1 + kind] is not None]


@given(CHANGES, st.integers(1, 6))
def test_a_bucket_is_a_dict_of_entries_by_hash(changes, count):
    bucket, model, size = Bucket.read(None), {}, 0
    for change in changes:
        size += bucket.replace(change)
        model = {key_hash: entry for key_hash, entry in (model | change).items() if entry is not None}
        stored = bucket.stored()
        assert (stored is None) == (not model)
        bucket = Bucket.read(stored)
        assert len(bucket) == len(model)
        assert all(bucket.content(h) == (model[h][0] if h in model else None) for h in [*range(22), 2**64 - 1])
        for kind in range(KINDS_OF_TIME):
            assert bucket.earliest()[kind] == min(times_of(model, kind), default=None)
            due = {h for h, entry in model.items() if entry[1 + kind] is not None and entry[1 + kind] <= 2}
            assert set(bucket.due(kind, 2)) == due
            assert bucket.later(kind, 2) == min((t for t in times_of(model, kind) if t > 2), default=None)
            others = {h: entry for h, entry in model.items() if h >= 10}
            assert bucket.earliest_of_others(kind, range(10)) == min(times_of(others, kind), default=None)
    parts = bucket.split(count)
    assert {h: e for part in parts.values() for h, e in part.entries.items()} == model
    assert size == sum(len(content) + 28 for content, *_ in model.values())
    assert all(address(h, count) == number for number, part in parts.items() for h in part.entries)
