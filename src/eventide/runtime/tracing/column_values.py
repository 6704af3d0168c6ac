"""Values of columns: what they are as numbers or as Python objects, and the guards of what columns might get wrong."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.typeinfo.basic import decimals_of

Value: TypeAlias = "pa.Array | pa.Scalar"
"""A column without nulls, or a constant."""

EXACT_FLOAT = 2**53
"""Up to this number, each whole number is a floating-point number too."""

DAY_US = 86_400_000_000
SECOND_US = 1_000_000
scalar = cache(pa.scalar)
"""Arrow imports pandas with the first scalar: one that is made here would have processes that only plan wait for it."""
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of Python's calendar."""


class Guard(Exception):
    """Says what there is in a batch for which columns might give another result than the function."""


def checked(compute: Callable[..., Value], *operands: Value) -> Value:
    """The result of a kernel that raises for a whole number with more than 64 bits, which is a guard."""
    try:
        return compute(*operands)
    except pa.ArrowInvalid as error:
        raise Guard("a whole number with more than 64 bits") from error


def is_float(*values: Value) -> bool:
    """Whether one of some values is of floating-point numbers."""
    return any(pa.types.is_floating(value.type) for value in values)


def is_decimal(*values: Value) -> bool:
    """Whether one of some values is of decimal numbers."""
    return any(pa.types.is_decimal(value.type) for value in values)


def as_float(value: Value) -> Value:
    """A number as a floating-point number; a whole number is rounded as Python rounds it."""
    if pa.types.is_boolean(value.type):
        value = value.cast(pa.int64())
    return value if pa.types.is_float64(value.type) else pc.cast(value, pa.float64(), safe=False)


def as_whole(value: Value) -> Value:
    """Whole numbers or truth values as whole numbers of 64 bits."""
    return value if pa.types.is_int64(value.type) else value.cast(pa.int64())


def numbers_of(value: Value) -> Any:
    """A column as numpy has it, or a number."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value.to_numpy(zero_copy_only=False)


def largest(value: Value) -> int:
    """The largest absolute value of whole numbers."""
    numbers = np.asarray(numbers_of(value))
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if numbers.size else 0


def check_small(*values: Value) -> None:
    """Guard whole numbers that are compared or divided as floating-point numbers."""
    for value in values:
        if not is_float(value) and largest(as_whole(value)) > EXACT_FLOAT:
            raise Guard("a whole number beyond 2**53 where floating-point numbers are computed")


def as_column(value: Value) -> pa.Array:
    """A column, or a constant as a column of one row."""
    return pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else value


def array_of(numbers: Any) -> Value:
    """Numbers of numpy as a column, or one of them as a constant."""
    return pa.array(numbers) if isinstance(numbers, np.ndarray) else pa.scalar(numbers.item())


def in_calendar(value: Value) -> Value:
    """Dates, or dates and times without a zone as Python has them, from columns; only those that Python can have."""
    is_date = pa.types.is_date(value.type)
    moments = value.cast(pa.date32() if is_date else pa.timestamp("us"))
    if isinstance(moments, pa.Array) and len(moments):
        bounds = pc.min_max(moments.view(pa.int32() if is_date else pa.int64())).as_py()
        unit_us = DAY_US if is_date else 1
        if bounds["min"] < _FIRST_US // unit_us or bounds["max"] > _LAST_US // unit_us:
            raise Guard("a date that Python does not have")
    return moments


ARROW_TYPES: dict[type, pa.DataType] = {
    **{str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()},
    **{datetime.datetime: pa.timestamp("us"), datetime.date: pa.date32(), datetime.timedelta: pa.duration("us")},
}


def of_each(kind: type, compute: Callable[..., Any]) -> Callable[..., Value]:
    """Python itself, called with the values of each row, at least one a column, where Arrow cannot."""

    def computed(*values: Value) -> Value:
        found = list(map(compute, *map(python_values, values)))
        if not {kind}.issuperset(map(type, found)):
            raise Guard(f"a result that is not of type {kind.__name__}")
        if kind is datetime.datetime and any(one.tzinfo is not None or one.fold for one in found):
            raise Guard("a time with a zone, or in the hour that the clock shows twice")
        return pa.array(found, ARROW_TYPES[kind])

    return computed


def python_values(value: Value) -> Iterator[Any]:
    """The Python values of a column; those of a constant have no end."""
    if isinstance(value, pa.Scalar):
        one = value.as_py()
        return repeat(tuple(one) if type(one) is list else one)
    if pa.types.is_timestamp(value.type) or pa.types.is_date(value.type):
        value = in_calendar(value)
    if pa.types.is_duration(value.type) and pc.any(pc.equal(value.cast(pa.int64()), -(2**63))).as_py():
        raise Guard("a duration of -2**63 microseconds")  # which numpy has for a time that is none
    return iter(decimals_of(value) if is_decimal(value) else value.to_numpy(zero_copy_only=False).tolist())


def column_of(values: Sequence[Any]) -> pa.Array:
    """Values of one type as a column.

    Raises:
        ValueError: if they are not of one type, or of one that columns do not have as it is.
        OverflowError: if a whole number has more than 64 bits.
    """
    kinds = set(map(type, values))
    if len(kinds) != 1 or not kinds <= ARROW_TYPES.keys():
        raise ValueError("they are not of one type")
    if any(getattr(value, "tzinfo", None) is not None for value in values):
        raise ValueError("they are times with a zone")
    if any(getattr(value, "fold", 0) for value in values):
        raise ValueError("they are times in the hour that the clock shows twice")
    return pa.array(values, ARROW_TYPES[kinds.pop()])
