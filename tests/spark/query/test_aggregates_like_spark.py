"""Aggregates give what Spark gives for the same rows: nulls, NaN, zeros, the ends of ranges, and overflow."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from eventide import aggregates as A  # noqa: N812
from eventide.aggregates import ColumnAggregate
from eventide.errors import DataError
from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation

pytestmark = pytest.mark.spark

NAN, INF = math.nan, math.inf
LAST = 2**63 - 1
TYPES: dict[str, tuple[T.DataType, pa.DataType]] = {
    "byte": (T.ByteType(), pa.int8()),
    "int": (T.IntegerType(), pa.int32()),
    "long": (T.LongType(), pa.int64()),
    "float": (T.FloatType(), pa.float32()),
    "double": (T.DoubleType(), pa.float64()),
    "zero": (T.DoubleType(), pa.float64()),
    "decimal": (T.DecimalType(38, 18), pa.decimal128(38, 18)),
    "text": (T.StringType(), pa.string()),
    "bytes": (T.BinaryType(), pa.binary()),
    "truth": (T.BooleanType(), pa.bool_()),
    "day": (T.DateType(), pa.date32()),
}
NUMBERS = ["byte", "int", "long", "float", "double", "zero", "decimal"]
NAMES = ["key", "t", *TYPES]
# One row for each line: its key, its event time, and a value of each type.
ROWS: list[tuple[Any, ...]] = [
    ("some", 4, 127, 2**31 - 1, 2**53, 0.1, NAN, -0.0, Decimal("1.5"), "b", b"b", True, dt.date(2020, 1, 2)),
    ("some", 2, None, None, None, None, None, None, None, None, None, None, None),
    ("some", 6, 127, 2**31 - 1, -5, 0.2, 1.0, 0.0, Decimal("2.000000000000000001"), "é", b"\xff", False, None),
    ("some", 1, None, 7, -(2**52), INF, NAN, -0.0, Decimal("-1"), "", b"", True, dt.date(1, 1, 1)),
    ("some", 5, -3, 7, 12, -2.5, -INF, 0.0, Decimal("1.5"), "z", b"a", None, dt.date(2020, 1, 2)),
    ("one", 3, 1, 2, LAST, 4.5, 5.5, -0.0, Decimal("0.000000000000000001"), "x", b"\x00", False, dt.date(1970, 1, 1)),
    ("nulls", 1, None, None, None, None, None, None, None, None, None, None, None),
    ("nulls", 2, None, None, None, None, None, None, None, None, None, None, None),
    (None, 1, 5, 5, 5, NAN, NAN, 0.0, Decimal(10), "y", b"y", True, dt.date(2020, 1, 1)),
    (None, 2, 6, 6, 7, NAN, NAN, -0.0, Decimal(11), "y", b"y", True, dt.date(2020, 1, 1)),
]


def pairs(name: str) -> list[tuple[ColumnAggregate, Column]]:
    """Each aggregate of a column, with what it is in Spark."""
    known = F.col(name).isNotNull()
    found = [
        (A.count(name), F.count(name)),
        (A.min_(name), F.min(name)),
        (A.max_(name), F.max(name)),
        (A.first(name), F.min_by(name, "t")),
        (A.last(name), F.max_by(name, "t")),
        (A.first(name, ignore_nulls=True).alias(f"first {name}"), F.min_by(name, F.when(known, F.col("t")))),
        (A.last(name, ignore_nulls=True).alias(f"last {name}"), F.max_by(name, F.when(known, F.col("t")))),
        (A.collect_list(name), F.collect_list(name)),
        # Spark's set has no order, and before 4.3 each NaN once more
        (A.collect_set(name), F.array_sort(F.array_distinct(F.collect_set(name)))),
        (A.approx_count_distinct(name), F.approx_count_distinct(name)),
    ]
    if name in NUMBERS:
        number = F.col(name).cast("double")
        found += [
            (A.sum_(name), F.sum(name)),
            (A.mean(name), F.round(F.avg(name), 18) if name == "decimal" else F.avg(name)),
            (A.variance(name), F.variance(name)),
            (A.stddev(name), F.stddev(name)),
            (A.var_pop(name), F.var_pop(name)),
            (A.stddev_pop(name), F.stddev_pop(name)),
            (A.approx_quantiles(name, [0.0, 0.5, 1.0]), F.percentile_approx(number, [0.0, 0.5, 1.0])),
        ]
    return found


def frame(spark: SparkSession) -> DataFrame:
    fields = [T.StructField(name, spark_type) for name, (spark_type, _) in TYPES.items()]
    schema = T.StructType([T.StructField("key", T.StringType()), T.StructField("t", T.LongType()), *fields])
    return spark.createDataFrame(ROWS, schema).coalesce(1)


def computed(asked: list[ColumnAggregate]) -> dict[str | None, list[Any]]:
    """The results of eventide for the rows, in parts of three."""
    kinds = [pa.string(), pa.int64(), *(kind for _, kind in TYPES.values())]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*ROWS, strict=True), kinds, strict=True)]
    rows = pa.table(columns, [name if name != "t" else TIMESTAMP for name in NAMES])
    aggregation = Aggregation.of(asked, {name: kind for name, (_, kind) in TYPES.items()})
    parts = [aggregation.partial(rows[start : start + 3], ["key"]) for start in range(0, len(ROWS), 3)]
    merged = aggregation.merge(pa.concat_tables(parts), ["key"])
    results = zip(*(column.to_pylist() for column in aggregation.finish(merged)), strict=True)
    return {key: list(row) for key, row in zip(merged["key"].to_pylist(), results, strict=True)}


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(element) for element in value]
    return bytes(value) if isinstance(value, bytearray) else value


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float) and isinstance(found, float):
        return (math.isnan(found) and math.isnan(expected)) or found == pytest.approx(expected, rel=1e-12)
    return type(found) is type(expected) and bool(found == expected)


def test_every_aggregate_gives_what_spark_gives(spark: SparkSession) -> None:
    together = [(A.count(), F.count("*")), *(pair for name in TYPES for pair in pairs(name))]
    # Beside others, a distinct count changes the order of what they collect.
    alone = [(A.count_distinct(name), F.count_distinct(name)) for name in TYPES]
    for asked in (together, alone):
        found = computed([aggregate for aggregate, _ in asked])
        rows = frame(spark).groupBy("key").agg(*(column for _, column in asked)).collect()
        assert {row.key for row in rows} == set(found)
        for row in rows:
            for (aggregate, _), ours, theirs in zip(asked, found[row.key], row[1:], strict=True):
                assert same(ours, plain(theirs)), (row.key, aggregate, ours, theirs)


def test_results_are_called_as_spark_calls_them(spark: SparkSession) -> None:
    asked = [
        (A.count("long"), F.count("long")),
        (A.sum_("long"), F.sum("long")),
        (A.min_("long"), F.min("long")),
        (A.max_("long"), F.max("long")),
        (A.mean("long"), F.mean("long")),
        (A.variance("long"), F.variance("long")),
        (A.stddev("long"), F.stddev("long")),
        (A.var_pop("long"), F.var_pop("long")),
        (A.stddev_pop("long"), F.stddev_pop("long")),
        (A.first("long"), F.first("long")),
        (A.last("long"), F.last("long")),
        (A.collect_list("long"), F.collect_list("long")),
        (A.collect_set("long"), F.collect_set("long")),
        (A.count_distinct("long"), F.count_distinct("long")),
        (A.approx_count_distinct("long"), F.approx_count_distinct("long")),
    ]
    names = frame(spark).groupBy("key").agg(*(column for _, column in asked)).columns[1:]
    assert [aggregate.output_name for aggregate, _ in asked] == names
    assert A.count().output_name == frame(spark).groupBy("key").count().columns[1]


def test_the_most_frequent_values_are_those_of_spark_null_among_them(spark: SparkSession) -> None:
    # Spark counts -0.0 and 0.0 one by one, and takes no bytes
    asked = [A.approx_top_k(name, 9) for name in TYPES if name not in {"zero", "bytes"}]
    columns = [F.expr(f"approx_top_k({aggregate.column}, 9)").alias(aggregate.output_name) for aggregate in asked]
    rows = frame(spark).groupBy("key").agg(*columns).collect()
    found = computed(asked)
    assert {row.key for row in rows} == set(found)
    for row in rows:
        for ours, theirs in zip(found[row.key], row[1:], strict=True):
            counted = [(t["item"], t["count"]) for t in theirs]
            assert sorted(repr((o["value"], o["count"])) for o in ours) == sorted(map(repr, counted))
            assert [o["count"] for o in ours] == [t["count"] for t in theirs]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("long", [LAST, 1]),
        ("long", [-LAST, -2]),
        ("decimal", [Decimal("9" * 20), Decimal(1)]),
    ],
)
def test_a_sum_that_overflows_is_an_error_in_both(spark: SparkSession, kind: str, values: list[Any]) -> None:
    spark_type, arrow_type = TYPES[kind]
    rows = spark.createDataFrame([(value,) for value in values], T.StructType([T.StructField("x", spark_type)]))
    with pytest.raises(ArithmeticException):
        rows.agg(F.sum("x")).collect()
    with pytest.raises(DataError, match=r"sum_\('x'\): the sum of column 'x'"):
        Aggregation.of([A.sum_("x")], {"x": arrow_type}).partial(pa.table({"x": pa.array(values, arrow_type)}), [])
