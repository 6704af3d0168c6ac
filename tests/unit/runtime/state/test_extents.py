"""Rows by hash: what was written is found, whatever was written before and since, and however often it is reopened."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
