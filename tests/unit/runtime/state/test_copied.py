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
from eventide.pickling.pickles import dumps
from eventide.runtime.state.backend import CheckedBackend, MemoryBackend, PartOfState
from eventide.runtime.state.copied import CopiedState
from eventide.runtime.state.extents import NEVER, RowStore
from eventide.runtime.state.operators import OperatorStates
from eventide.storage import local_copies
from eventide.storage.local_copies import LocalCopies, LocalCopy
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


@pytest.mark.parametrize(("numbers", "calls"), [([2], 1), ([0, 3], 2), ([0, 1, 2, 3, 4], 5), ([1, 2, 4], 5)])
def test_a_copy_that_is_gone_is_made_again_when_half_of_it_is_read(tmp_path, numbers, calls):
    backend = CountingBackend()
    whole = CopiedState(backend, LocalCopies(str(tmp_path)))
    stored = [b"%d" % number for number in range(5)]
    copy = whole.put_immutable((f"a/{number}", value) for number, value in enumerate(stored))
    (tmp_path / copy).unlink()
    asked = [stored[number] for number in numbers]
    for then in (calls, calls if calls < 5 else 0):
        backend.calls.clear()
        assert [*whole.get_immutable(numbers, "a/{}".format, copy, 5)] == asked
        assert len(backend.calls) == then


def test_a_value_that_is_gone_is_no_error_for_those_who_do_not_ask_for_it(tmp_path):
    backend = CountingBackend()
    whole = CopiedState(backend, LocalCopies(str(tmp_path)))
    copy = whole.put_immutable((f"a/{number}", b"%d" % number) for number in range(4))
    (tmp_path / copy).unlink()
    backend.delete("a/2")
    assert [*whole.get_immutable([0, 3], "a/{}".format, copy, 4)] == [b"0", b"3"]
    assert not [*tmp_path.iterdir()]
    with pytest.raises(StateError, match="a/2"):
        [*whole.get_immutable([0, 2], "a/{}".format, copy, 4)]


def test_where_no_copy_can_be_written_nothing_else_is_read(tmp_path, monkeypatch):
    backend = CountingBackend()
    whole = CopiedState(backend, LocalCopies(str(tmp_path)))
    copy = whole.put_immutable((f"a/{number}", b"%d" % number) for number in range(4))
    (tmp_path / copy).unlink()
    usage = namedtuple("usage", "total free")
    monkeypatch.setattr(local_copies.shutil, "disk_usage", lambda folder: usage(1_000, 99))
    backend.calls.clear()
    assert [*whole.get_immutable([0, 3], "a/{}".format, copy, 4)] == [b"0", b"3"]
    assert len(backend.calls) == 2


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
        copy = of_all.put_immutable([("a/0", b"first"), ("a/1", b"second")])
        path = Path(folder, copy)
        content = path.read_bytes()
        for at in range(len(content)):
            for bit in range(8):
                path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
                assert [*of_all.get_immutable([0, 1], "a/{}".format, copy, 2)] == [b"first", b"second"]


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
        assert copies.read(copied(copies), [0], 2) is None
    assert len(caplog.records) == 1  # it is not tried again at once


def copied(copies, *values):
    copy = copies.new_id()
    writer = copies.write(copy)
    if writer is None:
        return copy
    for value in values or (b"a", b"b"):
        writer.add(value)
    writer.end()
    return copy


def full(*arguments):
    raise OSError(28, "No space left on device")


def test_half_a_copy_is_removed_when_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", full)
    copied(LocalCopies(str(tmp_path)))
    assert not [*tmp_path.iterdir()]


def test_a_disk_that_gets_full_within_a_value_leaves_the_state_whole(tmp_path, monkeypatch, caplog):
    backend = MemoryBackend()
    whole = CopiedState(backend, LocalCopies(str(tmp_path)))

    def values():
        yield "a/0", b"first"
        for file in tmp_path.iterdir():
            assert "." in file.name  # not to be read before it is whole
        monkeypatch.setattr(LocalCopy, "add", lambda copy, value: copy._fail(OSError(28, "No space left on device")))
        yield "a/1", b"second"

    copy = whole.put_immutable(values())
    assert not [*tmp_path.iterdir()]
    assert "No space left on device" in caplog.text
    assert [*whole.get_immutable([0, 1], "a/{}".format, copy, 2)] == [b"first", b"second"]


def test_copies_that_nothing_reads_are_deleted_after_an_hour(tmp_path):
    copies = LocalCopies(str(tmp_path))
    unused, used = copied(copies), copied(copies, b"c", b"d")
    for copy in (unused, used):
        os.utime(tmp_path / copy, (time.time() - 4_000,) * 2)
    assert [*copies.read(used, [1], 2)] == [b"d"]
    copied(LocalCopies(str(tmp_path)))
    assert copies.read(unused, [0], 2) is None
    assert [*copies.read(used, [0], 2)] == [b"c"]


def test_a_copy_of_another_number_of_values_is_not_read(tmp_path):
    copies = LocalCopies(str(tmp_path))
    copy = copied(copies)
    assert copies.read(copy, [0], 3) is None
    assert copies.read(copy, [0], 1) is None


def test_a_copy_that_is_damaged_is_made_again(tmp_path):
    backend = CountingBackend()
    write(state(backend, tmp_path), 7)
    for copy in tmp_path.iterdir():
        flip(copy)
    assert values(state(backend, tmp_path)) == {7}  # of the store, and each damaged copy is deleted
    assert values(state(backend, tmp_path)) == {7}  # of the store, and copied
    backend.calls.clear()
    assert values(state(backend, tmp_path)) == {7}
    assert read_from(backend) == []


def test_state_without_checksums_is_not_copied(tmp_path):
    head = dumps({"format": 3, "clocks": {}, "small": {}})
    backend = MemoryBackend({"head": head})
    states = OperatorStates(CopiedState(backend, LocalCopies(str(tmp_path))), {"rows": {}})
    write(states.of("rows"), 7)
    assert values(states.of("rows")) == {7}
    assert not [*tmp_path.iterdir()]
