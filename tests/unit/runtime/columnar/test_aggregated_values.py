"""Values by their time, lists and sets: order, ties, nulls, types with parts."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from eventide.aggregates import collect_list, collect_set, count_distinct, first, last
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation

NAN = math.nan


def whole(aggregates, rows, kind, cut=None):
    """The results of one group of rows (time, value): of all rows at once, or of two parts that are merged."""
    aggregation = Aggregation.of(aggregates, {"x": kind})
    parts = [rows] if cut is None else [rows[:cut], rows[cut:]]
    tables = [
        pa.table({TIMESTAMP: pa.array([t for t, _ in part], pa.int64()), "x": pa.array([x for _, x in part], kind)})
        for part in parts
    ]
    partials = [aggregation.partial(table, []) for table in tables]
    return [column.to_pylist()[0] for column in aggregation.finish(aggregation.merge(pa.concat_tables(partials), []))]


def same(found, expected):
    return repr(found) == repr(expected)


ENDS = [
    first("x").alias("first"),
    last("x").alias("last"),
    first("x", ignore_nulls=True).alias("first known"),
    last("x", ignore_nulls=True).alias("last known"),
]


@pytest.mark.parametrize("cut", [None, 0, 1, 2, 3])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(5, "a"), (3, "b"), (9, "c")], ["b", "c", "b", "c"]),
        ([(5, "a"), (5, "b"), (5, "c")], ["a", "c", "a", "c"]),
        ([(3, None), (5, "b"), (9, None)], [None, None, "b", "b"]),
        ([(3, "a"), (3, None), (3, None)], ["a", None, "a", "a"]),
        ([(3, None), (4, None), (5, None)], [None, None, None, None]),
        ([(-(2**63), "a"), (0, "b"), (2**63 - 1, "c")], ["a", "c", "a", "c"]),
        ([(0, None), (-1, "b"), (0, "c")], ["b", "c", "b", "c"]),
    ],
)
def test_first_and_last_are_those_by_event_time_and_of_equal_times_by_arrival(rows, expected, cut):
    assert whole(ENDS, rows, pa.string(), cut) == expected


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.int64()), [1, None]),
        (pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())]), {"a": 1, "b": None}),
        (pa.decimal128(38, 18), Decimal("1.500000000000000000")),
        (pa.bool_(), True),
        (pa.time64("us"), dt.time(1, 2)),
        (pa.binary(), b"\x00"),
    ],
    ids=str,
)
def test_values_of_any_type_can_be_kept(kind, value, cut):
    rows = [(1, value), (2, None), (3, value)]
    expected = [value, value, value, value, [value, value]]
    assert whole([*ENDS, collect_list("x")], rows, kind, cut) == expected


@pytest.mark.parametrize("cut", [None, 0, 1, 2, 3, 4])
def test_a_list_has_the_values_that_are_not_null_in_the_order_of_arrival(cut):
    rows = [(9, "b"), (1, None), (5, "a"), (3, "b")]
    assert whole([collect_list("x")], rows, pa.string(), cut) == [["b", "a", "b"]]


@pytest.mark.parametrize("cut", [None, 0, 1, 2, 3, 4, 5])
def test_a_set_has_each_value_once_sorted_and_is_what_is_counted(cut):
    rows = [(1, "b"), (1, None), (1, "a"), (1, "b"), (1, "é")]
    assert whole([collect_set("x"), count_distinct("x")], rows, pa.string(), cut) == [["a", "b", "é"], 3]


@pytest.mark.parametrize("cut", [None, 1, 2, 3])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_nan_is_one_value_and_negative_zero_is_zero(kind, cut):
    negative_nan = -NAN
    rows = [(1, NAN), (1, -0.0), (1, negative_nan), (1, 0.0), (1, None), (1, math.inf)]
    assert same(whole([collect_set("x"), count_distinct("x")], rows, kind, cut), [[0.0, math.inf, NAN], 3])


def test_a_list_keeps_nan_and_negative_zero_as_they_are():
    rows = [(1, NAN), (1, -0.0), (1, 0.0), (1, NAN)]
    assert same(whole([collect_list("x")], rows, pa.float64()), [[NAN, -0.0, 0.0, NAN]])


def test_groups_do_not_mix_however_their_rows_lie():
    rows = pa.table({
        "key": pa.chunked_array([["b", "a"], ["b"], [], ["c", "a", None, "b"]], pa.string()),
        "x": pa.chunked_array([[1, 2, 3, None], [4, 5, 1]], pa.int64()),
        TIMESTAMP: [7, 6, 5, 4, 3, 2, 1],
    })  # fmt: skip
    aggregation = Aggregation.of(
        [collect_list("x"), collect_set("x"), count_distinct("x"), first("x"), last("x")], {"x": pa.int64()}
    )
    once = aggregation.partial(rows, ["key"])
    in_parts = aggregation.merge(
        pa.concat_tables([aggregation.partial(rows[i : i + 3], ["key"]) for i in (0, 3, 6)]), ["key"]
    )
    for partials in (once, in_parts):
        results = zip(*(column.to_pylist() for column in aggregation.finish(partials)), strict=True)
        assert dict(zip(partials["key"].to_pylist(), results, strict=True)) == {
            "a": ([2, 4], [2, 4], 2, 4, 2),
            "b": ([1, 3, 1], [1, 3], 2, 1, 1),
            "c": ([], [], 0, None, None),
            None: ([5], [5], 1, 5, 5),
        }


def test_many_groups_and_values_keep_their_order():
    keys, values = [i % 700 for i in range(20_000)], [i * 7919 % 1000 for i in range(20_000)]
    rows = pa.table({"key": keys, "x": values, TIMESTAMP: [0] * 20_000})
    aggregation = Aggregation.of([collect_list("x"), collect_set("x"), first("x"), last("x")], {"x": pa.int64()})
    partials = aggregation.partial(rows, ["key"])
    merged = aggregation.merge(
        pa.concat_tables([aggregation.partial(part, ["key"]) for part in (rows[:7777], rows[7777:])]), ["key"]
    )
    for table in (partials, merged):
        found = dict(
            zip(
                table["key"].to_pylist(),
                zip(*(c.to_pylist() for c in aggregation.finish(table)), strict=True),
                strict=True,
            )
        )
        assert len(found) == 700
        for key, (every, different, earliest, latest) in found.items():
            expected = values[key::700]
            assert (every, different) == (expected, sorted(set(expected)))
            assert (earliest, latest) == (expected[0], expected[-1])
