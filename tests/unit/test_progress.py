"""What Spark says of a query's sources, and whether they have ended."""

import json
from types import SimpleNamespace

import pytest

from eventide.spark.progress import had_nothing_new, have_ended

ENDED, GOES_ON = {"position": 3, "ended": True}, {"position": 3, "ended": False}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([{"function": ENDED}], True),
        ([{"function": ENDED}, {"a": ENDED, "b": ENDED}], True),
        ([{"function": ENDED}, {"a": ENDED, "b": GOES_ON}], False),
        ([{"function": ENDED}, {"logOffset": 0}], False),
        ([{"function": ENDED}, {"orders": {"0": 7}}], False),
        ([{"function": ENDED}, 7], False),
        ([{"function": ENDED}, None], False),
        ([{"function": ENDED}, {}], False),
        ([], False),
    ],
)
def test_sources_have_ended_when_all_parts_of_all_of_them_have_and_all_are_ours(ends, expected):
    sources = [SimpleNamespace(endOffset=None if end is None else json.dumps(end)) for end in ends]
    assert have_ended(SimpleNamespace(sources=sources)) is expected


def test_an_offset_may_be_told_as_python_writes_it():
    sources = [SimpleNamespace(endOffset=str({"function": ENDED}))]
    assert have_ended(SimpleNamespace(sources=sources))


@pytest.mark.parametrize(("start", "end", "expected"), [("1", "1", True), ("1", "2", False), (None, "1", False)])
def test_a_micro_batch_had_nothing_new_if_no_source_went_on(start, end, expected):
    sources = [SimpleNamespace(startOffset="1", endOffset="1"), SimpleNamespace(startOffset=start, endOffset=end)]
    assert had_nothing_new(SimpleNamespace(sources=sources)) is expected
