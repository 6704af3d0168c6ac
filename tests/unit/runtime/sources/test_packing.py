"""Offsets in Spark's log: many parts take little place, and nothing is lost."""

import json
import zlib
from base64 import b85encode

from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.runtime.sources.offsets import clock_of, packed, unpacked

POSITIONS = st.fixed_dictionaries(
    {"start": st.integers(0, 3), "position": st.integers(3), "ended": st.booleans()},
    optional={"audience": st.text(), "identity": st.text(), "stop": st.integers(0), "rest": st.text()},
)


@given(st.dictionaries(st.text(max_size=3), POSITIONS, max_size=5), st.integers(0, 300), st.integers(0, 300))
def test_offsets_come_back_as_they_were(offsets, ended, unread):
    offsets |= {f"file {n}": {"start": 0, "position": n, "ended": True} for n in range(ended)}
    offsets |= {f"part {n}": {"start": 0, "position": n, "ended": False} for n in range(unread)}
    logged = packed(offsets)
    assert unpacked(json.loads(json.dumps(logged))) == offsets
    if unread < 90:
        assert all(logged[part] == at for part, at in offsets.items() if not at["ended"])


def test_a_partition_takes_some_bytes_of_each_micro_batch():
    names = [f"orders-{n}" for n in range(10_000)]
    known = {"ended": False, "audience": "0123456789ab", "identity": "Zr6yYx-5QYWqHNmlV7w6hA"}
    offsets = {name: {"start": 0, "position": n * 7_919 % 1_000_003, **known} for n, name in enumerate(names)}
    assert len(json.dumps(offsets)) > 1_000_000
    assert len(json.dumps(packed(offsets))) < 110_000


def test_offsets_of_an_earlier_version_are_read():
    offsets = {f"file {n}": {"start": 0, "position": n, "ended": True} for n in range(101)}
    content = b85encode(zlib.compress(json.dumps(sorted(offsets.items())).encode())).decode()
    assert unpacked({"\0ended": {"content": content}, "\0clock": {"ms": 5}}) == offsets


def test_a_file_that_was_read_takes_some_bytes_of_each_micro_batch():
    names = [f"/data/in/2026-11-23/reading-{n:08}.parquet" for n in range(10_000)]
    offsets = {name: {"start": 0, "position": 2_001, "ended": True, "audience": "0123456789ab"} for name in names}
    assert len(json.dumps(packed(offsets))) < 100_000


def test_few_stay_legible_and_offsets_of_others_as_they_are():
    few = {f"file {n}": {"start": 0, "position": 1, "ended": True} for n in range(100)}
    assert packed(few) == few
    assert unpacked({"orders": {"0": 7}}) == {"orders": {"0": 7}}


@given(
    st.dictionaries(st.text(max_size=3), POSITIONS, max_size=3), st.integers(0, 3), st.integers(0), st.integers(1, 255)
)
def test_offsets_that_have_changed_in_the_log_are_an_error(offsets, ended, at, bits):
    offsets |= {f"file {n}": {"start": 0, "position": n, "ended": True} for n in range(101 if ended == 3 else ended)}
    logged = packed(offsets, clock_ms=1_700_000_000_000)
    assert (unpacked(logged), clock_of(logged)) == (offsets, 1_700_000_000_000)
    text = bytearray(json.dumps(logged).encode())
    text[at % len(text)] ^= bits
    try:
        found = json.loads(text.decode())
    except ValueError:
        return
    if isinstance(found, dict):
        try:
            assert unpacked(found) == offsets
        except StateError:
            return
        assert clock_of(found) in (1_700_000_000_000, None)
