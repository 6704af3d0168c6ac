"""Columns of times: what they may be, and what is said of those that would give nonsense."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from eventide.advisor.reading import TimeColumn
from eventide.errors import DataError, ProgramError

AT_S = 1_700_000_000  # 2023-11-14 22:13:20


@pytest.mark.parametrize(
    "values",
    [
        pa.array([AT_S * 1_000]),
        pa.array([AT_S], pa.timestamp("s")),
        pa.array([AT_S * 10**9 + 999_999], pa.timestamp("ns", "Europe/Vienna")),
        pa.array(["2023-11-14T22:13:20"]),
        pa.array(["2023-11-14T23:13:20+01:00"]),
    ],
)
def test_a_time_is_the_same_however_it_is_written(values: pa.Array) -> None:
    assert TimeColumn("ts").times(values).tolist() == [AT_S * 1_000]


@pytest.mark.parametrize(
    ("unit", "number"), [("s", AT_S), ("ms", AT_S * 10**3), ("us", AT_S * 10**6), ("ns", AT_S * 10**9)]
)
def test_numbers_count_what_is_said(unit: str, number: int) -> None:
    assert TimeColumn("ts", unit).times(pa.array([number])).tolist() == [AT_S * 1_000]


@pytest.mark.parametrize(("factor", "name"), [(1, "seconds"), (10**6, "microseconds"), (10**9, "nanoseconds")])
def test_numbers_of_another_unit_are_refused(factor: int, name: str) -> None:
    with pytest.raises(DataError, match=f"'ts' look like {name}: .* is 2023-11-14 22:13:20 in {name}"):
        TimeColumn("ts").times(pa.array([AT_S * factor]))


def test_small_numbers_are_milliseconds() -> None:
    assert TimeColumn("ts").times(pa.array([-5, 0, 100])).tolist() == [-5, 0, 100]


def test_seconds_that_are_said_to_be_milliseconds_are_taken_as_such() -> None:
    assert TimeColumn("ts", "ms").times(pa.array([AT_S])).tolist() == [AT_S]


def test_a_column_of_something_else_is_refused() -> None:
    with pytest.raises(DataError, match="'ts' has the type double, and not times"):
        TimeColumn("ts").times(pa.array([1.5]))


def test_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(DataError, match="'ts' has text that is not a time in ISO 8601"):
        TimeColumn("ts").times(pa.array(["yesterday"]))


@pytest.mark.parametrize(
    ("unit", "numbers"), [("ms", [2**60]), ("s", [2**60]), (None, pa.array([2**64 - 1], pa.uint64()))]
)
def test_times_beyond_all_calendars_are_refused(unit: str | None, numbers: Any) -> None:
    with pytest.raises(DataError, match="'ts' has times beyond the year 73,000"):
        TimeColumn("ts", unit).times(pa.array(numbers))


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ProgramError, match="unit: expected one of 's', 'ms', 'us', 'ns', got 'minutes'"):
        TimeColumn("ts", "minutes")
