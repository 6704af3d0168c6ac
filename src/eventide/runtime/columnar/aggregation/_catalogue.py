"""Which accumulators each aggregate keeps, and how its result is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.aggregates import ColumnAggregate
from eventide.runtime.columnar.aggregation._accumulators import (
    DecimalSum,
    DoubleSum,
    Extreme,
    LongSum,
    Moments,
    RowCount,
    ValueByTime,
    ValueCount,
    ValueList,
    ValueSet,
)
from eventide.runtime.columnar.aggregation._groups import Accumulator, offsets_of
from eventide.runtime.columnar.aggregation._sketches import (
    DistinctSketch,
    FrequencySketch,
    QuantileSketch,
    estimates,
    log2_size_of_distinct,
    log2_size_of_frequent,
    most_frequent,
    quantiles,
    size_of_quantiles,
)

_DECIMAL = pa.decimal128(38, 18)


def unchanged(column: pa.Array) -> pa.Array:
    """Return what is kept, because it is the result."""
    return column


def value_of(value: pa.Array, time: pa.Array) -> pa.Array:
    """Return the value without its time."""
    del time
    return value


def quotient(total: pa.Array, count: pa.Array) -> pa.Array:
    """Return the mean as a double; null without a value.

    >>> quotient(pa.array([3, None]), pa.array([2, 0])).to_pylist()
    [1.5, None]
    """
    return pc.divide(total.cast(pa.float64(), safe=False), count.cast(pa.float64()))


def decimal_quotient(total: pa.Array, count: pa.Array) -> pa.Array:
    """Return the mean as a decimal with 18 digits, rounded half up; null without a value.

    Raises:
        pyarrow.ArrowInvalid: The mean has more than 20 digits before the point.

    >>> from decimal import Decimal
    >>> decimal_quotient(pa.array([Decimal(2), None], pa.decimal128(38, 0)), pa.array([3, 0])).to_pylist()
    [Decimal('0.666666666666666667'), None]
    """
    wide = total.cast(pa.decimal256(38, total.type.scale))
    positive = pc.if_else(pc.greater(count, 0), count, pa.scalar(None, pa.int64())).cast(pa.decimal256(19, 0))
    quotient = pc.divide(wide, positive)  # 20 digits or more after the point, the rest cut off
    half = pa.scalar(Decimal("5e-19"), pa.decimal256(19, 19))  # of the last digit that a mean has
    is_negative = pc.less(quotient, pa.scalar(Decimal(0), pa.decimal256(1, 0)))
    half = pc.if_else(is_negative, pc.negate(half), half)
    return _cut(pc.add(quotient, half)).cast(_DECIMAL)


def _cut(decimals: pa.Array) -> pa.Array:
    """Cut decimals off after 18 digits, 9 digits at a time.

    Arrow (26.0, and its `round` with it) divides some numbers wrongly by a power of ten that does not fit 32 bits.
    """
    digits = decimals.type.scale
    while digits > _DECIMAL.scale:
        digits = max(digits - 9, _DECIMAL.scale)
        decimals = decimals.cast(pa.decimal256(76, digits), safe=False)
    return decimals


def spread(count: pa.Array, mean: pa.Array, squares: pa.Array, *, of_sample: bool, root: bool) -> pa.Array:
    """Return the variance, or its square root; of a sample it is null unless there are two values.

    >>> count, mean, squares = pa.array([1, 3]), pa.array([5.0, 2.0]), pa.array([0.0, 2.0])
    >>> spread(count, mean, squares, of_sample=True, root=False).to_pylist()
    [None, 1.0]
    """
    del mean
    divisor = pc.subtract(count, 1) if of_sample else count
    known = pc.if_else(pc.greater(divisor, 0), divisor, pa.scalar(None, pa.int64()))
    variance = pc.divide(squares, known.cast(pa.float64()))
    return pc.sqrt(variance) if root else variance


def sorted_lists(lists: pa.Array) -> pa.Array:
    """Return lists of different values with their elements in order, so that equal sets are equal lists.

    >>> sorted_lists(pa.array([["b", "a"], [], ["c"]])).to_pylist()
    [['a', 'b'], [], ['c']]
    """
    elements = pa.table({"list": pc.list_parent_indices(lists), "value": lists.flatten()})
    order = pc.sort_indices(elements, [("list", "ascending"), ("value", "ascending")])
    offsets = offsets_of(lists.value_lengths().to_numpy())
    values = elements.column("value").combine_chunks().take(order)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=lists.type)


def list_lengths(lists: pa.Array) -> pa.Array:
    """Return how many elements each list has.

    >>> list_lengths(pa.array([["a", "b"], []])).to_pylist()
    [2, 0]
    """
    return pc.list_value_length(lists).cast(pa.int64())


@dataclass(frozen=True)
class Measure:
    """The accumulators of an aggregate, and how its result is made of them.

    Attributes:
        accumulators: What is kept of each group.
        finish: Makes the result of the columns of all accumulators.
    """

    accumulators: tuple[Accumulator, ...]
    finish: Callable[..., pa.Array]


def measure(aggregate: ColumnAggregate, column_type: pa.DataType | None) -> Measure:
    """Return what an aggregate comes to on a column of this type; ``count()`` has none."""
    if aggregate.column is None or column_type is None:
        return Measure((RowCount(),), unchanged)
    return _MEASURES[aggregate.function](aggregate, aggregate.column, column_type)


Make = Callable[[ColumnAggregate, str, Any], Measure]


def _sum(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
    if pa.types.is_decimal(kind):
        return Measure((_decimal_sum(aggregate, column, kind),), unchanged)
    if pa.types.is_integer(kind):
        return Measure((LongSum(column, repr(aggregate)),), unchanged)
    return Measure((DoubleSum(column),), unchanged)


def _decimal_sum(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> DecimalSum:
    """A sum has more digits than what it is made of: all that there can be."""
    return DecimalSum(column, pa.decimal128(38, kind.scale), repr(aggregate))


def _mean(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
    if pa.types.is_decimal(kind):
        total = _decimal_sum(aggregate, column, kind)
        return Measure((total, ValueCount(column)), decimal_quotient)
    return Measure((DoubleSum(column), ValueCount(column)), quotient)


def _extreme(function: Any) -> Make:
    return lambda _, column, kind: Measure((Extreme(column, kind, function),), unchanged)


def _spread(*, of_sample: bool, root: bool) -> Make:
    end = partial(spread, of_sample=of_sample, root=root)
    return lambda _, column, kind: Measure((Moments(column),), end)


def _by_time(function: Any) -> Make:
    def make(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
        value = ValueByTime(column, kind, function, aggregate.option("ignore_nulls"))
        return Measure((value,), value_of)

    return make


def _approx_count_distinct(aggregate: ColumnAggregate, column: str, _: pa.DataType) -> Measure:
    sketch = DistinctSketch(column, log2_size_of_distinct(aggregate.option("rsd")))
    return Measure((sketch,), estimates)


def _approx_quantiles(aggregate: ColumnAggregate, column: str, _: pa.DataType) -> Measure:
    sketch = QuantileSketch(column, size_of_quantiles(aggregate.option("rank_error")))
    return Measure((sketch,), partial(quantiles, probabilities=aggregate.option("probabilities")))


def _approx_top_k(aggregate: ColumnAggregate, column: str, kind: pa.DataType) -> Measure:
    size = log2_size_of_frequent(aggregate.option("max_items_tracked"))
    end = partial(most_frequent, value_type=kind, k=aggregate.option("k"))
    return Measure((FrequencySketch(column, kind, size),), end)


_MEASURES: Mapping[str, Make] = {
    "count": lambda _, column, kind: Measure((ValueCount(column),), unchanged),
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
    "collect_list": lambda _, column, kind: Measure((ValueList(column, kind),), unchanged),
    "collect_set": lambda _, column, kind: Measure((ValueSet(column, kind),), sorted_lists),
    "count_distinct": lambda _, column, kind: Measure((ValueSet(column, kind),), list_lengths),
    "approx_count_distinct": _approx_count_distinct,
    "approx_quantiles": _approx_quantiles,
    "approx_top_k": _approx_top_k,
}
