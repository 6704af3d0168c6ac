"""From what is kept of a group to the result of an aggregate."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.aggregation._groups import offsets_of

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
