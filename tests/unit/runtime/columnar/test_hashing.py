"""Columns of keys are dealt out the same in every process, and equal keys to one place."""

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.runtime.columnar.hashing import key_column, key_groups, owners

COLUMNS = {
    "text": pa.array(["a", "", "ä", "user-1", None, "a"]),
    "bytes": pa.array([b"a", b"", b"\xff", b"b", None, b"a"]),
    "long": pa.array([1, 0, -1, 2**63 - 1, None, 1]),
    "small": pa.array([1, 0, -1, 100, None, 1], pa.int8()),
    "unsigned": pa.array([1, 0, 2, 2**64 - 1, None, 1], pa.uint64()),
    "double": pa.array([0.0, float("nan"), 1.5, -1.5, None, -0.0]),
    "truth": pa.array([True, False, True, False, None, True]),
    "decimal": pa.array([Decimal("1.50"), Decimal("0"), Decimal("-1"), Decimal("9"), None, Decimal("1.5")]),
    "day": pa.array([dt.date(2020, 1, i) for i in range(1, 5)] + [None, dt.date(2020, 1, 1)]),
    "moment": pa.array([0, 1, 2, 3, None, 0], pa.timestamp("us", tz="UTC")),
    "time": pa.array([dt.time(i) for i in range(4)] + [None, dt.time(0)]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_equal_keys_have_one_group_and_a_slice_has_those_of_the_whole(column):
    groups = key_groups([pa.chunked_array([column])], 128).tolist()
    assert groups[0] == groups[5]
    assert len(set(groups)) > 1
    assert key_groups([pa.chunked_array([column.slice(2)])], 128).tolist() == groups[2:]
    parts = pa.chunked_array([column.slice(0, 3), column.slice(3)])
    assert key_groups([parts], 128).tolist() == groups


def test_groups_are_the_same_in_another_process():
    code = (
        "import pyarrow as pa; from eventide.runtime.columnar.hashing import key_groups;"
        "print(key_groups([pa.chunked_array([['a', 'user-7', None]]), pa.chunked_array([[1, 2, 3]])], 128).tolist())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = key_groups([pa.chunked_array([["a", "user-7", None]]), pa.chunked_array([[1, 2, 3]])], 128).tolist()
    assert there.strip() == str(here)


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1), st.integers(1, 5))
def test_every_key_has_one_owner(keys, subtasks):
    owner = owners([pa.chunked_array([keys])], 16, subtasks)
    owner = np.zeros(len(keys)) if owner is None else owner
    of_key = {}
    assert all(of_key.setdefault(key, at) == at for key, at in zip(keys, owner.tolist(), strict=True))
    assert set(owner.tolist()) <= set(range(subtasks))


def test_keys_spread_over_all_groups():
    groups = key_groups([pa.chunked_array([[f"user-{i}" for i in range(10_000)]])], 128)
    counts = np.bincount(groups, minlength=128)
    assert counts.min() > 40
    assert counts.max() < 130


def test_texts_that_differ_in_one_place_or_in_length_only_have_other_hashes():
    texts = ["", "\0", "\0\0", "ab", "ba", "abc", "acb"]
    groups = key_groups([pa.chunked_array([texts])], 2**31)
    assert len(set(groups.tolist())) == len(texts)


def test_numbers_that_are_equal_have_one_form():
    assert key_column(pa.array([0.0, -0.0, None])).to_pylist() == [0.0, 0.0, None]
    assert str(key_column(pa.array([-0.0]))[0].as_py()) == "0.0"
