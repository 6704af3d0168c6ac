"""Offsets in Spark's log: what has ended takes little place, and nothing is lost."""

import json

from hypothesis import given
from hypothesis import strategies as st

from eventide.runtime.sources.offsets import packed, unpacked

POSITIONS = st.fixed_dictionaries(
    {"start": st.integers(0, 3), "position": st.integers(3), "ended": st.booleans()},
    optional={"audience": st.text(), "identity": st.text(), "stop": st.integers(0), "rest": st.text()},
)


@given(st.dictionaries(st.text(max_size=3), POSITIONS, max_size=5), st.integers(0, 300))
def test_offsets_come_back_as_they_were(offsets, more):
    offsets |= {f"file {n}": {"start": 0, "position": n, "ended": True} for n in range(more)}
    logged = packed(offsets)
    assert unpacked(json.loads(json.dumps(logged))) == offsets
    assert all(logged[part] == at for part, at in offsets.items() if not at["ended"])


def test_a_file_that_was_read_takes_some_bytes_of_each_micro_batch():
    names = [f"/data/in/2026-11-23/reading-{n:08}.parquet" for n in range(10_000)]
    offsets = {name: {"start": 0, "position": 2_001, "ended": True, "audience": "0123456789ab"} for name in names}
    assert len(json.dumps(packed(offsets))) < 100_000


def test_few_stay_legible_and_offsets_of_others_as_they_are():
    few = {f"file {n}": {"start": 0, "position": 1, "ended": True} for n in range(100)}
    assert packed(few) == few
    assert unpacked({"orders": {"0": 7}}) == {"orders": {"0": 7}}
