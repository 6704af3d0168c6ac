"""Buckets: what is kept of some keys, side by side; and where earlier versions have stored them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.state.backend import MemoryBackend, PartOfState
from eventide.runtime.state.bucket import Pickled, column, live
from eventide.runtime.state.bucket_store import BucketStore
from eventide.runtime.state.runs import compressed

VALUES = st.integers(-5, 5) | st.text(max_size=3) | st.lists(st.integers(0, 3), max_size=2)


@given(st.lists(st.none() | VALUES, min_size=1, max_size=8))
def test_a_column_gives_back_what_was_put_into_it(values):
    owners, are_pickled, stored = column(values, sum(value is not None for value in values))
    places = range(len(values)) if owners is None else owners
    back = [live(Pickled(value) if are_pickled else value) for value in stored]
    assert dict(zip(places, back, strict=True)) == {
        place: value for place, value in enumerate(values) if value is not None
    }


def test_buckets_of_version_0_1_0_are_read_and_deleted():
    backend = MemoryBackend()
    backend.put("left/buckets", json.dumps({"count": 6, "entries": 3, "times": [[0, 7], [1, 5]]}).encode())
    for bucket in range(0, 6, 2):
        backend.put(f"left/bucket/{bucket}", compressed(b"%d" % bucket))
    for name in ("left/times/0", "left/times/1"):
        backend.put(name, b"of buckets")
    backend.put("right/bucket/1", b"of somebody else")
    store = BucketStore(PartOfState(backend, "left/"))
    assert (store.entries, store.due("times"), store.due("others")) == (3, 5, None)
    assert [*store.contents()] == [b"0", b"2", b"4"]
    store.delete_all()
    assert backend.values == {"right/bucket/1": b"of somebody else"}
