"""Rows by hash compared with a dict, over random micro-batches."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from eventide.runtime.state import extents, runs
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.extents import EXTENTS, HASH, NEVER, RowStore

SCHEMAS = {
    "numbers": pa.schema([(HASH, pa.uint64()), ("value", pa.int64())]),
    "texts": pa.schema([(HASH, pa.uint64()), ("value", pa.string())]),
}
_HASHES = st.integers(0, 40).map(lambda number: number * 461_168_601_842_738_790)
_ROWS = st.tuples(
    st.sampled_from([*SCHEMAS]),
    st.lists(st.integers(0, 9), min_size=1, max_size=2),
    st.tuples(st.integers(0, 60) | st.just(NEVER), st.integers(0, 9) | st.just(NEVER)),
)
BATCH = st.tuples(
    st.dictionaries(_HASHES, _ROWS | st.none(), max_size=30),  # what is written, and deleted
    st.sets(_HASHES, max_size=10),  # what is read, and left as it is
    st.integers(0, 60),
)


def opened(backend):
    return RowStore(backend, 2)


def as_hashes(hashes):
    return np.array(sorted(hashes), np.uint64)


def read(store, hashes):
    """The rows of a store by hash: the form and the values of each."""
    asked, got = as_hashes(hashes), defaultdict(list)
    for places, rows in store.read(asked):
        (form,) = (form for form, schema in SCHEMAS.items() if schema == rows.schema)
        assert rows.column(HASH).to_numpy().tolist() == asked[places].tolist()
        for key_hash, value in zip(asked[places].tolist(), rows.column("value").to_pylist(), strict=True):
            got[key_hash].append((form, int(value)))
    return dict(got)


def write(store, rows):
    """Write rows, each form at once."""
    for form, schema in SCHEMAS.items():
        of_form = [(h, value, due) for h, (other, values, due) in rows.items() if other == form for value in values]
        kind = schema.field("value").type
        columns = [[h for h, _, _ in of_form], [str(v) if pa.types.is_string(kind) else v for _, v, _ in of_form]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        due = np.array([due for _, _, due in of_form], np.int64).reshape(-1, 2)
        store.write(pa.table(arrays, schema=schema), [due[:, 0], due[:, 1]])


def values_of(model, hashes):
    return {h: [(model[h][0], value) for value in model[h][1]] for h in hashes if h in model}


def with_small_parts(chunk, page_bytes, act):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "CHUNK", chunk)
        for name, value in (("_PAGE_BYTES", page_bytes), ("_FEW_ROWS", 20), ("_MANY", 3), ("_MOST_HASHES", 5)):
            patch.setattr(extents, name, value)
        act()


def check(batches, seen=lambda backend: backend):
    """Compare a store with a dict; ``seen`` gives what the store of a micro-batch sees of what is stored."""
    backend, model = MemoryBackend(), {}
    for changes, looked_at, until in batches:
        store = opened(seen(backend))
        touched = {*changes, *looked_at}
        assert read(store, touched) == values_of(model, touched)
        assert {*store.others().tolist()} == {*model} - touched
        for kind in (0, 1):
            due = {*store.due(kind, until).tolist()}
            assert {h for h, row in model.items() if row[2][kind] <= until} - touched <= due
            assert not due & touched
            found = read(store, due)
            assert found == values_of(model, due)
            touched |= due
            left = [row[2][kind] for h, row in model.items() if h not in touched]
            earliest = store.next_of_others(kind)
            assert earliest is None or earliest <= min(left, default=NEVER)
            if min(left, default=NEVER) < NEVER:
                assert earliest is not None
        write(store, {h: row for h, row in changes.items() if row})
        again = {h: (until + 5, NEVER) for h in looked_at if h in model and h not in changes and h % 4}
        if again:
            hashes = as_hashes(again)
            store.schedule(hashes, [np.array([again[h][kind] for h in hashes.tolist()]) for kind in (0, 1)])
            model |= {h: (*model[h][:2], due) for h, due in again.items()}
        store.delete(as_hashes(h for h, row in changes.items() if not row))
        store.user["n"] = 1
        store.flush()
        for h, row in changes.items():
            if row:
                model[h] = row
            else:
                model.pop(h, None)
        assert any(name.endswith(EXTENTS) for name in backend.values) == bool(model)
        assert {*opened(seen(backend)).others().tolist()} == {*model}
    if not model:
        assert backend.values == {}
    store = opened(seen(backend))
    assert read(store, model) == values_of(model, model)
