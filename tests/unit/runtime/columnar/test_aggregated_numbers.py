"""Counts, sums, extremes and moments: nulls, NaN, and the ends of the ranges."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from eventide.aggregates import count, max_, mean, min_, stddev, stddev_pop, sum_, var_pop, variance
from eventide.errors import DataError
from eventide.runtime.columnar.aggregation import Aggregation

BIG_DEC, BIG_INT = pa.decimal128(38, 18), pa.decimal128(38, 0)
LAST = 2**63 - 1
NAN, INF = math.nan, math.inf


def whole(aggregates, values, kind, cut=None):
    """The results of one group: of all values at once, or of two parts that are merged."""
    aggregation = Aggregation.of(aggregates, {"x": kind})
    parts = [values] if cut is None else [values[:cut], values[cut:]]
    partials = [aggregation.partial(pa.table({"x": pa.array(part, kind)}), []) for part in parts]
    return [column.to_pylist()[0] for column in aggregation.finish(aggregation.merge(pa.concat_tables(partials), []))]


def same(found, expected):
    return repr(found) == repr(expected)


@pytest.mark.parametrize("cut", [None, 0, 1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int8(), [127, None, 127], [2, 254, 127.0]),
        (pa.int32(), [2**31 - 1, None, 2**31 - 1], [2, 2**32 - 2, 2.0**31 - 1]),
        (pa.int64(), [LAST, None, -LAST], [2, 0, 0.0]),
        (pa.float32(), [0.5, None, 0.25], [2, 0.75, 0.375]),
        (pa.float64(), [1.0, None, NAN], [2, NAN, NAN]),
        (pa.float64(), [INF, None, 1.0], [2, INF, INF]),
        (pa.float64(), [INF, None, -INF], [2, NAN, NAN]),
        (pa.float64(), [-0.0, None, None], [1, 0.0, 0.0]),
        (BIG_INT, [Decimal(1), None, Decimal(2)], [2, Decimal(3), Decimal("1.500000000000000000")]),
        (BIG_DEC, [Decimal("0.5"), None, None], [1, Decimal("0.500000000000000000"), Decimal("0.500000000000000000")]),
        (pa.int64(), [None, None, None], [0, None, None]),
        (pa.float64(), [None, None, None], [0, None, None]),
        (BIG_DEC, [None, None, None], [0, None, None]),
    ],
)
def test_nulls_are_not_counted_and_not_added(kind, values, expected, cut):
    assert same(whole([count("x"), sum_("x"), mean("x")], values, kind, cut), expected)


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("values", [[LAST, 1], [-(2**63), -1], [2**62, 2**62], [LAST, LAST]])
def test_a_sum_beyond_64_bits_is_an_error_that_says_where(values, cut):
    with pytest.raises(DataError) as caught:
        whole([sum_("x").alias("total")], values, pa.int64(), cut)
    assert str(caught.value) == (
        f"sum_('x').alias('total'): the sum of column 'x' in the group all rows is {sum(values)}, which does not fit "
        "LONG; convert the column to a wider type, such as DOUBLE, in a map before the window"
    )


def test_the_error_names_the_group():
    aggregation = Aggregation.of([sum_("x")], {"x": pa.int64()})
    rows = pa.table({"user": ["a", None, None], "start": [0, 5, 5], "x": [1, LAST, 1]})
    with pytest.raises(DataError, match="in the group user=None, start=5 is 9223372036854775808, which"):
        aggregation.partial(rows, ["user", "start"])


@pytest.mark.parametrize("values", [[LAST], [-(2**63)], [LAST, 0, -1, None], [2**62, 2**62 - 1], [LAST, 1, -1]])
def test_a_sum_at_the_end_of_64_bits_is_exact(values):
    total = sum(value or 0 for value in values)
    assert whole([sum_("x")], values, pa.int64()) == [total]


def test_a_mean_of_integers_has_no_overflow():
    assert whole([mean("x")], [LAST, LAST, None], pa.int64()) == [2.0**63]


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("function", [sum_, mean])
@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (BIG_DEC, [Decimal("9" * 20), Decimal(1)], "is 10{20}.0{18}, which does not fit decimal(38, 18)"),
        (BIG_INT, [Decimal("9" * 38), Decimal(1)], "is 10{38}, which does not fit decimal(38, 0)"),
    ],
)  # fmt: skip
def test_a_sum_of_decimals_beyond_38_digits_is_an_error(function, kind, values, said, cut):
    with pytest.raises(DataError, match=said.replace("(", r"\(").replace(")", r"\)")):
        whole([function("x")], values, kind, cut)


def test_a_sum_of_decimals_of_38_digits_is_exact():
    assert whole([sum_("x")], [Decimal("9" * 38), Decimal(1), Decimal(-1)], BIG_INT) == [Decimal("9" * 38)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0.000000000000000001", "0"], "1E-18"),  # half up ...
        (["-0.000000000000000001", "0"], "-1E-18"),  # ... away from zero
        (["0.000000000000000001", "0", "0"], "0E-18"),
        (["2", "0", "0"], "0.666666666666666667"),
        (["99999999999999999998", "1"], "49999999999999999999.500000000000000000"),
        # Arrow 26.0 rounds this quotient to 18.446744065146592608
        (["0.000000000070518803", "36.893488142899172415"], "18.446744071484845609"),
    ],
)
def test_a_mean_of_decimals_is_rounded_half_up(values, expected):
    assert same(whole([mean("x")], [Decimal(value) for value in values], BIG_DEC), [Decimal(expected)])


def test_a_mean_with_more_digits_than_a_big_dec_is_an_error():
    with pytest.raises(DataError, match=r"mean\('x'\): a result does not fit decimal128\(38, 18\)"):
        whole([mean("x")], [Decimal(10**20)], BIG_INT)


@pytest.mark.parametrize("cut", [None, 1, 2])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("values", "smallest", "largest"),
    [
        ([1.0, NAN, None], 1.0, NAN),
        ([NAN, -INF, INF], -INF, NAN),
        ([NAN, None, NAN], NAN, NAN),
        ([None, INF, 2.0], 2.0, INF),
        ([None, None, None], None, None),
    ],
)
def test_nan_is_larger_than_any_number(values, smallest, largest, kind, cut):
    assert same(whole([min_("x"), max_("x")], values, kind, cut), [smallest, largest])


def test_nan_in_one_group_does_not_change_another():
    aggregation = Aggregation.of([max_("x")], {"x": pa.float64()})
    rows = pa.table({"key": ["a", "b", "b", "c"], "x": [1.0, NAN, 2.0, None]})
    partials = aggregation.partial(rows, ["key"])
    found = dict(zip(partials["key"].to_pylist(), aggregation.finish(partials)[0].to_pylist(), strict=True))
    assert same(found, {"a": 1.0, "b": NAN, "c": None})


@pytest.mark.parametrize(
    ("kind", "values", "smallest", "largest"),
    [
        (pa.string(), ["b", "B", None, "é", "", "z"], "", "é"),  # by the bytes of UTF-8
        (pa.binary(), [b"b", b"\xff", None, b"a\x00"], b"a\x00", b"\xff"),
        (pa.bool_(), [True, None, False], False, True),
        (BIG_DEC, [Decimal("-0.5"), None, Decimal("0.25")], Decimal("-0.500000000000000000"), Decimal("0.25")),
    ],
)
def test_the_order_of_other_types(kind, values, smallest, largest):
    assert whole([min_("x"), max_("x")], values, kind) == [smallest, largest]


SPREADS = [variance("x"), stddev("x"), var_pop("x"), stddev_pop("x")]


@pytest.mark.parametrize("cut", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("kind", [pa.int16(), pa.int64(), pa.float32(), pa.float64(), BIG_INT, BIG_DEC], ids=str)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 5, None, None], [8.0, math.sqrt(8.0), 4.0, 2.0]),
        ([7, None, 7, 7], [0.0, 0.0, 0.0, 0.0]),
        ([None, 5, None, None], [None, None, 0.0, 0.0]),
        ([None, None, None, None], [None, None, None, None]),
    ],
)
def test_moments(kind, values, expected, cut):
    assert (
        whole(SPREADS, [None if v is None else pa.scalar(v).cast(kind).as_py() for v in values], kind, cut) == expected
    )


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("values", [[NAN, 1.0], [INF, 1.0], [INF, -INF], [INF, INF]])
def test_moments_of_what_is_no_number_are_nan(values, cut):
    assert same(whole(SPREADS, values, pa.float64(), cut), [NAN, NAN, NAN, NAN])


def test_moments_of_one_infinity():
    assert same(whole(SPREADS, [INF], pa.float64()), [None, None, NAN, NAN])


@pytest.mark.parametrize("cut", [None, 1, 2, 3])
def test_a_variance_far_from_zero_keeps_its_digits(cut):
    values = [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16]
    assert whole([variance("x"), var_pop("x")], values, pa.float64(), cut) == [30.0, 22.5]


@pytest.mark.parametrize("cut", [None, 1])
def test_a_variance_of_integers_beyond_64_bits(cut):
    found = whole([variance("x")], [LAST, 1], pa.int64(), cut)
    assert found == [pytest.approx(4.253529586511731e37, rel=1e-12)]
