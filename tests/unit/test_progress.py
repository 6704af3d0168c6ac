"""What Spark says of a query's sources, and whether they have ended."""

import json
from types import SimpleNamespace

import pytest

from eventide.spark.progress import NothingNew, have_ended

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


def progress(batch, *offsets):
    return SimpleNamespace(batchId=batch, sources=[SimpleNamespace(startOffset=a, endOffset=b) for a, b in offsets])


@pytest.mark.parametrize(("start", "end", "expected"), [("1", "1", True), ("1", "2", False), (None, "1", False)])
def test_a_micro_batch_had_nothing_new_if_no_source_went_on(start, end, expected):
    had_nothing_new = NothingNew()
    assert not had_nothing_new(progress(6, ("0", "1")))
    assert had_nothing_new(progress(7, ("1", "1"), (start, end))) is expected


def test_the_first_micro_batch_of_a_run_may_be_one_that_the_run_before_had_planned():
    had_nothing_new = NothingNew()
    followed = [(6, "1", "1"), (6, "1", "1"), (7, "1", "2"), (8, "2", "2")]
    assert [had_nothing_new(progress(batch, way)) for batch, *way in followed] == [False, False, False, True]
