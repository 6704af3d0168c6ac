"""Kernels of numbers: whole, floating-point and decimal ones, and truth values."""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.tracing.column_values import (
    Guard,
    Value,
    array_of,
    as_column,
    as_float,
    as_whole,
    check_small,
    checked,
    in_calendar,
    is_decimal,
    is_float,
    numbers_of,
    of_each,
    python_values,
)
from eventide.runtime.tracing.known_functions import MATH, MATH_OF_SEVERAL, MATH_PARTS

CONTEXT_DIGITS = 28
"""How many digits a result of Python's decimal arithmetic has at most, before it is rounded."""
_DECIMAL_DIGITS, _MOST_DIGITS = 38, 76
"""How many digits Arrow's decimal numbers of 128 and of 256 bits have."""
_DIGITS_OF_LONG = 18
"""How many digits a whole number of 64 bits may have, whatever they are."""


def _arithmetic(of_whole: Callable[..., Value], of_floats: Callable[..., Value]) -> Callable[[Value, Value], Value]:
    def compute(left: Value, right: Value) -> Value:
        if is_decimal(left, right):
            return _decimals(of_floats, left, right)
        if is_float(left, right):
            return of_floats(as_float(left), as_float(right))
        return checked(of_whole, as_whole(left), as_whole(right))

    return compute


def _decimals(compute: Callable[..., Value], left: Value, right: Value) -> Value:
    _check_context()
    sides = [_as_decimal(side) for side in (left, right)]
    result = compute(*sides)
    if _has_zero(result) and any(map(_has_negative, sides)):
        raise Guard("a decimal zero, which might be negative")
    return result


def _check_context() -> None:
    context = decimal.getcontext()
    if context.prec < CONTEXT_DIGITS or context.rounding != decimal.ROUND_HALF_EVEN:
        raise Guard("the context of decimal numbers is not the usual one")


def _divided(of_decimals: Callable[..., Decimal]) -> Callable[[Value, Value], Value]:
    """A quotient that is cut off to a whole number, or the remainder, of decimals; Python divides large ones."""
    is_remainder = of_decimals is operator.mod

    def compute(one: Value, other: Value) -> Value:
        _check_context()
        left, right = _as_decimal(one), _as_decimal(other)
        if not pc.all(pc.not_equal(as_column(right), Decimal(0))).as_py():
            raise Guard("a division by zero")
        scale = max(left.type.scale, right.type.scale)
        digits = scale + max(side.type.precision - side.type.scale for side in (left, right))
        if digits > _DIGITS_OF_LONG:
            found = list(map(of_decimals, python_values(left), python_values(right)))
            _check_zeros(any(not each and each.is_signed() for each in found))
            return pa.array(found, pa.decimal128(_DECIMAL_DIGITS, scale if is_remainder else 0))
        dividend, divisor = (_unscaled(as_column(side).cast(pa.decimal128(digits, scale))) for side in (left, right))
        remainder = np.fmod(dividend, divisor)
        result = remainder if is_remainder else (dividend - remainder) // divisor
        is_negative = (dividend < 0) if is_remainder else (dividend < 0) != (divisor < 0)
        _check_zeros(bool((is_negative & (result == 0)).any()))
        return _scaled(result, scale if is_remainder else 0)

    return compute


def _check_zeros(has_negative: bool) -> None:
    if has_negative:
        raise Guard("a decimal zero that is negative")


def _unscaled(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Decimals of up to 18 digits without their points: the lower halves of what lies in memory."""
    words = np.frombuffer(column.buffers()[1], np.int64)
    found: np.ndarray[Any, np.dtype[np.int64]] = words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
    return found


def _scaled(numbers: np.ndarray[Any, np.dtype[np.int64]], scale: int) -> pa.Array:
    """Decimals of whole numbers, whose last digits come after the point; the inverse of `_unscaled`."""
    words = np.stack([numbers, numbers >> 63], 1)  # of a negative number, all bits of the upper half are set
    return pa.Array.from_buffers(pa.decimal128(_DIGITS_OF_LONG, scale), len(numbers), [None, pa.py_buffer(words)])


def _whole_or_decimals(
    of_whole: Callable[[Value, Value], Value], of_decimals: Callable[[Value, Value], Value]
) -> Callable[[Value, Value], Value]:
    return lambda left, right: (of_decimals if is_decimal(left, right) else of_whole)(left, right)


def _of_any(kind: type, compute: Callable[..., Any]) -> Callable[..., Value]:
    """Python itself, with decimals of any number of digits, which columns have as text."""

    def computed(*values: Any) -> Any:
        result = compute(*(Decimal(value) if type(value) is str else value for value in values))
        return str(result) if kind is Decimal and type(result) is Decimal else result

    return of_each(str if kind is Decimal else kind, computed)


def _rounded_any(value: Value, places: Value, rounding: Value) -> Value:
    digits, how = places.as_py(), rounding.as_py()
    numbers = [Decimal(one) if type(one) is str else one for one in python_values(value)]
    unit = Decimal((0, (1,), -digits))
    found = [one.quantize(unit, how) if how is not None else round(one, digits) for one in numbers]
    _check_zeros(any(not one and one.is_signed() for one in found))
    return pa.array(found, pa.decimal128(CONTEXT_DIGITS, digits))


def _as_decimal(value: Value) -> Value:
    """Decimal or whole numbers as decimal ones, of no more digits than a number of their type has."""
    if is_decimal(value):
        return value
    if isinstance(value, pa.Scalar):
        number = int(value.as_py())
        return pa.scalar(Decimal(number), pa.decimal128(len(str(abs(number))), 0))
    digits = _DIGITS.get(value.type, 19)
    return (value if value.type in _DIGITS else as_whole(value)).cast(pa.decimal128(digits, 0))


_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10}


def _rounded_decimal(value: Value, places: Value) -> Value:
    """Decimals rounded to some digits after the point, all of which they have then."""
    _check_context()
    kind, digits = value.type, places.as_py()
    wider = value.cast(pa.decimal256(kind.precision + 1, kind.scale))
    rounded = pc.round(wider, digits, "half_to_even") if digits < kind.scale else wider
    result = rounded.cast(pa.decimal256(kind.precision + 1 - kind.scale + digits, digits))
    if _has_zero(result) and _has_negative(value):
        raise Guard("a decimal zero, which might be negative")
    return result.cast(pa.decimal128(min(result.type.precision, _DECIMAL_DIGITS), digits))


def _has_zero(value: Value) -> bool:
    return bool(pc.any(pc.equal(as_column(value), Decimal(0))).as_py())


def _has_negative(value: Value) -> bool:
    return bool(pc.any(pc.less(as_column(value), Decimal(0))).as_py())


def _add(left: Value, right: Value) -> Value:
    if pa.types.is_string(left.type):
        return pc.binary_join_element_wise(left, right, "")
    return _ADD(left, right)


_ADD = _arithmetic(pc.add_checked, pc.add)


def divisor_of(right: Value) -> Any:
    """Numbers that are divided by, as numpy has them; none is zero."""
    numbers = numbers_of(right)
    if not np.all(numbers):
        raise Guard("a division by zero")
    return numbers


def true_division(left: Value, right: Value) -> Value:
    """The quotient of numbers as a floating-point number, as ``/`` gives it."""
    divisor_of(right)
    if not is_float(left, right):
        check_small(left, right)
    return pc.divide(as_float(left), as_float(right))


def floor_division(left: Value, right: Value) -> Value:
    """The quotient of whole numbers, rounded down as ``//`` does."""
    dividend, divisor = np.asarray(numbers_of(as_whole(left))), np.asarray(divisor_of(as_whole(right)))
    if (dividend == -(2**63)).any() and (divisor == -1).any():
        raise Guard("a whole number with more than 64 bits")
    return array_of(np.floor_divide(dividend, divisor))


def modulo(left: Value, right: Value) -> Value:
    """The remainder of whole numbers, which has the sign of the divisor as with ``%``."""
    return array_of(np.mod(np.asarray(numbers_of(as_whole(left))), np.asarray(divisor_of(as_whole(right)))))


def _comparison(
    compute: Callable[[Value, Value], Value], in_python: Callable[[Any, Any], Any]
) -> Callable[[Value, Value], Value]:
    def compared(left: Value, right: Value) -> Value:
        if is_decimal(left, right):
            return _compared_decimals(compute, in_python, left, right)
        if pa.types.is_string(left.type) or pa.types.is_duration(left.type):
            return compute(left, right)
        if pa.types.is_temporal(left.type):
            return compute(in_calendar(left), in_calendar(right))
        if is_float(left, right):
            if not (is_float(left) and is_float(right)):
                check_small(left, right)
            return compute(as_float(left), as_float(right))
        return compute(as_whole(left), as_whole(right))

    return compared


def _compared_decimals(
    compute: Callable[[Value, Value], Value], in_python: Callable[[Any, Any], Any], left: Value, right: Value
) -> Value:
    """Decimal numbers compared with each other, or with other numbers, each of which is exactly what it is."""
    sides = [left, right]
    for place, side in enumerate(sides):
        if is_float(side):
            if decimal.getcontext().traps[decimal.FloatOperation]:
                raise Guard("decimal numbers are not to be compared with floating-point numbers")
            if isinstance(side, pa.Array):
                return of_each(bool, in_python)(left, right)
            sides[place] = _near(side.as_py(), sides[1 - place].type.scale)
        elif not is_decimal(side):
            sides[place] = as_whole(side).cast(pa.decimal128(19, 0))
    scale = max(side.type.scale for side in sides)
    digits = scale + max(side.type.precision - side.type.scale for side in sides)
    if digits > _DECIMAL_DIGITS:
        sides = [side.cast(pa.decimal256(digits, scale)) for side in sides]
    return compute(*sides)


def _near(number: float, scale: int) -> pa.Scalar:
    """A decimal number that compares with all those of some digits after the point as a floating-point number does.

    >>> _near(0.5, 2).as_py(), _near(0.1, 2).as_py()  # which is a little more than that
    (Decimal('0.500'), Decimal('0.105'))
    """
    if math.isnan(number):
        raise Guard("NaN compared with a decimal number")
    beyond = 10 ** (_DECIMAL_DIGITS + 1 - scale)  # than any of them
    bounded = Fraction(min(max(number, -beyond), beyond)) * 10**scale
    below = math.floor(bounded)
    unscaled = below * 10 + (0 if below == bounded else 5)
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    return pa.scalar(Decimal((sign, digits, -scale - 1)), pa.decimal256(_MOST_DIGITS, scale + 1))


def _of_bits(of_truths: Callable[..., Value], of_whole: Callable[..., Value]) -> Callable[[Value, Value], Value]:
    def compute(left: Value, right: Value) -> Value:
        if pa.types.is_boolean(left.type) and pa.types.is_boolean(right.type):
            return of_truths(left, right)
        return of_whole(as_whole(left), as_whole(right))

    return compute


def _signed(of_whole: Callable[..., Value], of_floats: Callable[..., Value]) -> Callable[[Value], Value]:
    def computed(value: Value) -> Value:
        if is_decimal(value):
            _check_context()
            return of_floats(value)
        return of_floats(value) if is_float(value) else checked(of_whole, as_whole(value))

    return computed


def _math_kernels() -> Iterator[tuple[str, Callable[..., Value]]]:
    """The functions of ``math``: those that numpy or Arrow compute to the last bit, the others called for each row."""
    for name, kind in MATH.items():
        function = getattr(math, name)
        if name in MATH_PARTS:
            for place, each in enumerate(MATH_PARTS[name]):
                yield f"math.{name} {place}", of_each(each, _part_of(function, place))
            continue
        if name in MATH_OF_SEVERAL:
            kinds: tuple[type, ...] = (int, float) if name == "prod" else (kind,)
            for each in kinds:
                yield f"math.{name} to {each.__name__}", of_each(each, _of_groups(function, of_several=True))
            continue
        yield f"math.{name}", _fast_or_each(_FAST_MATH.get(name), of_each(kind, function))
        yield f"math.{name} to {kind.__name__}", of_each(kind, _of_groups(function, of_several=False))


def _part_of(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    return lambda *values: function(*values)[place]


def _of_groups(function: Callable[..., Any], *, of_several: bool) -> Callable[..., Any]:
    """A function whose first arguments tell how long its lists are, and the names of its last arguments."""

    def call(lengths: tuple[int, ...], names: tuple[str, ...], *values: Any) -> Any:
        waiting = iter(values)
        groups = [[*islice(waiting, length)] for length in lengths]
        named = dict(zip(names, waiting, strict=True))
        return function(*groups, **named) if of_several else function(*groups[0], **named)

    return call


def _fast_or_each(fast: Callable[..., Value] | None, each: Callable[..., Value]) -> Callable[..., Value]:
    if fast is None:
        return each
    return lambda *values: (each if is_decimal(*values) else fast)(*values)


def _square_root(value: Value) -> Value:
    numbers = numbers_of(as_float(value))
    if (numbers < 0).any():
        raise Guard("the square root of a negative number")
    return pa.array(np.sqrt(numbers))


def _rounded(compute: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A number rounded to a whole one; those of floating-point numbers have to have less than 64 bits."""

    def computed(value: Value) -> Value:
        if not is_float(value):
            return as_whole(value)
        rounded = compute(as_float(value))
        if not (np.abs(numbers_of(rounded)) < 2.0**63).all():
            raise Guard("a whole number with more than 64 bits, or none")
        return rounded.cast(pa.int64())

    return computed


def _common_divisor(*values: Value) -> Value:
    numbers = [np.asarray(numbers_of(as_whole(value))) for value in values]
    if any((each == -(2**63)).any() for each in numbers):
        raise Guard("a whole number with more than 64 bits")
    return pa.array(np.gcd.reduce(np.broadcast_arrays(*numbers, np.int64(0))))


_FAST_MATH: dict[str, Callable[..., Value]] = {
    "sqrt": _square_root,
    "fabs": lambda value: pc.abs(as_float(value)),
    "copysign": lambda *values: pa.array(np.copysign(*(numbers_of(as_float(value)) for value in values))),
    "degrees": lambda value: pc.multiply(as_float(value), 180.0 / math.pi),
    "radians": lambda value: pc.multiply(as_float(value), math.pi / 180.0),
    "floor": _rounded(pc.floor),
    "ceil": _rounded(pc.ceil),
    "trunc": _rounded(pc.trunc),
    "gcd": _common_divisor,
    "isnan": lambda value: pc.is_nan(as_float(value)),
    "isinf": lambda value: pc.is_inf(as_float(value)),
    "isfinite": lambda value: pc.is_finite(as_float(value)),
}
"""The functions of ``math`` that round once, as numpy and Arrow do."""


_OF_DECIMALS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "abs")},
    **{"negate": operator.neg, "plus": operator.pos, "decimal": Decimal},
}
"""The operations whose results are decimals of any number of digits."""

NUMBER_KERNELS: dict[str, Callable[..., Value]] = {
    "add": _add,
    "sub": _arithmetic(pc.subtract_checked, pc.subtract),
    "mul": _arithmetic(pc.multiply_checked, pc.multiply),
    "truediv": true_division,
    "floordiv": _whole_or_decimals(floor_division, _divided(operator.floordiv)),
    "mod": _whole_or_decimals(modulo, _divided(operator.mod)),
    "and": _of_bits(pc.and_, pc.bit_wise_and),
    "or": _of_bits(pc.or_, pc.bit_wise_or),
    "xor": _of_bits(pc.xor, pc.bit_wise_xor),
    "lt": _comparison(pc.less, operator.lt),
    "le": _comparison(pc.less_equal, operator.le),
    "gt": _comparison(pc.greater, operator.gt),
    "ge": _comparison(pc.greater_equal, operator.ge),
    "eq": _comparison(pc.equal, operator.eq),
    "ne": _comparison(pc.not_equal, operator.ne),
    "negate": _signed(pc.negate_checked, pc.negate),
    "plus": _signed(lambda value: value, lambda value: value),
    "abs": _signed(pc.abs_checked, pc.abs),
    "invert": lambda value: pc.bit_wise_not(as_whole(value)),
    "decimal": lambda value: value if is_decimal(value) else _as_decimal(value),
    "round decimal": _rounded_decimal,
    **{f"any {name}": _of_any(Decimal, function) for name, function in _OF_DECIMALS.items()},
    **{f"any {name}": _of_any(bool, getattr(operator, name)) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "any round": _rounded_any,
    "any int round": _of_any(int, round),
    "any int": _of_any(int, int),
    "any float": _of_any(float, float),
    "float": as_float,
    **dict(_math_kernels()),
    **{f"{kind.__name__} round": of_each(kind, round) for kind in (int, float)},
    **{f"{kind.__name__} power": of_each(kind, pow) for kind in (int, float)},
    "int": lambda value: of_each(int, int)(value) if is_float(value) else as_whole(value),
    "int of each": of_each(int, int),
    "float of each": of_each(float, float),
}
"""By the name of the operation in an expression."""
