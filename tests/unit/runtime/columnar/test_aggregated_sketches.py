"""Sketches: exact while there is little, within their error beyond, whatever is merged with what."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from eventide.aggregates import approx_count_distinct, approx_quantiles, approx_top_k
from eventide.runtime.columnar.aggregation import Aggregation

NAN, INF = math.nan, math.inf
KINDS = {
    pa.int8(): [-1, 0, 1],
    pa.int64(): [-(2**63), 0, 2**63 - 1],
    pa.float32(): [-INF, -0.5, 0.0, 0.25, INF, NAN],
    pa.float64(): [-INF, -1.5, -1e-300, 0.0, 1e300, INF, NAN],
    pa.decimal128(38, 0): [Decimal(-(10**37)), Decimal(9), Decimal(10)],
    pa.decimal128(38, 18): [Decimal("-1E-18"), Decimal("9.5"), Decimal(10)],
    pa.string(): ["", "a", "b", "é"],
    pa.binary(): [b"", b"\x00", b"a", b"\xff"],
    pa.bool_(): [False, True],
    pa.date32(): [dt.date(1, 1, 1), dt.date(2020, 1, 1)],
    pa.time64("us"): [dt.time(0), dt.time(23, 59, 59, 999999)],
    pa.timestamp("us", tz="UTC"): [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
}


def whole(aggregates, parts, kind):
    """The results of one group, of parts that are merged."""
    aggregation = Aggregation.of(aggregates, {"x": kind})
    partials = [aggregation.partial(pa.table({"x": pa.array(part, kind)}), []) for part in parts]
    return [column.to_pylist()[0] for column in aggregation.finish(aggregation.merge(pa.concat_tables(partials), []))]


def same(found, expected):
    return repr(found) == repr(expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_type_is_counted_and_comes_back_in_its_order(kind):
    values = KINDS[kind]
    parts = [[None, *values, None], values[::-1], [None]]
    distinct, top = whole([approx_count_distinct("x"), approx_top_k("x", 10)], parts, kind)
    assert distinct == len(values)
    counted = [{"value": value, "count": 2} for value in pa.array(values, kind).to_pylist()]
    assert same(top, [{"value": None, "count": 3}, *counted])


def test_without_a_value_nothing_is_distinct_and_null_is_the_most_frequent():
    aggregates = [approx_count_distinct("x"), approx_quantiles("x", [0.5]), approx_top_k("x")]
    assert whole(aggregates, [[None], [None, None]], pa.int64()) == [0, None, [{"value": None, "count": 3}]]


def test_the_most_frequent_come_first_equal_ones_in_their_order_null_last():
    parts = [["b", "a", "c", None], ["d", "d", "b", "a", None]]
    (top,) = whole([approx_top_k("x", 4)], parts, pa.string())
    assert [(row["value"], row["count"]) for row in top] == [("a", 2), ("b", 2), ("d", 2), (None, 2)]


def test_negative_zero_is_zero():
    distinct, top = whole([approx_count_distinct("x"), approx_top_k("x")], [[0.0, -0.0], [-0.0]], pa.float64())
    assert distinct == 1
    assert same(top, [{"value": 0.0, "count": 3}])


@pytest.mark.parametrize(
    ("values", "probabilities", "expected"),
    [
        (list(range(1, 11)), [0, 0.1, 0.25, 0.5, 0.55, 0.75, 0.99, 1], [1.0, 1.0, 3.0, 5.0, 6.0, 8.0, 10.0, 10.0]),
        ([7, None], [0.9, 0.1], [7.0, 7.0]),
        ([1.0, 2.0, NAN, NAN], [0.0, 0.5, 0.51, 1.0], [1.0, 2.0, NAN, NAN]),
        ([NAN, None], [0.0, 1.0], [NAN, NAN]),
        ([-INF, 0.0, INF], [0.0, 0.5, 1.0], [-INF, 0.0, INF]),
    ],
)
def test_quantiles_of_few_values_are_those_of_sparks_percentile_approx(values, probabilities, expected):
    for cut in range(len(values)):
        found = whole([approx_quantiles("x", probabilities)], [values[:cut], values[cut:]], pa.float64())
        assert same(found, [expected])


@pytest.mark.parametrize("kind", [pa.int32(), pa.float32(), pa.decimal128(38, 18)], ids=str)
def test_quantiles_are_doubles_whatever_the_numbers(kind):
    values = pa.array([1, 2, 3]).cast(kind).to_pylist()
    assert same(whole([approx_quantiles("x", [0.5])], [values], kind), [[2.0]])


@pytest.fixture(scope="module")
def many():
    return np.random.default_rng(7).permutation(200_000)


@pytest.mark.parametrize(("rsd", "parts"), [(0.05, 1), (0.05, 20), (0.01, 1), (0.01, 20)])
def test_the_error_of_distinct_counts_is_a_few_of_its_standard_deviations(many, rsd, parts):
    (found,) = whole([approx_count_distinct("x", rsd)], np.array_split(many, parts), pa.int64())
    assert found == pytest.approx(200_000, rel=3 * rsd)


def test_a_distinct_count_does_not_depend_on_how_rows_are_cut(many):
    counts = [whole([approx_count_distinct("x")], np.array_split(many, parts), pa.int64()) for parts in (1, 2, 13)]
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize(("rank_error", "parts"), [(0.005, 1), (0.005, 20), (0.05, 20)])
def test_the_error_of_quantiles_is_that_of_their_ranks(many, rank_error, parts):
    probabilities = [0.0, 0.01, 0.5, 0.99, 1.0]
    aggregate = approx_quantiles("x", probabilities, rank_error)
    (found,) = whole([aggregate], np.array_split(many.astype(np.float64), parts), pa.float64())
    ranks = [value / 200_000 for value in found]
    assert ranks == pytest.approx(probabilities, abs=2 * rank_error)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_counts_beyond_what_is_tracked_are_too_large_by_a_small_part_of_the_rows(many, kind):
    values = pa.array([*many[:20_000].tolist(), *([-1] * 3_000), *([-2] * 2_000)]).cast(kind)
    parts = np.array_split(np.arange(25_000), 5)
    (top,) = whole([approx_top_k("x", 2, 1_000)], [values.take(pa.array(p)).to_pylist() for p in parts], kind)
    assert [row["value"] for row in top] == pa.array([-1, -2]).cast(kind).to_pylist()
    for row, count in zip(top, [3_000, 2_000], strict=True):
        assert count <= row["count"] <= count + 3 * 25_000 / 1_000


def test_groups_have_sketches_of_their_own():
    rows = pa.table({"key": ["a", "b", "a", "c", "a"], "x": [1.0, 2.0, 1.0, None, 3.0]})
    aggregation = Aggregation.of(
        [approx_count_distinct("x"), approx_quantiles("x", [1.0]), approx_top_k("x", 1)], {"x": pa.float64()}
    )
    partials = aggregation.merge(
        pa.concat_tables([aggregation.partial(rows[i : i + 2], ["key"]) for i in (0, 2, 4)]), ["key"]
    )
    results = zip(*(column.to_pylist() for column in aggregation.finish(partials)), strict=True)
    assert dict(zip(partials["key"].to_pylist(), results, strict=True)) == {
        "a": (2, [3.0], [{"value": 1.0, "count": 2}]),
        "b": (1, [2.0], [{"value": 2.0, "count": 1}]),
        "c": (0, None, [{"value": None, "count": 1}]),
    }
