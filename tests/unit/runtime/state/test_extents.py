"""Rows by hash: what was written is found, whatever was written before and since, and however often it is reopened."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.runtime.state import runs
from eventide.runtime.state.backend import MemoryBackend
from eventide.runtime.state.extents import NEVER
from eventide.runtime.state.runs import compressed, decompressed
from support.row_stores import BATCH, SCHEMAS, check, opened, with_small_parts


@given(st.lists(BATCH, max_size=25), st.sampled_from([1, 3, 2_048]), st.sampled_from([1, 60, 49_152]))
@settings(max_examples=4 * settings().max_examples)
def test_rows_are_found_as_they_were_written(batches, chunk, page_bytes):
    with_small_parts(chunk, page_bytes, lambda: check(batches))


def test_garbage_is_bounded_and_what_is_due_is_not_kept_twice():
    backend, random = MemoryBackend(), np.random.default_rng(7)
    rows = 3_000
    hashes_of_all = random.integers(0, 1 << 63, rows).astype(np.uint64)
    for number in range(120):
        store = opened(backend)
        hashes = np.unique(random.choice(hashes_of_all, 700))
        store.read(hashes)
        batch = pa.table([hashes, hashes.astype(np.int64)], schema=SCHEMAS["numbers"])
        store.write(batch, [np.full(len(hashes), 10_000 + number), np.full(len(hashes), NEVER)])
        store.flush()
    pages = sum(len(value) for name, value in backend.values.items() if name.startswith("extent"))
    whole = len(opened_whole(backend))
    assert pages < 1.7 * whole
    times = sum(len(column[0]) for column in store._times[0].all())
    assert times <= 3 * rows


def opened_whole(backend):
    """The size in bytes of a store's rows when they are written at once."""
    store = opened(backend)
    others = store.others()
    [found] = store.read(others)
    again = MemoryBackend()
    store = opened(again)
    store.read(others)
    store.write(found.rows, [np.full(len(others), NEVER)] * 2)
    store.flush()
    return b"".join(value for name, value in again.values.items() if name.startswith("extent"))


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 300), max_size=40), st.binary(max_size=20))
def test_what_is_compressed_comes_back(numbers, rest):
    for content in (np.array(numbers, np.int64).tobytes() + rest, rest * 3):
        assert decompressed(compressed(content)) == content


@pytest.mark.parametrize("kind", ["numbers", "text", "numbers and text"])
def test_of_a_large_value_the_form_is_taken_that_is_shorter_for_a_sample(kind):
    numbers = np.arange(1_000_000, 1_004_003).tobytes()
    text = "".join(f"https://auction.example/item/{n * 7919 % 1_000}/bid " for n in range(600)).encode()[:32_021]
    content = {"numbers": numbers + b"rest", "text": text, "numbers and text": numbers + text}[kind]
    stored = compressed(content)
    assert decompressed(stored) == content
    assert len(stored) <= {"numbers": 1_000, "text": 4_000, "numbers and text": 10_000}[kind]


def test_the_chunks_of_the_index_have_the_size_that_is_stored_nowhere():
    """Runs of a checkpoint say how many records they have; with another size of chunks they would be read wrongly."""
    backend = MemoryBackend()
    hashes = np.arange(3_000, dtype=np.uint64)
    store = opened(backend)
    store.read(hashes)
    store.write(pa.table([hashes, hashes.astype(np.int64)], schema=SCHEMAS["numbers"]), [np.full(3_000, NEVER)] * 2)
    store.flush()
    lengths = [len(decompressed(backend.values[f"index/0/{chunk}"])) // 32 for chunk in range(3)]
    assert lengths == [1_024, 1_024, 952]


def test_a_run_with_fewer_records_than_its_head_says_is_an_error(monkeypatch):
    backend = MemoryBackend()
    sorted_runs = runs.SortedRuns(backend, "times", ["<i8"], [])
    sorted_runs.append((np.arange(3_000),), runs.newest)
    monkeypatch.setattr(runs, "CHUNK", 2_048)
    with pytest.raises(StateError, match="'times/0' has fewer records than its head says"):
        list(runs.SortedRuns(backend, "times", ["<i8"], sorted_runs.stored).take(9_999))
