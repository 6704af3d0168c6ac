"""Aggregates of columns, computed by Arrow and numpy: partial results that merge, and results made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.aggregates import ColumnAggregate
from eventide.common.typeinfo import TypeInformation, type_info_from_arrow
from eventide.errors import DataError, ProgramError
from eventide.runtime.columnar.aggregation._accumulators import (
    TIMESTAMP,
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
from eventide.runtime.columnar.aggregation._groups import Accumulator, Grouping, Groups, Later, offsets_of
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

__all__ = [
    "ROWS",
    "TIMESTAMP",
    "Aggregation",
]


ROWS = "__rows"
"""The column of how many rows went into a group."""


@dataclass(frozen=True)
class Aggregation:
    """Some aggregates, computed together: in one pass over the rows, and with one copy of what they share.

    `partial` makes one row for each group, `merge` makes one of many such rows, `finish` makes the results. Merging
    is associative: however rows are cut into parts, and the parts are put together in their order, the result is the
    same, up to the rounding of doubles. It pickles.

    Attributes:
        aggregates: The aggregates to compute, in the order of the results.
        input_types: The columns that it is computed of, each once, with the types that their values are taken as.
    """

    aggregates: tuple[ColumnAggregate, ...]
    input_types: tuple[tuple[str, pa.DataType], ...]

    @staticmethod
    def of(aggregates: Sequence[ColumnAggregate], input_types: Mapping[str, pa.DataType]) -> Aggregation:
        """Return the computation of some aggregates on columns of these types; other columns may be among them.

        Raises:
            ProgramError: There is no aggregate, two have the same name, or one does not take a column of its type.

        >>> from eventide.aggregates import count, mean, sum_
        >>> aggregation = Aggregation.of([count(), sum_("x"), mean("x").alias("m")], {"x": pa.float64()})
        >>> aggregation.input_columns, aggregation.result_names
        (('x',), ('count', 'sum(x)', 'm'))
        >>> [f"{field.name}: {field.type}" for field in aggregation.partial_fields]
        ['__rows: int64', 'p0: double', 'p1: int64']
        >>> rows = pa.table({"key": ["a", "b", "a"], "x": [1.0, None, 2.0]})
        >>> partials = aggregation.partial(rows, ["key"])
        >>> [column.to_pylist() for column in aggregation.finish(aggregation.merge(partials, ["key"]))]
        [[2, 1], [3.0, None], [1.5, None]]
        """
        if not aggregates:
            raise ProgramError("aggregate: expected at least one aggregate, such as count()")
        for name, times in Counter(a.output_name for a in aggregates).items():
            if times > 1:
                message = f"aggregate: {times} results are called {name!r}; give them other names with .alias(...)"
                raise ProgramError(message)
        columns = {a.column: None for a in aggregates if a.column is not None}
        types = tuple((column, _type_of(column, input_types).arrow_type()) for column in columns)
        aggregation = Aggregation(tuple(aggregates), types)
        _ = aggregation._results  # what does not fit is refused now
        return aggregation

    @property
    def input_columns(self) -> tuple[str, ...]:
        """The columns of rows that are needed, beside those to group by."""
        return tuple(name for name, _ in self.input_types)

    @property
    def uses_timestamps(self) -> bool:
        """Whether rows need the column TIMESTAMP."""
        return any(isinstance(accumulator, ValueByTime) for accumulator in self._kept)

    @property
    def keeps_order(self) -> bool:
        """Whether the order of rows shows in a result."""
        return any(isinstance(accumulator, ValueList) for accumulator in self._kept)

    @property
    def partial_fields(self) -> list[pa.Field]:
        """The columns of partial results, beside those to group by: ROWS, then p0, p1, ..."""
        return [
            pa.field(name, kind)
            for accumulator, names in self._kept.items()
            for name, kind in zip(names, accumulator.types, strict=True)
        ]

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the results."""
        return tuple(aggregate.output_name for aggregate in self.aggregates)

    def partial(self, rows: pa.Table, by: Sequence[str]) -> pa.Table:
        """Return one row for each group of rows: the columns of `by`, and the partial results.

        Args:
            rows: The columns of `by`, those of `input_columns`, and TIMESTAMP if that is used; others are not looked
                at. Rows that stand earlier arrived earlier.
            by: The columns to group by; without any, all rows are one group; if there are no rows, there is no group.

        Raises:
            DataError: A sum does not fit its type, or a value the type that its column was declared with.
        """
        grouping = Grouping(rows, by, {name: _typed(rows.column(name), name, kind) for name, kind in self.input_types})
        laters = [accumulator.partial(grouping) for accumulator in self._kept]
        return self._table(by, grouping.run(), laters)

    def merge(self, partials: pa.Table, by: Sequence[str]) -> pa.Table:
        """Return one row for each group of partial results; columns are the same, and earlier rows arrived earlier.

        Raises:
            DataError: A sum does not fit its type.
        """
        grouping = Grouping(partials, by)
        laters = [accumulator.merge(grouping, names) for accumulator, names in self._kept.items()]
        groups = grouping.run()
        if groups.size == partials.num_rows:
            return partials.select([*by, *(field.name for field in self.partial_fields)])
        return self._table(by, groups, laters)

    def finish(self, partials: pa.Table) -> list[pa.Array]:
        """Return the results, an array for each aggregate, with a row for each of `partials`.

        Raises:
            DataError: A result does not fit its type.
        """
        results = []
        for aggregate, (computed, kind) in zip(self.aggregates, self._results, strict=True):
            names = [name for accumulator in computed.accumulators for name in self._kept[accumulator]]
            try:
                result = computed.finish(*(partials.column(name).combine_chunks() for name in names))
                results.append(result if result.type == kind else result.cast(kind))
            except pa.ArrowInvalid as error:
                message = f"{aggregate!r}: a result does not fit {kind}: {error}"
                raise DataError(message) from error
        return results

    @cached_property
    def _results(self) -> list[tuple[Measure, pa.DataType]]:
        """The measure of each aggregate, and the type of its result."""
        kinds = dict(self.input_types)
        results = []
        for aggregate in self.aggregates:
            kind = None if aggregate.column is None else kinds[aggregate.column]
            result_type = aggregate.result_type(None if kind is None else type_info_from_arrow(kind))
            results.append((measure(aggregate, kind), result_type.arrow_type()))
        return results

    @cached_property
    def _kept(self) -> dict[Accumulator, list[str]]:
        """Each accumulator once, that of ROWS first, with the names of its columns."""
        kept: dict[Accumulator, list[str]] = {RowCount(): [ROWS]}
        numbers = count()
        for computed, _ in self._results:
            for accumulator in computed.accumulators:
                if accumulator not in kept:
                    kept[accumulator] = [f"p{next(numbers)}" for _ in accumulator.types]
        return kept

    def _table(self, by: Sequence[str], groups: Groups, laters: Sequence[Later]) -> pa.Table:
        keys = [pa.field(name, key.type) for name, key in zip(by, groups.keys, strict=True)]
        columns = [column for later in laters for column in later(groups)]
        return pa.Table.from_arrays([*groups.keys, *columns], schema=pa.schema([*keys, *self.partial_fields]))


def _type_of(column: str, input_types: Mapping[str, pa.DataType]) -> TypeInformation:
    """Return the type that the values of a column are taken as.

    Raises:
        ProgramError: There is no such column, or no type for it.
    """
    if column not in input_types:
        message = f"aggregate: there is no column {column!r}; there are {', '.join(map(repr, input_types))}"
        raise ProgramError(message)
    return type_info_from_arrow(input_types[column])


def _typed(column: pa.ChunkedArray, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column with the type that its values are taken as, which it has already unless it is a rare one.

    Raises:
        DataError: A value does not fit.
    """
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        message = f"aggregate: a value of column {name!r} does not fit {kind}: {error}"
        raise DataError(message) from error


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
        accumulators: The accumulators of each group.
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
