"""Rows of chunks: what is appended is there in its order, and is written again a logarithmic number of times."""

import gc
import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.elements.elements import without_collection
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.chunks import ChunkStore


@dataclass
class Lists:
    """Chunks are lists of numbers; a base adds them up, and has one entry."""

    patience: int = 8
    folds: bool = False

    def size(self, chunk):
        return len(chunk)

    def merged(self, chunks, *, from_base):
        together = [number for chunk in chunks for number in chunk]
        return [sum(together)] if from_base and self.folds else together

    def encode(self, chunk):
        return json.dumps(chunk).encode()

    def decode(self, data):
        return json.loads(data)


class Counting(MemoryBackend):
    """Counts what is read and written."""

    read = written = 0

    def get(self, name):
        value = super().get(name)
        self.read += len(value or b"")
        return value

    def put(self, name, value):
        super().put(name, value)
        self.written += len(value)


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=4), max_size=30), st.integers(1, 8))
def test_a_row_holds_what_was_appended_in_its_order(batches, patience):
    backend, expected = MemoryBackend(), {}
    for number, batch in enumerate(batches):
        store = ChunkStore(backend, Lists(patience))
        for row, size in batch:
            chunk = [100 * number + i for i in range(size)]
            store.append(row, chunk)
            expected.setdefault(row, []).extend(chunk)
        store.flush()
    store = ChunkStore(backend, Lists(patience))
    assert store.rows() == sorted(expected)
    assert {row: [n for chunk in store.chunks(row) for n in chunk] for row in store.rows()} == expected
    for row in store.rows():
        assert row in store
        store.drop(row)
    store.flush()
    assert store.rows() == []
    assert backend.values == {}


@pytest.mark.parametrize("patience", [1, 8])
def test_a_row_that_is_appended_to_for_ever_is_rewritten_a_logarithmic_number_of_times(patience):
    backend = Counting()
    for batch in range(1_000):
        store = ChunkStore(backend, Lists(patience))
        store.append(0, [batch])
        store.flush()
    assert len(backend.values) < 30
    whole = len(json.dumps(list(range(1_000))))
    assert backend.written < 60 * whole
    assert backend.read < 60 * whole


def test_what_is_appended_to_a_large_base_reads_and_writes_little_of_it():
    backend = Counting()
    store = ChunkStore(backend, Lists(1))
    store.append(0, list(range(100_000)))
    store.flush()
    backend.read = backend.written = 0
    for batch in range(100):
        store = ChunkStore(backend, Lists(1))
        store.append(0, [batch])
        store.flush()
    assert backend.read + backend.written < 30_000


def test_a_base_that_gets_smaller_takes_in_what_is_larger_at_once():
    backend = MemoryBackend()
    store = ChunkStore(backend, Lists(1, folds=True))
    store.append(0, [1])
    for _ in range(5):
        store.append(0, [1] * 1_000)
    assert store.chunks(0) == [[5_001]]


def test_a_large_chunk_is_stored_in_pieces_and_leaves_none_behind():
    backend = MemoryBackend()
    store = ChunkStore(backend, Lists(1))
    store.append(0, list(range(400_000)))
    store.append(0, [7])
    store.flush()
    assert max(map(len, backend.values.values())) == 1 << 20
    store = ChunkStore(backend, Lists(1))
    assert store.chunks(0) == [list(range(400_000)), [7]]
    store.append(0, list(range(200_000)))
    assert [len(chunk) for chunk in store.chunks(0)] == [600_001]
    store.drop(0)
    store.flush()
    assert backend.values == {}


def test_the_collector_rests_within_the_block_only():
    assert gc.isenabled()
    with without_collection():
        with without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
