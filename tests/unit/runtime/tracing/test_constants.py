"""Constants that columns do not compare, or keep, as Python does: functions that use them stay Python."""

import datetime
from decimal import Decimal

import numpy as np
import pytest

from eventide.common import Row, Types
from eventide.errors import UserFunctionError
from eventide.testing import local_environment

EVENT = Types.ROW_NAMED(
    ["x", "k", "b", "s", "n"], [Types.DOUBLE(), Types.LONG(), Types.BOOLEAN(), Types.STRING(), Types.LONG()]
)
ROW = Row(x=1.5, k=7, b=True, s="x", n=-(2**63))
FLOAT, WHOLE, TRUTH, COMPLEX = (np.float64(1.5),), (np.int64(7),), (np.bool_(True),), (1.5 + 0j,)
MIXED = (1.5, None, Decimal("7.0"), True)
PAIRS = {("x", 1, 2), ("x", 7)}
TWICE = {7: datetime.datetime(2024, 11, 3, 1, 30, fold=1), 1: datetime.datetime(2020, 1, 1)}  # noqa: DTZ001


def results_of(function):
    return list(local_environment().from_collection([ROW], EVENT).map(function).execute_and_collect())


@pytest.mark.parametrize(
    "function",
    [
        lambda e: e.x in FLOAT,
        lambda e: e.k in WHOLE,
        lambda e: e.b in TRUTH,
        lambda e: e.x in COMPLEX,
        lambda e: e.k in (7 + 0j,),
        lambda e: (e.x in MIXED, e.k in MIXED, e.b in MIXED, e.n in MIXED),
        lambda e: ((e.s, e.k) in PAIRS, (e.s, e.k, 2) in PAIRS),
        lambda e: str(datetime.timedelta(microseconds=e.n)),
        lambda e: TWICE[e.k].timestamp(),
    ],
)
def test_the_result_is_that_of_the_function(function):
    assert results_of(function) == [function(ROW)]


def test_the_hour_that_the_clock_shows_twice_stays_known():
    assert [time.fold for time in results_of(lambda e: TWICE[e.k])] == [1]


@pytest.mark.parametrize("function", [lambda e: (e.k, [1]) in {(1, 2)}, lambda e: (e.k, {}) in PAIRS])
def test_a_tuple_without_a_hash_is_an_error(function):
    with pytest.raises(UserFunctionError, match="unhashable"):
        results_of(function)
