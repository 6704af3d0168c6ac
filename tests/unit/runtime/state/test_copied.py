"""Copies of immutable state: the stored values are read, also if copies are damaged or missing."""

import os
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.runtime.state.backend import CheckedBackend, MemoryBackend, PartOfState
from eventide.runtime.state.copied import CopiedState
from eventide.runtime.state.extents import NEVER, RowStore
from eventide.storage import local_copies
from eventide.storage.local_copies import LocalCopies
from support.counting_backend import CountingBackend
from support.row_stores import BATCH, SCHEMAS, check, opened, with_small_parts

_HASHES = np.arange(20_000, dtype=np.uint64) * 461_168_601_842_738


def state(backend, folder):
    return PartOfState(CheckedBackend(CopiedState(backend, LocalCopies(str(folder))), repr), "rows/")


def write(state, value, hashes=_HASHES):
    store = opened(state)
    store.read(hashes)
    store.write(
        pa.table([hashes, np.full(len(hashes), value)], schema=SCHEMAS["numbers"]), [np.full(len(hashes), NEVER)] * 2
    )
    store.flush()


def values(state, hashes=_HASHES):
    (found,) = RowStore(state).read(hashes)
    return {*found.rows.column("value").to_pylist()}


def read_from(backend):
    """Return the names that were read from a backend itself, without the head and the schema."""
    return [name for call, name in backend.calls if call == "get" and name not in ("rows/extents", "rows/schema/0")]


def lose(copy):
    copy.unlink()


def cut(copy):
    os.truncate(copy, copy.stat().st_size * 2 // 3)


def empty(copy):
    os.truncate(copy, 0)


def flip(copy):
    content = bytearray(copy.read_bytes())
    for at in range(0, len(content), 7):
        content[at] ^= 0x40
    copy.write_bytes(content)


@given(st.lists(BATCH, max_size=12), st.lists(st.sampled_from([None, lose, cut, empty, flip, "abandoned"]), min_size=1))
def test_rows_are_found_as_they_were_written_whatever_becomes_of_copies(batches, fates):
    with tempfile.TemporaryDirectory() as folder:
        seen = 0

        def meets_a_fate(backend):
            nonlocal seen
            fate, seen = fates[seen % len(fates)], seen + 1
            if fate == "abandoned":  # an attempt that writes other rows, and whose writes are lost, but for copies
                write(state(MemoryBackend({**backend.values}), folder), seen, _HASHES[:20])
            elif fate is not None:
                for copy in Path(folder).iterdir():
                    fate(copy)
            return state(backend, folder)

        with_small_parts(3, 60, lambda: check(batches, meets_a_fate))


def test_what_is_immutable_is_read_from_copies(tmp_path):
    backend = CountingBackend()
    write(state(backend, tmp_path), 7)
    backend.calls.clear()
    assert values(state(backend, tmp_path)) == {7}
    assert read_from(backend) == []


def test_copies_that_are_gone_are_made_again_when_all_is_read(tmp_path):
    backend = CountingBackend()
    write(state(backend, tmp_path), 7)
    for copy in tmp_path.iterdir():
        copy.unlink()
    assert values(state(backend, tmp_path), _HASHES[:1]) == {7}  # a page and a chunk: nothing is copied
    assert not [*tmp_path.iterdir()]
    assert values(state(backend, tmp_path)) == {7}
    backend.calls.clear()
    assert values(state(backend, tmp_path)) == {7}
    assert read_from(backend) == []


def test_copies_go_with_what_they_are_copies_of(tmp_path):
    backend = MemoryBackend()
    for value in range(5):
        write(state(backend, tmp_path), value)
    assert values(state(backend, tmp_path)) == {4}
    assert len([*tmp_path.iterdir()]) <= 3
    store = RowStore(state(backend, tmp_path))
    store.read(_HASHES)
    store.delete(_HASHES)
    store.flush()
    assert not backend.values
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("damage", [lose, cut, empty, flip])
def test_a_damaged_copy_is_not_read(tmp_path, damage):
    backend = MemoryBackend()
    write(state(backend, tmp_path), 7)
    for copy in [*tmp_path.iterdir()]:
        damage(copy)
    assert values(state(backend, tmp_path)) == {7}


def test_where_a_copy_and_the_stored_value_are_damaged_it_is_an_error(tmp_path):
    backend = MemoryBackend()
    write(state(backend, tmp_path), 7)
    for copy in tmp_path.iterdir():
        flip(copy)
    backend.values["rows/extent/0/0"] = backend.values["rows/extent/0/0"][:-1] + b"x"
    with pytest.raises(StateError, match="'rows/extent/0/0' is not as it was stored"):
        values(state(backend, tmp_path))


def test_each_byte_of_a_copy_may_change():
    with tempfile.TemporaryDirectory() as folder:
        backend = MemoryBackend()
        of_all = CheckedBackend(CopiedState(backend, LocalCopies(folder)), repr)
        names = {0: "a/0", 1: "a/1"}
        copy = of_all.put_immutable({"a/0": b"first", "a/1": b"second"})
        path = Path(folder, copy)
        content = path.read_bytes()
        for at in range(len(content)):
            for bit in range(8):
                path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
                assert of_all.get_immutable(names, copy, 3) == [b"first", b"second"]


def test_a_disk_that_is_nearly_full_gets_no_copies(tmp_path, monkeypatch, caplog):
    usage = namedtuple("usage", "total free")
    monkeypatch.setattr(local_copies.shutil, "disk_usage", lambda folder: usage(1_000, 99))
    backend = MemoryBackend()
    write(state(backend, tmp_path), 7)
    assert not [*tmp_path.iterdir()]
    assert "less than a tenth of its disk is free" in caplog.text
    assert values(state(backend, tmp_path)) == {7}


def test_where_no_copy_can_be_written_nothing_fails(tmp_path, caplog):
    (tmp_path / "file").touch()
    copies = LocalCopies(str(tmp_path / "file" / "folder"))
    for _ in range(2):
        assert copies.read(copies.write([b"a", b"b"]), [0]) is None
    assert len(caplog.records) == 1  # it is not tried again at once


def test_half_a_copy_is_removed_when_the_disk_is_full(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    LocalCopies(str(tmp_path)).write([b"a", b"b"])
    assert not [*tmp_path.iterdir()]


def test_copies_that_nothing_reads_are_deleted_after_an_hour(tmp_path):
    copies = LocalCopies(str(tmp_path))
    unused, used = copies.write([b"a", b"b"]), copies.write([b"c", b"d"])
    for copy in (unused, used):
        os.utime(tmp_path / copy, (time.time() - 4_000,) * 2)
    assert copies.read(used, [1]) == [b"d"]
    LocalCopies(str(tmp_path)).write([b"e", b"f"])
    assert copies.read(unused, [0]) is None
    assert copies.read(used, [0]) == [b"c"]
