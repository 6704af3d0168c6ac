"""Values by key in extents: what is put is found again, in whatever form it lies, and as objects too."""

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.common import Row, Types
from eventide.runtime.elements.keys import hashes_of
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.bucket_store import NoColumns
from eventide.runtime.state.extents import RowStore
from eventide.runtime.state.keyed import KeyedState
from eventide.runtime.state.keyed_values import KeyedValues
from eventide.runtime.state.rows_of_keys import bucket_of, buckets_of, has_keys

ANY = Types.PICKLED_BYTE_ARRAY()


def opened(backend, kind=None, key=None):
    return KeyedValues(backend, key or Types.STRING(), "n", kind or Types.LONG())


def put_objects(values, entries, hashes):
    """As a function in Python has it: the keys are taken out, and come back in buckets of objects."""
    keys = [*entries]
    of_micro_batch = MemoryBackend()
    state = KeyedState(of_micro_batch, 128)
    for bucket in values.take(hashes(keys)):
        state.adopt(bucket, 0)
    for key, value in entries.items():
        state.write(key, None, "n", value)
    state.flush()
    values.adopt(of_micro_batch)


def objects_in(backend):
    found = {}
    for bucket in buckets_of(backend):
        state = KeyedState(MemoryBackend(), 128)
        state.adopt(bucket, 0)
        found |= dict(state.items("n"))
    return found


keys = st.one_of(st.text(max_size=2), st.integers(0, 5), st.none())
entries = st.dictionaries(keys, st.one_of(st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=1)))


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), entries), max_size=6))
def test_it_has_what_a_dict_has(batches):
    """Of keys and values that columns hold, and of those that they do not."""
    backend, model = MemoryBackend(), {}
    for has_columns, changed in batches:
        values = opened(backend)
        if not has_columns or any(type(key) is not str or type(value) is not int for key, value in changed.items()):
            put_objects(values, changed, hashes_of)
        elif changed:
            names = [*changed]
            hashes = hashes_of(names)
            try:
                _, (before,), held = values.of(hashes)
            except NoColumns:
                continue  # a function in Python has to take these
            assert dict(zip(before.to_pylist(), held.to_pylist(), strict=True)) == {
                name: model[name] for name in names if name in model
            }
            values.put([pa.array(names, pa.string())], hashes, pa.array([*changed.values()], pa.int64()))
        model.update(changed)
        values.flush()
        assert values.count == len(model)
    assert objects_in(backend) == model
    assert has_keys(backend) == bool(model)
    for _ in range(2):
        state = KeyedState(backend, 128)
        assert dict(_all(state)) == model
        assert state.held()["numKeys"] == len(model)
        state.flush()
    assert opened(backend).count == len(model)


def _all(state):
    state.open_everything()
    return state.items("n")


def test_keys_of_one_hash_lie_side_by_side_in_one_form(monkeypatch):
    """One is held by its column, the other by a pickle."""
    monkeypatch.setattr("eventide.runtime.state.keyed.hashes_of", lambda keys: np.full(len(keys), 7, np.uint64))
    monkeypatch.setattr("eventide.runtime.state.keyed.stable_hash", lambda key: 7)
    backend, hashes = MemoryBackend(), np.array([7], np.uint64)
    values = opened(backend)
    values.of(hashes)
    values.put([pa.array(["a"])], hashes, pa.array([1]))
    put_objects(values, {"b": "two"}, lambda keys: hashes)
    values.flush()
    assert (values.count, objects_in(backend)) == (2, {"a": 1, "b": "two"})


def test_null_is_no_value():
    backend, hashes = MemoryBackend(), hashes_of(["a", "b"])
    names = [pa.array(["a", "b"])]
    for numbers, left in (([1, 2], {"a": 1, "b": 2}), ([None, 3], {"b": 3}), ([None, None], {})):
        values = opened(backend)
        values.of(hashes)
        values.put(names, hashes, pa.array(numbers, pa.int64()))
        values.flush()
        assert (values.count, objects_in(backend)) == (len(left), left)
    assert not [name for name in backend.values if name != "declared types"]


def test_values_and_keys_of_a_narrower_type_become_wider_when_they_are_touched():
    backend, hashes = MemoryBackend(), hashes_of([1, 2])
    narrow = Types.ROW_NAMED(["n"], [Types.INT()])
    wide = Types.ROW_NAMED(["n", "more"], [Types.LONG(), Types.STRING()])
    values = opened(backend, narrow, Types.INT())
    values.of(hashes)
    rows = narrow.to_arrow([Row(n=10), Row(n=20)])
    values.put([pa.array([1, 2], pa.int32())], hashes, rows)
    values.flush()
    values = opened(backend, wide, Types.LONG())
    _, (found,), held = values.of(hashes[:1])
    assert (found.to_pylist(), found.type, held.type) == ([1], pa.int64(), wide.arrow_type())
    assert wide.from_arrow(held) == [Row(n=10, more=None)]
    values.flush()
    assert objects_in(backend) == {1: Row(n=10, more=None), 2: Row(n=20, more=None)}


def test_rows_become_buckets_that_others_read():
    backend = MemoryBackend()
    values = opened(backend)
    put_objects(values, {"a": 1, "b": "two"}, hashes_of)
    values.flush()
    store, found = RowStore(backend, 1), Counter()
    for _, rows in store.read(store.others()):
        found.update(bucket_of(rows).keys)
    assert found == {"a": 1, "b": 1}
