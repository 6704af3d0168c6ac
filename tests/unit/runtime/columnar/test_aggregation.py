"""Aggregation as a whole: its columns, its groups, and what it refuses."""

import pickle
import sys
from decimal import Decimal

import pyarrow as pa
import pytest

from eventide.aggregates import (
    ColumnAggregate,
    approx_count_distinct,
    collect_list,
    count,
    count_distinct,
    first,
    max_,
    mean,
    min_,
    stddev,
    sum_,
    variance,
)
from eventide.errors import DataError, ProgramError
from eventide.runtime.columnar.aggregation import ROWS, TIMESTAMP, Aggregation

LONG, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()


def computed(aggregates, rows, by=("key",)):
    """The partial results of rows, and the results by group."""
    aggregation = Aggregation.of(aggregates, {field.name: field.type for field in rows.schema})
    partials = aggregation.partial(rows, list(by))
    results = pa.table(
        [*(partials[name] for name in by), *aggregation.finish(partials)],
        names=[*by, *map(str, range(len(aggregates)))],
    )
    return partials, sorted(map(tuple, (row.values() for row in results.to_pylist())), key=repr)


def test_partial_results_are_the_groups_the_rows_and_what_aggregates_keep():
    aggregation = Aggregation.of(
        [count(), sum_("x"), mean("x"), count("x"), first("t"), variance("x"), stddev("x"), max_("x")],
        {"x": DOUBLE, "t": TEXT, "unused": pa.null()},
    )
    assert aggregation.input_columns == ("x", "t")
    assert aggregation.uses_timestamps
    assert aggregation.result_names == (
        "count", "sum(x)", "avg(x)", "count(x)", "first(t)", "variance(x)", "stddev(x)", "max(x)",
    )  # fmt: skip
    assert pa.schema(aggregation.partial_fields) == pa.schema([
        (ROWS, LONG),
        ("p0", DOUBLE),  # sum, for the mean too
        ("p1", LONG),  # count, for the mean and for the count
        ("p2", TEXT), ("p3", LONG),  # the first value, and its time
        ("p4", LONG), ("p5", DOUBLE), ("p6", DOUBLE),  # moments, for both
        ("p7", DOUBLE),
    ])  # fmt: skip


def test_without_first_and_last_no_timestamps_are_used():
    assert not Aggregation.of([count(), sum_("x")], {"x": LONG}).uses_timestamps


def test_an_aggregation_is_a_value_that_pickles():
    aggregation = Aggregation.of([count(), mean("x"), count_distinct("t"), stddev("x")], {"x": LONG, "t": TEXT})
    copy = pickle.loads(pickle.dumps(aggregation))
    rows = pa.table({"key": ["a", "a"], "x": [1, 2], "t": ["u", None]})
    assert copy == aggregation
    assert copy.partial(rows, ["key"]).equals(aggregation.partial(rows, ["key"]))


def test_null_is_a_group_and_keys_keep_their_types():
    keys = {
        "text": pa.array(["a", None, "a", None]),
        "day": pa.array([1, None, 1, None], pa.date32()),
        "at": pa.array([5, None, 5, None], pa.timestamp("ms")),
        "small": pa.array([1, None, 1, None], pa.int8()),
        "amount": pa.array([Decimal("1.5"), None, Decimal("1.5"), None], pa.decimal128(5, 2)),
        "truth": pa.array([True, None, True, None]),
    }
    rows = pa.table(keys | {"x": [1, 2, 3, 4]})
    aggregation = Aggregation.of([sum_("x")], {"x": LONG})
    partials = aggregation.partial(rows, list(keys))
    assert partials.schema == pa.schema([*(rows.schema.field(key) for key in keys), (ROWS, LONG), ("p0", LONG)])
    assert sorted(partials.select([ROWS, "p0"]).to_pylist(), key=str) == [{ROWS: 2, "p0": 4}, {ROWS: 2, "p0": 6}]
    merged = aggregation.merge(pa.concat_tables([partials, partials]), list(keys))
    assert merged.schema == partials.schema
    assert sorted(merged.select([ROWS, "p0"]).to_pylist(), key=str) == [{ROWS: 4, "p0": 12}, {ROWS: 4, "p0": 8}]


def test_without_keys_all_rows_are_one_group():
    rows = pa.table({"x": pa.chunked_array([[1], [2, None]], LONG)})
    aggregation = Aggregation.of([count(), sum_("x"), collect_list("x")], {"x": LONG})
    partials = aggregation.partial(rows, [])
    assert partials.to_pylist() == [{ROWS: 3, "p0": 3, "p1": [1, 2]}]
    assert aggregation.merge(pa.concat_tables([partials, partials]), []).to_pylist() == [
        {ROWS: 6, "p0": 6, "p1": [1, 2, 1, 2]}
    ]


EVERY = [
    count(), count("x"), sum_("x"), min_("x"), max_("x"), mean("x"), variance("x"), first("x"), collect_list("x"),
    count_distinct("x"), approx_count_distinct("x"),
]  # fmt: skip


@pytest.mark.parametrize("by", [[], ["key"]])
@pytest.mark.parametrize("kind", [LONG, DOUBLE, pa.decimal128(38, 18)], ids=str)
def test_no_rows_are_no_groups(by, kind):
    rows = pa.table({"key": pa.array([], TEXT), "x": pa.array([], kind), TIMESTAMP: pa.array([], LONG)})
    aggregation = Aggregation.of(EVERY, {"x": kind})
    partials = aggregation.partial(rows, by)
    assert partials.equals(
        pa.schema([*(rows.schema.field(key) for key in by), *aggregation.partial_fields]).empty_table()
    )
    assert aggregation.merge(partials, by).equals(partials)
    assert [len(column) for column in aggregation.finish(partials)] == [0] * len(EVERY)


def test_a_group_without_values_has_counts_of_zero_empty_lists_and_nulls():
    rows = pa.table({"key": ["a", "a"], "x": pa.array([None, None], LONG), TIMESTAMP: [1, 2]})
    _, results = computed(EVERY, rows)
    assert results == [("a", 2, 0, None, None, None, None, None, None, [], 0, 0)]


def test_a_group_of_one_partial_result_stays_as_it_is():
    rows = pa.table({"key": ["a", "b"], "x": [1.5, 2.5], TIMESTAMP: [1, 2]})
    aggregation = Aggregation.of(EVERY, {"x": DOUBLE})
    partials = aggregation.partial(rows, ["key"])
    assert aggregation.merge(partials, ["key"]).equals(partials)


def test_columns_that_are_not_asked_for_are_dropped_when_partials_are_merged():
    rows = pa.table({"key": ["a"], "x": [1]})
    aggregation = Aggregation.of([sum_("x")], {"x": LONG})
    partials = aggregation.partial(rows, ["key"])
    assert aggregation.merge(partials.append_column("more", pa.array([0])), ["key"]).equals(partials)


def test_a_column_can_be_key_and_input_and_be_named_like_a_result_of_arrow():
    rows = pa.table({"c0_sum": [1, 1, 2], "k0": [5, 6, 7]})
    _, results = computed([sum_("c0_sum"), max_("k0")], rows, ["c0_sum"])
    assert results == [(1, 2, 6), (2, 2, 7)]


def test_columns_of_other_arrow_types_are_taken_as_the_types_that_elements_have():
    rows = pa.table({
        "key": ["a", "a"],
        "dictionary": pa.array(["u", "u"]).dictionary_encode(),
        "decimal": pa.array([Decimal("1.25"), Decimal("2.5")], pa.decimal128(10, 2)),
        "unsigned": pa.array([1, 2**32 - 1], pa.uint32()),
        "at": pa.array([1, 2], pa.timestamp("ms")),
        "large": pa.array(["u", "v"], pa.large_string()),
    })  # fmt: skip
    aggregates = [count_distinct("dictionary"), sum_("decimal"), sum_("unsigned"), max_("at"), max_("large")]
    aggregation = Aggregation.of(aggregates, {field.name: field.type for field in rows.schema})
    results = aggregation.finish(aggregation.partial(rows, ["key"]))
    assert [column.type for column in results] == [
        LONG, pa.decimal128(38, 2), LONG, pa.timestamp("us", tz="UTC"), TEXT,
    ]  # fmt: skip
    assert [column.cast(TEXT).to_pylist() for column in results] == [
        ["1"], ["3.75"], ["4294967296"], ["1970-01-01 00:00:00.002000Z"], ["v"],
    ]  # fmt: skip


def test_a_value_that_does_not_fit_the_type_of_its_column_is_said():
    rows = pa.table({"x": pa.array([Decimal(10) ** 20], pa.decimal256(60, 2))})
    aggregation = Aggregation.of([sum_("x")], {"x": pa.decimal256(60, 2)})
    with pytest.raises(DataError, match=r"aggregate: a value of column 'x' does not fit decimal128\(38, 18\)"):
        aggregation.partial(rows, [])


def test_results_with_the_same_name_are_refused():
    with pytest.raises(ProgramError) as caught:
        Aggregation.of([sum_("x"), count(), sum_("y").alias("sum(x)")], {"x": LONG, "y": LONG})
    assert str(caught.value) == ("aggregate: 2 results are called 'sum(x)'; give them other names with .alias(...)")


def test_no_aggregates_are_refused():
    with pytest.raises(ProgramError, match=r"expected at least one aggregate, such as count\(\)"):
        Aggregation.of([], {"x": LONG})


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ProgramError, match="aggregate: there is no column 'z'; there are 'x', 'y'"):
        Aggregation.of([sum_("z")], {"x": LONG, "y": LONG})


def test_a_column_of_the_wrong_type_is_refused():
    with pytest.raises(ProgramError, match=r"sum_\('t'\): column 't' is of type STRING"):
        Aggregation.of([sum_("t")], {"t": TEXT})


def test_a_sketch_whose_library_is_missing_on_a_worker_is_refused_there(monkeypatch: pytest.MonkeyPatch):
    aggregation = Aggregation.of([approx_count_distinct("x")], {"x": LONG})
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(ProgramError, match="approx_count_distinct needs the library datasketches"):
        aggregation.partial(pa.table({"x": [1]}), [])


def test_every_aggregate_of_the_vocabulary_can_be_computed():
    from eventide import aggregates

    makers = [getattr(aggregates, name) for name in aggregates.__all__ if name != "ColumnAggregate"]
    made = [make("x", [0.5]) if make is aggregates.approx_quantiles else make("x") for make in makers]
    assert all(isinstance(aggregate, ColumnAggregate) for aggregate in made)
    rows = pa.table({"x": [1, 2], TIMESTAMP: [1, 2]})
    _, results = computed(made, rows, [])
    assert len(results[0]) == len(made) == 17
