"""Which accumulators each aggregate keeps, and how its result is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from eventide.aggregates import ColumnAggregate
from eventide.runtime.columnar.aggregation import _distinct_sketch as distinct_sketch
from eventide.runtime.columnar.aggregation import _finish as finish
from eventide.runtime.columnar.aggregation import _frequency_sketch as frequency_sketch
from eventide.runtime.columnar.aggregation import _quantile_sketch as quantile_sketch
from eventide.runtime.columnar.aggregation._accumulator import Accumulator
from eventide.runtime.columnar.aggregation._by_time import ValueByTime
from eventide.runtime.columnar.aggregation._extremes import Extreme
from eventide.runtime.columnar.aggregation._lists import ValueList, ValueSet
from eventide.runtime.columnar.aggregation._moments import Moments
from eventide.runtime.columnar.aggregation._sums import DecimalSum, DoubleSum, LongSum, RowCount, ValueCount


@dataclass(frozen=True)
class Measure:
    """Computation of an aggregate.

    Attributes:
        accumulators: What is kept of each group.
        finish: Makes the result of the columns of all accumulators.
    """

    accumulators: tuple[Accumulator, ...]
    finish: Callable[..., pa.Array]


def measure(aggregate: ColumnAggregate, column_type: pa.DataType | None) -> Measure:
    """Return what an aggregate comes to on a column of this type; ``count()`` has none."""
    if aggregate.column is None or column_type is None:
        return Measure((RowCount(),), finish.unchanged)
    return _MEASURES[aggregate.function](aggregate, aggregate.column, column_type)


Make = Callable[[ColumnAggregate, str, Any], Measure]


def _sum(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
    if pa.types.is_decimal(kind):
        return Measure((_decimal_sum(aggregate, column, kind),), finish.unchanged)
    if pa.types.is_integer(kind):
        return Measure((LongSum(column, repr(aggregate)),), finish.unchanged)
    return Measure((DoubleSum(column),), finish.unchanged)


def _decimal_sum(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> DecimalSum:
    """A sum has more digits than what it is made of: all that there can be."""
    return DecimalSum(column, pa.decimal128(38, kind.scale), repr(aggregate))


def _mean(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
    if pa.types.is_decimal(kind):
        total = _decimal_sum(aggregate, column, kind)
        return Measure((total, ValueCount(column)), finish.decimal_quotient)
    return Measure((DoubleSum(column), ValueCount(column)), finish.quotient)


def _extreme(function: Any) -> Make:
    return lambda _, column, kind: Measure((Extreme(column, kind, function),), finish.unchanged)


def _spread(*, of_sample: bool, root: bool) -> Make:
    end = partial(finish.spread, of_sample=of_sample, root=root)
    return lambda _, column, kind: Measure((Moments(column),), end)


def _by_time(function: Any) -> Make:
    def make(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
        value = ValueByTime(column, kind, function, aggregate.option("ignore_nulls"))
        return Measure((value,), finish.value_of)

    return make


def _approx_count_distinct(aggregate: ColumnAggregate, column: str, _: pa.DataType) -> Measure:
    sketch = distinct_sketch.DistinctSketch(column, distinct_sketch.log2_size_for(aggregate.option("rsd")))
    return Measure((sketch,), distinct_sketch.estimates)


def _approx_quantiles(aggregate: ColumnAggregate, column: str, _: pa.DataType) -> Measure:
    sketch = quantile_sketch.QuantileSketch(column, quantile_sketch.size_for(aggregate.option("rank_error")))
    return Measure((sketch,), partial(quantile_sketch.quantiles, probabilities=aggregate.option("probabilities")))


def _approx_top_k(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
    size = frequency_sketch.log2_size_for(aggregate.option("max_items_tracked"))
    end = partial(frequency_sketch.most_frequent, value_type=kind, k=aggregate.option("k"))
    return Measure((frequency_sketch.FrequencySketch(column, kind, size),), end)


_MEASURES: Mapping[str, Make] = {
    "count": lambda _, column, kind: Measure((ValueCount(column),), finish.unchanged),
    "sum_": _sum,
    "min_": _extreme("min"),
    "max_": _extreme("max"),
    "mean": _mean,
    "variance": _spread(of_sample=True, root=False),
    "stddev": _spread(of_sample=True, root=True),
    "var_pop": _spread(of_sample=False, root=False),
    "stddev_pop": _spread(of_sample=False, root=True),
    "first": _by_time("min"),
    "last": _by_time("max"),
    "collect_list": lambda _, column, kind: Measure((ValueList(column, kind),), finish.unchanged),
    "collect_set": lambda _, column, kind: Measure((ValueSet(column, kind),), finish.sorted_lists),
    "count_distinct": lambda _, column, kind: Measure((ValueSet(column, kind),), finish.list_lengths),
    "approx_count_distinct": _approx_count_distinct,
    "approx_quantiles": _approx_quantiles,
    "approx_top_k": _approx_top_k,
}
