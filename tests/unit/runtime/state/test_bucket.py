"""Buckets: what is kept of some keys, side by side; and where earlier versions have stored them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.state.backend import PartOfState
from eventide.runtime.state.bucket import Pickled, column, live, owned
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.runs import compressed
from support.counting_backend import CountingBackend

VALUES = st.integers(-5, 5) | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=2)


@given(st.lists(st.none() | VALUES, min_size=1, max_size=8))
def test_a_column_gives_back_what_was_put_into_it(values):
    keys = [*"abcdefgh"[: len(values)]]
    owners, are_pickled, stored = column(values, sum(value is not None for value in values))
    back = owned(keys, owners, [Pickled(value) for value in stored] if are_pickled else stored)
    assert {key: live(value) for key, value in back} == {
        key: value for key, value in zip(keys, values, strict=True) if value is not None
    }


@pytest.mark.parametrize(("wanted", "calls"), [(10, 10), (255, 255), (299, 299), (300, 1), (600, 1)])
def test_most_buckets_of_an_earlier_version_are_read_at_once_and_few_one_by_one(wanted, calls):
    backend = CountingBackend()
    backend.put("left/buckets", json.dumps({"count": 600, "entries": 300, "times": [[0, 7], [1, 5]]}).encode())
    for bucket in range(0, 600, 2):
        backend.put(f"left/bucket/{bucket}", compressed(b"%d" % bucket))
    for name in ("left/times/0", "left/times/1"):
        backend.put(name, b"of buckets")
    backend.put("right/bucket/1", b"of somebody else")
    store = BucketStore(PartOfState(backend, "left/"))
    assert (store.count, store.entries, store.due("times"), store.due("others")) == (600, 300, 5, None)
    backend.calls.clear()
    found = store.get_many(range(wanted))
    assert found == {bucket: None if bucket % 2 else b"%d" % bucket for bucket in range(wanted)}
    assert len(backend.calls) == calls
    store.delete_all()
    assert backend.values == {"right/bucket/1": b"of somebody else"}
