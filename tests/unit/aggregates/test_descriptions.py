"""Descriptions of aggregates before they are computed: its name, its text, the type of its result, its refusals."""

import pickle
import sys

import pytest

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
from eventide.common import Types
from eventide.errors import ProgramError

LONG, DOUBLE = Types.LONG(), Types.DOUBLE()

# (aggregate, its repr, Spark's name for its result)
DESCRIPTIONS = [
    (count(), "count()", "count"),
    (count("x"), "count('x')", "count(x)"),
    (sum_("x"), "sum_('x')", "sum(x)"),
    (min_("x"), "min_('x')", "min(x)"),
    (max_("x"), "max_('x')", "max(x)"),
    (mean("x"), "mean('x')", "avg(x)"),
    (variance("x"), "variance('x')", "variance(x)"),
    (stddev("x"), "stddev('x')", "stddev(x)"),
    (var_pop("x"), "var_pop('x')", "var_pop(x)"),
    (stddev_pop("x"), "stddev_pop('x')", "stddev_pop(x)"),
    (first("x"), "first('x', ignore_nulls=False)", "first(x)"),
    (last("x", ignore_nulls=True), "last('x', ignore_nulls=True)", "last(x)"),
    (collect_list("x"), "collect_list('x')", "collect_list(x)"),
    (collect_set("x"), "collect_set('x')", "collect_set(x)"),
    (count_distinct("x"), "count_distinct('x')", "count(DISTINCT x)"),
    (approx_count_distinct("x"), "approx_count_distinct('x', rsd=0.05)", "approx_count_distinct(x)"),
    (
        approx_quantiles("x", [0, 0.5]),
        "approx_quantiles('x', probabilities=(0.0, 0.5), rank_error=0.005)",
        "approx_quantiles(x, [0.0, 0.5])",
    ),
    (approx_top_k("x", 3), "approx_top_k('x', k=3, max_items_tracked=10000)", "approx_top_k(x, 3)"),
]
IDS = [text for _, text, _ in DESCRIPTIONS]


@pytest.mark.parametrize(("aggregate", "text", "name"), DESCRIPTIONS, ids=IDS)
def test_an_aggregate_reads_as_the_call_that_makes_it_and_is_named_as_by_spark(aggregate, text, name):
    assert (repr(aggregate), aggregate.output_name) == (text, name)
    assert aggregate.column == (None if text == "count()" else "x")


@pytest.mark.parametrize("aggregate", [aggregate for aggregate, _, _ in DESCRIPTIONS], ids=IDS)
def test_an_aggregate_is_a_value_that_pickles(aggregate):
    copy = pickle.loads(pickle.dumps(aggregate))
    assert (copy, hash(copy), repr(copy)) == (aggregate, hash(aggregate), repr(aggregate))
    assert aggregate.alias("other") != aggregate


@pytest.mark.parametrize("aggregate", [aggregate for aggregate, _, _ in DESCRIPTIONS], ids=IDS)
def test_an_alias_gives_another_aggregate_with_that_name(aggregate):
    renamed = aggregate.alias("a").alias("b")
    assert (renamed.output_name, repr(renamed)) == ("b", f"{aggregate!r}.alias('b')")
    assert aggregate.output_name != "b"
    assert renamed.option("rsd") if renamed.function == "approx_count_distinct" else renamed.column == aggregate.column


NUMBERS = ["BYTE", "SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE", "BIG_DEC"]
SINGLE = [*NUMBERS, "STRING", "CHAR", "BOOLEAN", "SQL_DATE", "SQL_TIME", "SQL_TIMESTAMP", "INSTANT"]
SUMS = dict(zip(NUMBERS, ["LONG", "LONG", "LONG", "LONG", "BIG_INT", "DOUBLE", "DOUBLE", "BIG_DEC"], strict=True))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_sums_means_and_moments(name):
    kind = getattr(Types, name)()
    assert sum_("x").result_type(kind) == getattr(Types, SUMS[name])()
    assert mean("x").result_type(kind) == (Types.BIG_DEC() if name.startswith("BIG") else DOUBLE)
    for aggregate in (variance("x"), stddev("x"), var_pop("x"), stddev_pop("x")):
        assert aggregate.result_type(kind) == DOUBLE
    assert approx_quantiles("x", [0.5]).result_type(kind) == Types.LIST(DOUBLE)


@pytest.mark.parametrize("kind", [*(getattr(Types, n)() for n in SINGLE), Types.PRIMITIVE_ARRAY(Types.BYTE())], ids=str)
def test_single_values_can_be_compared(kind):
    for aggregate in (min_("x"), max_("x"), first("x"), last("x")):
        assert aggregate.result_type(kind) == kind
    for aggregate in (count("x"), count_distinct("x"), approx_count_distinct("x")):
        assert aggregate.result_type(kind) == LONG
    assert collect_list("x").result_type(kind) == collect_set("x").result_type(kind) == Types.LIST(kind)
    assert approx_top_k("x").result_type(kind) == Types.LIST(Types.ROW_NAMED(["value", "count"], [kind, LONG]))


NESTED = [
    Types.LIST(LONG),
    Types.MAP(Types.STRING(), LONG),
    Types.ROW_NAMED(["a"], [LONG]),
    Types.TUPLE([LONG]),
    Types.TIME_WINDOW(),
    Types.PICKLED_BYTE_ARRAY(),
]


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_values_with_parts_can_be_counted_and_kept(kind):
    assert count("x").result_type(kind) == LONG
    assert first("x").result_type(kind) == last("x").result_type(kind) == kind
    assert collect_list("x").result_type(kind) == Types.LIST(kind)


@pytest.mark.parametrize("kind", NESTED, ids=str)
@pytest.mark.parametrize("make", [min_, max_, collect_set, count_distinct, approx_count_distinct, approx_top_k])
def test_values_with_parts_cannot_be_compared(make, kind):
    with pytest.raises(ProgramError, match=r"column 'x' is of type .* takes numbers, text, bytes, truth values, dates"):
        make("x").result_type(kind)


@pytest.mark.parametrize("make", [sum_, mean, variance, stddev, var_pop, stddev_pop])
@pytest.mark.parametrize("kind", [Types.STRING(), Types.BOOLEAN(), Types.SQL_TIMESTAMP(), *NESTED], ids=str)
def test_only_numbers_have_a_sum(make, kind):
    with pytest.raises(ProgramError) as caught:
        make("x").result_type(kind)
    assert str(caught.value) == (
        f"{make.__name__}('x'): column 'x' is of type {kind}, but {make.__name__} takes numbers only; "
        "convert it to a number in a map before the window"
    )


def test_rows_are_counted_whatever_their_type():
    assert count().result_type() == LONG


def test_a_column_without_a_type_is_refused():
    with pytest.raises(ProgramError, match=r"sum_\('x'\): expected the type of column 'x' as a TypeInformation"):
        sum_("x").result_type()


@pytest.mark.parametrize("column", ["", 5, None, b"x"])
@pytest.mark.parametrize("make", [sum_, min_, first, collect_list, count_distinct, approx_count_distinct, approx_top_k])
def test_a_column_is_given_by_its_name(make, column):
    with pytest.raises(ProgramError, match=f"{make.__name__}: expected the name of a column, got {column!r}"):
        make(column)


def test_a_count_takes_a_name_or_nothing():
    with pytest.raises(ProgramError, match="count: expected the name of a column, got 1"):
        count(1)


@pytest.mark.parametrize("name", ["", None, 1])
def test_an_alias_is_a_name(name):
    with pytest.raises(ProgramError, match=r"count\(\)\.alias: expected a name for the result, got "):
        count().alias(name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: approx_count_distinct("x", 0.0009), "approx_count_distinct: rsd is a number from 0.001 to 0.25"),
        (lambda: approx_count_distinct("x", 0.26), "got 0.26"),
        (lambda: approx_count_distinct("x", "0.1"), "got '0.1'"),
        (lambda: approx_count_distinct("x", True), "got True"),
        (lambda: approx_quantiles("x", []), r"expected a list of probabilities such as \[0.5, 0.99\], got \[\]"),
        (lambda: approx_quantiles("x", 0.5), "expected a list of probabilities"),
        (lambda: approx_quantiles("x", "0.5"), "expected a list of probabilities"),
        (lambda: approx_quantiles("x", [0.5, 1.1]), "a probability is a number from 0 to 1, got 1.1"),
        (lambda: approx_quantiles("x", [float("nan")]), "a probability is a number from 0 to 1, got nan"),
        (lambda: approx_quantiles("x", [0.5], 0.0001), "rank_error is a number from 0.0002 to 0.25, got 0.0001"),
        (lambda: approx_top_k("x", 0), "approx_top_k: k is a whole number from 1 to 1000000, got 0"),
        (lambda: approx_top_k("x", 2.0), "k is a whole number"),
        (lambda: approx_top_k("x", 5, 4), "max_items_tracked is a whole number from 5 to 1000000, got 4"),
    ],
)
def test_options_out_of_their_range_are_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        make()


@pytest.mark.parametrize("make", [approx_count_distinct, lambda column: approx_quantiles(column, [0.5]), approx_top_k])
def test_a_sketch_without_its_library_is_refused_when_it_is_made(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(ProgramError, match=r"approx_\w+ needs the library datasketches.*'eventide-spark\[sketc"):
        make("x")
