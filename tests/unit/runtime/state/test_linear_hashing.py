"""The number of buckets says which bucket a hash is in, and one bucket more moves the entries of one other only."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.state.bucket import address, addresses, parents

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
