"""Buckets of bytes: how they are read, one by one or together."""

import pytest

from eventide.runtime.state.backend import PartOfState
from eventide.runtime.state.bucket import BucketStore
from support.counting_backend import CountingBackend


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
