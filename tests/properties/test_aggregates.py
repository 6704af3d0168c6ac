"""However rows are cut into parts, and the parts are merged, the aggregates are those that plain Python finds."""

import datetime as dt
import math
import statistics
from collections import defaultdict
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.aggregates import (
    approx_count_distinct,
    approx_quantiles,
    approx_top_k,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    max_,
    mean,
    min_,
    stddev,
    stddev_pop,
    sum_,
    var_pop,
    variance,
)
from eventide.errors import DataError
from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP, Aggregation
from support.aggregate_oracle import (
    by_time,
    different,
    known,
    oracle_mean,
    oracle_quantiles,
    oracle_sum,
    oracle_top,
    oracle_variance,
    rank,
    same,
)

TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "decimal": pa.decimal128(38, 18),
    "text": pa.string(),
    "bytes": pa.binary(),
    "truth": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
}
DAY = dt.date(2020, 1, 1)
AT = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
HALVES = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 3.0, math.inf, -math.inf, math.nan])
VALUES = {
    "int": st.integers(-3, 3),
    "long": st.integers(-(2**40), 2**40),
    "double": HALVES,
    "float": HALVES,
    "decimal": st.decimals(-(10**6), 10**6, places=18),
    "text": st.sampled_from(["", "a", "b", "ä", "z"]),
    "bytes": st.sampled_from([b"", b"a", b"\xff", b"\x00"]),
    "truth": st.booleans(),
    "day": st.integers(-2, 2).map(lambda n: DAY + dt.timedelta(n)),
    "at": st.integers(-2, 2).map(lambda n: AT + dt.timedelta(microseconds=n)),
}
NUMBERS = ("int", "long", "double", "float", "decimal")
GROUPS = st.tuples(st.sampled_from(["x", "y", None]), st.sampled_from([0, 10]))
ROWS_OF_EACH = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})
STREAMS = st.lists(st.tuples(GROUPS, st.integers(0, 4), ROWS_OF_EACH), max_size=24)
CUTS = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 7)), max_size=7)


def table(stream):
    columns = {
        "key": pa.array([group[0] for group, _, _ in stream], pa.string()),
        "start": pa.array([group[1] for group, _, _ in stream], pa.int64()),
        TIMESTAMP: pa.array([time for _, time, _ in stream], pa.int64()),
    }
    return pa.table(columns | {name: pa.array([row[name] for *_, row in stream], TYPES[name]) for name in TYPES})


def results(aggregation, stream, cuts):
    """Cut the rows, merge neighbours in the order that the cuts say, and return the results by group."""
    by = ["key", "start"]
    ends = sorted({min(place, len(stream)) for place, _ in cuts} | {len(stream)})
    parts = [table(stream[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    partials = [aggregation.partial(part, by) for part in parts]
    for _, place in cuts:
        if len(partials) > 1:
            at = place % (len(partials) - 1)
            partials[at : at + 2] = [aggregation.merge(pa.concat_tables(partials[at : at + 2]), by)]
    whole = aggregation.merge(pa.concat_tables(partials), by)
    assert whole.schema == pa.schema([("key", pa.string()), ("start", pa.int64()), *aggregation.partial_fields])
    columns = [column.to_pylist() for column in aggregation.finish(whole)]
    groups = zip(whole["key"].to_pylist(), whole["start"].to_pylist(), strict=True)
    rows = dict(zip(groups, zip(whole[ROWS].to_pylist(), *columns, strict=True), strict=True))
    assert len(rows) == whole.num_rows
    return rows


def by_group(stream):
    found = defaultdict(list)
    for group, time, row in stream:
        found[group].append((time, row))
    return found


def assert_like_the_oracle(aggregates, stream, cuts):
    """`aggregates` are pairs of an aggregate and what the oracle says of the rows of a group."""
    aggregation = Aggregation.of([aggregate for aggregate, _ in aggregates], TYPES)
    found = results(aggregation, stream, cuts)
    groups = by_group(stream)
    assert found.keys() == groups.keys()
    for group, rows in groups.items():
        assert found[group][0] == len(rows)
        for result, (aggregate, expected) in zip(found[group][1:], aggregates, strict=True):
            assert same(result, expected(rows)), (aggregate, group, result, expected(rows))


@given(STREAMS, CUTS)
def test_counts_and_sums(stream, cuts):
    aggregates = [(count(), len)]
    for name in TYPES:
        aggregates.append((count(name), lambda rows, n=name: len(known(rows, n))))
    for name in NUMBERS:
        aggregates.append((sum_(name), lambda rows, n=name: oracle_sum(known(rows, n))))
        aggregates.append((mean(name), lambda rows, n=name: oracle_mean(known(rows, n))))
    assert_like_the_oracle(aggregates, stream, cuts)


@given(STREAMS, CUTS)
def test_extremes(stream, cuts):
    aggregates = []
    for name in TYPES:
        aggregates.append((min_(name), lambda rows, n=name: min(known(rows, n), key=rank, default=None)))
        aggregates.append((max_(name), lambda rows, n=name: max(known(rows, n), key=rank, default=None)))
    assert_like_the_oracle(aggregates, stream, cuts)


@given(STREAMS, CUTS)
def test_variances(stream, cuts):
    def root(number):
        return None if number is None else math.sqrt(number)

    aggregates = []
    for name in NUMBERS:

        def of_sample(rows, n=name):
            return oracle_variance(known(rows, n), len(known(rows, n)) - 1)

        def of_all(rows, n=name):
            return oracle_variance(known(rows, n), len(known(rows, n)))

        aggregates += [(variance(name), of_sample), (stddev(name), lambda rows, f=of_sample: root(f(rows)))]
        aggregates += [(var_pop(name), of_all), (stddev_pop(name), lambda rows, f=of_all: root(f(rows)))]
    assert_like_the_oracle(aggregates, stream, cuts)


@given(STREAMS, CUTS)
def test_values_by_time(stream, cuts):
    aggregates = []
    for name in TYPES:
        for ignore in (False, True):
            for function, latest in ((first, False), (last, True)):
                aggregate = function(name, ignore).alias(f"{function.__name__} {name} {ignore}")
                expected = lambda rows, n=name, i=ignore, la=latest: by_time(rows, n, latest=la, ignore_nulls=i)  # noqa: E731
                aggregates.append((aggregate, expected))
    assert_like_the_oracle(aggregates, stream, cuts)


@given(STREAMS, CUTS)
def test_lists_and_sets(stream, cuts):
    aggregates = []
    for name in TYPES:
        aggregates.append((collect_list(name), lambda rows, n=name: known(rows, n)))
        aggregates.append((collect_set(name), lambda rows, n=name: different(known(rows, n))))
        aggregates.append((count_distinct(name), lambda rows, n=name: len(different(known(rows, n)))))
    assert_like_the_oracle(aggregates, stream, cuts)


@given(STREAMS, CUTS)
def test_sketches_of_few_values_are_exact(stream, cuts):
    probabilities = [0.0, 0.1, 0.5, 0.75, 1.0]
    aggregates = []
    for name in TYPES:
        aggregates.append((approx_count_distinct(name), lambda rows, n=name: len(different(known(rows, n)))))
        aggregates.append((approx_top_k(name, 3), lambda rows, n=name: oracle_top([row[n] for _, row in rows], 3)))
    for name in NUMBERS:
        quantiles = approx_quantiles(name, probabilities)
        aggregates.append((quantiles, lambda rows, n=name: oracle_quantiles(known(rows, n), probabilities)))
    assert_like_the_oracle(aggregates, stream, cuts)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=12), st.integers(0, 12), st.booleans())
def test_a_sum_of_integers_is_exact_or_an_error(values, cut, positive):
    """As in Spark, a part may overflow that a later one would have brought back; not so if all have the same sign."""
    if positive:
        values = [value if value is None else abs(value) % 2**63 for value in values]
    aggregation = Aggregation.of([sum_("x"), mean("x")], {"x": pa.int64()})
    whole = sum(value or 0 for value in values)
    sums = [sum(value or 0 for value in part) for part in (values[:cut], values[cut:])]
    parts = [pa.table({"x": pa.array(part, pa.int64())}) for part in (values[:cut], values[cut:])]

    def computed():
        partials = [aggregation.partial(part, []) for part in parts]
        return [column.to_pylist() for column in aggregation.finish(aggregation.merge(pa.concat_tables(partials), []))]

    if all(-(2**63) <= total < 2**63 for total in [*sums, whole]):
        present = [value for value in values if value is not None]
        total, average = computed() if values else ([], [])
        assert total == ([whole if present else None] if values else [])
        if present:  # added up as doubles, as Spark does it, whose rounding is that of the largest value
            assert average == [pytest.approx(float(Fraction(whole, len(present))), rel=1e-9, abs=2.0**14)]
        else:
            assert average == [None] * len(total)
    else:
        with pytest.raises(DataError, match=r"sum_\('x'\): the sum of column 'x'"):
            computed()


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=40), st.integers(0, 40), st.integers(0, 10**9))
def test_a_variance_does_not_suffer_from_a_large_mean(values, cut, mean_value):
    """The sum of squares would lose all digits."""
    aggregation = Aggregation.of([variance("x"), var_pop("x")], {"x": pa.float64()})
    shifted = [float(value + mean_value) for value in values]
    tables = [pa.table({"x": pa.array(part, pa.float64())}) for part in (shifted[:cut], shifted[cut:])]
    partials = pa.concat_tables([aggregation.partial(part, []) for part in tables])
    of_sample, of_all = aggregation.finish(aggregation.merge(partials, []))
    assert of_sample[0].as_py() == pytest.approx(statistics.variance(values), rel=1e-6, abs=1e-6)
    assert of_all[0].as_py() == pytest.approx(statistics.pvariance(values), rel=1e-6, abs=1e-6)
