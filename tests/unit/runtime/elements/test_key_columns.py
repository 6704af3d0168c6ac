"""Columns of keys are dealt out the same in every process, and equal keys to one place."""

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.elements.keys import hashes_of_columns, key_column, owners, stable_hash
from eventide.runtime.state.bucket import addresses

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
def test_equal_keys_have_one_hash_and_a_slice_has_those_of_the_whole(column):
    hashes = hashes_of_columns([pa.chunked_array([column])]).tolist()
    assert hashes[0] == hashes[5]
    assert len(set(hashes)) == len(set(hashes[:5])) >= 3
    assert hashes_of_columns([pa.chunked_array([column.slice(2)])]).tolist() == hashes[2:]
    parts = pa.chunked_array([column.slice(0, 3), column.slice(3)])
    assert hashes_of_columns([parts]).tolist() == hashes


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_has_the_hashes_of_its_values(column):
    values = column.to_pylist()
    there = [i for i, value in enumerate(values) if value == value]
    hashes = hashes_of_columns([column]).tolist()
    assert [hashes[i] for i in there] == [stable_hash(values[i]) for i in there]
    pairs = hashes_of_columns([column, column]).tolist()
    assert [pairs[i] for i in there] == [stable_hash((values[i], values[i])) for i in there]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_every_unit_have_the_hashes_of_their_values(unit):
    moments = [dt.datetime(2020, 1, 1, 12), dt.datetime(1969, 12, 31, 23, 59, 59)]  # noqa: DTZ001
    stretches = [dt.timedelta(days=-1), dt.timedelta(seconds=5)]
    for values, kind in [(moments, pa.timestamp(unit)), (stretches, pa.duration(unit))]:
        assert hashes_of_columns([pa.array(values, kind)]).tolist() == list(map(stable_hash, values))


def test_hashes_of_columns_are_the_same_in_another_process():
    sample = "hashes_of_columns([pa.array(['a', 'user-7', None]), pa.array([1, 2, 3])]).tolist()"
    imports = "import pyarrow as pa; from eventide.runtime.elements.keys import hashes_of_columns;"
    code = f"{imports} print({sample})"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(eval(sample, globals()))


@given(st.lists(st.text(), min_size=1), st.integers(1, 5))
def test_every_key_has_one_owner(keys, subtasks):
    owner = owners([pa.chunked_array([keys])], 16, subtasks)
    owner = np.zeros(len(keys)) if owner is None else owner
    of_key = {}
    assert all(of_key.setdefault(key, at) == at for key, at in zip(keys, owner.tolist(), strict=True))
    assert set(owner.tolist()) <= set(range(subtasks))


def test_keys_spread_over_all_subtasks_and_within_a_subtask_over_all_buckets():
    keys = pa.array([f"user-{i}" for i in range(10_000)])
    owner = owners([keys], 128, 100)
    counts = np.bincount(owner, minlength=100)
    assert counts.min() > 50
    assert counts.max() < 270  # a subtask has one key group or two
    buckets = np.bincount(addresses(hashes_of_columns([keys]).compress(owner < 50), 64), minlength=64)
    assert buckets.min() > 40
    assert buckets.max() < 130


def test_texts_that_differ_in_one_place_or_in_length_only_have_other_hashes():
    texts = ["", "\0", "\0\0", "ab", "ba", "abc", "acb"]
    assert len(set(hashes_of_columns([pa.array(texts)]).tolist())) == len(texts)


def test_numbers_that_are_equal_have_one_form():
    assert key_column(pa.array([0.0, -0.0, None])).to_pylist() == [0.0, 0.0, None]
    assert str(key_column(pa.array([-0.0]))[0].as_py()) == "0.0"
