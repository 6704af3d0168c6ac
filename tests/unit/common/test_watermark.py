"""Watermarks as values."""

import datetime
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.common import Watermark
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.watermark import MAX_WATERMARK, UNINITIALIZED
from eventide.errors import ProgramError

MS = st.integers(MIN_MS, MAX_MS)


@given(MS, MS)
def test_they_are_compared_and_hashed_by_their_timestamp(one, other):
    assert (Watermark(one) == Watermark(other), Watermark(one) < Watermark(other)) == (one == other, one < other)
    assert len({Watermark(one), Watermark(other), Watermark(one)}) == len({one, other})
    assert UNINITIALIZED <= Watermark(one) <= MAX_WATERMARK
    assert pickle.loads(pickle.dumps(Watermark(one))) == Watermark(one)


def test_a_watermark_is_no_number():
    assert Watermark(5) != 5


@pytest.mark.parametrize(
    ("given", "kept"),
    [(2**63 - 1, MAX_MS), (2**63, MAX_MS), (-(2**63), MIN_MS), (-(2**63) - 1, MIN_MS), (np.int64(5), 5)],
)
def test_the_timestamp_is_a_python_int_that_saturates(given, kept):
    watermark = Watermark(given)
    assert (watermark.timestamp, watermark.get_timestamp()) == (kept, kept)
    assert type(watermark.timestamp) is int


def test_the_first_and_the_last_have_names():
    assert (UNINITIALIZED.timestamp, MAX_WATERMARK.timestamp) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize("wrong", [1.0, "1", None, True])
def test_what_is_no_whole_number_is_refused(wrong):
    with pytest.raises(ProgramError, match=rf"expected an int of milliseconds since the epoch, got {wrong!r}"):
        Watermark(wrong)


@given(st.datetimes(timezones=st.just(datetime.UTC)))
def test_the_formatted_timestamp_is_that_of_pythons_calendar(moment):
    ms = (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)
    expected = moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    assert Watermark(ms).get_formatted_timestamp() == expected
    assert str(Watermark(ms)) == f"Watermark @ {ms} ({expected})"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-1, "1969-12-31 23:59:59.999"),
        (253_402_300_800_000, "10000-01-01 00:00:00.000"),
        (-62_135_596_800_001, "0000-12-31 23:59:59.999"),
    ],
)
def test_beyond_pythons_calendar_years_go_on(ms, text):
    assert Watermark(ms).get_formatted_timestamp() == text


def test_its_repr_makes_it_again():
    assert eval(repr(Watermark(-7))) == Watermark(-7)
