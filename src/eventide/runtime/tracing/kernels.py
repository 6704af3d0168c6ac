"""Kernels: each operation of a trace on columns, where that gives what Python gives; else a guard says so."""

from __future__ import annotations

import datetime
import decimal
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.tracing.admission import MATH
from eventide.runtime.tracing.patterns import WANTED, Translated, translated

Value: TypeAlias = "pa.Array | pa.Scalar"
"""A column without nulls, or a constant."""

_EXACT_FLOAT = 2**53
"""Up to this number, each whole number is a floating-point number too."""

_WHITESPACE = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""The characters that Python strips from ASCII text."""

CONTEXT_DIGITS = 28
"""How many digits a result of Python's decimal arithmetic has at most, before it is rounded."""
_DECIMAL_DIGITS, _MOST_DIGITS = 38, 76
"""How many digits Arrow's decimal numbers of 128 and of 256 bits have."""
_DAY_US = 86_400_000_000
_SECOND_US = 1_000_000
_scalar = cache(pa.scalar)
"""Arrow imports pandas with the first scalar: one that is made here would have processes that only plan wait for it."""
_FIRST_US, _LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of Python's calendar."""


class Guard(Exception):
    """Says what there is in a batch for which columns might give another result than the function."""


def _checked(compute: Callable[..., Value], *operands: Value) -> Value:
    try:
        return compute(*operands)
    except pa.ArrowInvalid as error:
        raise Guard("a whole number with more than 64 bits") from error


def _is_float(*values: Value) -> bool:
    return any(pa.types.is_floating(value.type) for value in values)


def _is_decimal(*values: Value) -> bool:
    return any(pa.types.is_decimal(value.type) for value in values)


def as_float(value: Value) -> Value:
    """A number as a floating-point number; a whole number is rounded as Python rounds it."""
    if pa.types.is_boolean(value.type):
        value = value.cast(pa.int64())
    return value if pa.types.is_float64(value.type) else pc.cast(value, pa.float64(), safe=False)


def _as_whole(value: Value) -> Value:
    return value if pa.types.is_int64(value.type) else value.cast(pa.int64())


def _numbers(value: Value) -> Any:
    """A column as numpy has it, or a number."""
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return value.to_numpy(zero_copy_only=False)


def _largest(value: Value) -> int:
    """The largest absolute value of whole numbers."""
    numbers = np.asarray(_numbers(value))
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if numbers.size else 0


def _small_enough(*values: Value) -> None:
    """Guard whole numbers that are compared or divided as floating-point numbers."""
    for value in values:
        if not _is_float(value) and _largest(_as_whole(value)) > _EXACT_FLOAT:
            raise Guard("a whole number beyond 2**53 where floating-point numbers are computed")


def _arithmetic(of_whole: Callable[..., Value], of_floats: Callable[..., Value]) -> Callable[[Value, Value], Value]:
    def compute(left: Value, right: Value) -> Value:
        if _is_decimal(left, right):
            return _decimals(of_floats, left, right)
        if _is_float(left, right):
            return of_floats(as_float(left), as_float(right))
        return _checked(of_whole, _as_whole(left), _as_whole(right))

    return compute


def _decimals(compute: Callable[..., Value], left: Value, right: Value) -> Value:
    context = decimal.getcontext()
    if context.prec < CONTEXT_DIGITS or context.rounding != decimal.ROUND_HALF_EVEN:
        raise Guard("the context of decimal numbers is not the usual one")
    sides = [side if _is_decimal(side) else _as_whole(side).cast(pa.decimal128(19, 0)) for side in (left, right)]
    result = compute(*sides)
    if _has_zero(result) and any(map(_has_negative, sides)):
        raise Guard("a decimal zero, which might be negative")
    return result


def _has_zero(value: Value) -> bool:
    return bool(pc.any(pc.equal(_as_column(value), Decimal(0))).as_py())


def _has_negative(value: Value) -> bool:
    return bool(pc.any(pc.less(_as_column(value), Decimal(0))).as_py())


def _as_column(value: Value) -> pa.Array:
    return pa.array([value.as_py()], value.type) if isinstance(value, pa.Scalar) else value


def _add(left: Value, right: Value) -> Value:
    if pa.types.is_string(left.type):
        return pc.binary_join_element_wise(left, right, "")
    return _ADD(left, right)


_ADD = _arithmetic(pc.add_checked, pc.add)


def _divisor(right: Value) -> Any:
    numbers = _numbers(right)
    if not np.all(numbers):
        raise Guard("a division by zero")
    return numbers


def _array(numbers: Any) -> Value:
    return pa.array(numbers) if isinstance(numbers, np.ndarray) else pa.scalar(numbers.item())


def _true_division(left: Value, right: Value) -> Value:
    _divisor(right)
    if not _is_float(left, right):
        _small_enough(left, right)
    return pc.divide(as_float(left), as_float(right))


def _floor_division(left: Value, right: Value) -> Value:
    dividend, divisor = np.asarray(_numbers(_as_whole(left))), np.asarray(_divisor(_as_whole(right)))
    if (dividend == -(2**63)).any() and (divisor == -1).any():
        raise Guard("a whole number with more than 64 bits")
    return _array(np.floor_divide(dividend, divisor))


def _modulo(left: Value, right: Value) -> Value:
    return _array(np.mod(np.asarray(_numbers(_as_whole(left))), np.asarray(_divisor(_as_whole(right)))))


def _comparison(
    compute: Callable[[Value, Value], Value], in_python: Callable[[Any, Any], Any]
) -> Callable[[Value, Value], Value]:
    def compared(left: Value, right: Value) -> Value:
        if _is_decimal(left, right):
            return _compared_decimals(compute, in_python, left, right)
        if pa.types.is_string(left.type) or pa.types.is_duration(left.type):
            return compute(left, right)
        if pa.types.is_temporal(left.type):
            return compute(_in_calendar(left), _in_calendar(right))
        if _is_float(left, right):
            if not (_is_float(left) and _is_float(right)):
                _small_enough(left, right)
            return compute(as_float(left), as_float(right))
        return compute(_as_whole(left), _as_whole(right))

    return compared


def _compared_decimals(
    compute: Callable[[Value, Value], Value], in_python: Callable[[Any, Any], Any], left: Value, right: Value
) -> Value:
    """Decimal numbers compared with each other, or with other numbers, each of which is exactly what it is."""
    sides = [left, right]
    for place, side in enumerate(sides):
        if _is_float(side):
            if decimal.getcontext().traps[decimal.FloatOperation]:
                raise Guard("decimal numbers are not to be compared with floating-point numbers")
            if isinstance(side, pa.Array):
                return _each(bool, in_python)(left, right)
            sides[place] = _near(side.as_py(), sides[1 - place].type.scale)
        elif not _is_decimal(side):
            sides[place] = _as_whole(side).cast(pa.decimal128(19, 0))
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


def _in_calendar(value: Value) -> Value:
    """Dates, or dates and times without a zone as Python has them, from columns; only those that Python can have."""
    is_date = pa.types.is_date(value.type)
    moments = value.cast(pa.date32() if is_date else pa.timestamp("us"))
    if isinstance(moments, pa.Array) and len(moments):
        bounds = pc.min_max(moments.view(pa.int32() if is_date else pa.int64())).as_py()
        unit_us = _DAY_US if is_date else 1
        if bounds["min"] < _FIRST_US // unit_us or bounds["max"] > _LAST_US // unit_us:
            raise Guard("a date that Python does not have")
    return moments


def _part(compute: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A part of a date or of a date and time, as a whole number."""
    return lambda value: compute(_in_calendar(value)).cast(pa.int64())


def _micros(value: Value) -> Value:
    """A time, or a difference of times, in microseconds; a whole number as it is."""
    if pa.types.is_date(value.type):
        return pc.multiply(_in_calendar(value).cast(pa.int32()).cast(pa.int64()), _DAY_US)
    if pa.types.is_timestamp(value.type):
        return _in_calendar(value).cast(pa.int64())
    return value.cast(pa.duration("us")).cast(pa.int64()) if pa.types.is_duration(value.type) else _as_whole(value)


def _of_times(compute: Callable[..., Value], kind: str) -> Callable[..., Value]:
    """An operator on times and their differences, which are microseconds; its result is of a kind."""

    def computed(*values: Value) -> Value:
        micros = [_micros(value) for value in values]
        if kind == "date":  # of a difference, only whole days count
            micros = [pc.multiply(_floor_division(each, _scalar(_DAY_US)), _DAY_US) for each in micros]
        found = _checked(compute, *micros)
        match kind:
            case "timedelta":
                return found.cast(pa.duration("us"))
            case "datetime":
                return _in_calendar(found.cast(pa.timestamp("us")))
            case "date":
                days = _floor_division(found, _scalar(_DAY_US))
                return _in_calendar(days.cast(pa.int32()).cast(pa.date32()))
        return found

    return computed


def _seconds(value: Value) -> Value:
    """Microseconds as seconds, as Python rounds them."""
    micros = _micros(value)
    if _largest(micros) > _EXACT_FLOAT:
        return _each(float, lambda each: each / 1_000_000)(micros)
    return pc.divide(as_float(micros), 1e6)


def _with_parts(time: datetime.datetime, *parts: Any) -> datetime.datetime:
    return time.replace(**dict(zip(parts[::2], parts[1::2], strict=True)))


def _of_bits(of_truths: Callable[..., Value], of_whole: Callable[..., Value]) -> Callable[[Value, Value], Value]:
    def compute(left: Value, right: Value) -> Value:
        if pa.types.is_boolean(left.type) and pa.types.is_boolean(right.type):
            return of_truths(left, right)
        return of_whole(_as_whole(left), _as_whole(right))

    return compute


def _signed(of_whole: Callable[..., Value], of_floats: Callable[..., Value]) -> Callable[[Value], Value]:
    return lambda value: of_floats(value) if _is_float(value) else _checked(of_whole, _as_whole(value))


def _of_ascii(compute: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def computed(value: Value) -> Value:
        texts = _as_column(value)
        if len(texts) and not pc.all(pc.string_is_ascii(texts)).as_py():
            raise Guard("a text that is not ASCII")
        return compute(value)

    return computed


_ARROW_TYPES: dict[type, pa.DataType] = {
    **{str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()},
    **{datetime.datetime: pa.timestamp("us"), datetime.date: pa.date32(), datetime.timedelta: pa.duration("us")},
}


def _each(kind: type, compute: Callable[..., Any]) -> Callable[..., Value]:
    """Python itself, called with the values of each row, at least one a column, where Arrow cannot."""

    def computed(*values: Value) -> Value:
        found = list(map(compute, *map(_python_values, values)))
        if not {kind}.issuperset(map(type, found)):
            raise Guard(f"a result that is not of type {kind.__name__}")
        return pa.array(found, _ARROW_TYPES[kind])

    return computed


def _python_values(value: Value) -> Iterator[Any]:
    """The Python values of a column; those of a constant have no end."""
    if isinstance(value, pa.Scalar):
        one = value.as_py()
        return repeat(tuple(one) if type(one) is list else one)
    if pa.types.is_timestamp(value.type) or pa.types.is_date(value.type):
        value = _in_calendar(value)
    return iter(value.to_pylist() if _is_decimal(value) else value.to_numpy(zero_copy_only=False).tolist())


def _method(text: str, name: str, *arguments: object) -> Any:
    return getattr(text, name)(*arguments)


def _time_as_text(value: Value, *form: Value) -> Value:
    """The texts of ``strftime``, which is called once for all times that the format shows alike."""
    if len(form) != 1:
        return _STRFTIME(value, *form)
    if pa.types.is_timestamp(value.type):
        shown = min((_SHOWN_AFTER_US.get(each, 1) for each in _DIRECTIVE.findall(form[0].as_py())), default=_DAY_US)
        step = pa.scalar(shown)
        value = pc.multiply(_floor_division(_micros(value), step), step).cast(pa.timestamp("us"))
    distinct = value.dictionary_encode()
    return _STRFTIME(distinct.dictionary, *form).take(distinct.indices)


_STRFTIME = _each(str, lambda time, *form: time.strftime(*form))
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)
_SHOWN_AFTER_US = {
    **dict.fromkeys("aAbBdDFGhjmuUVwWxyYzZ%", _DAY_US),
    **dict.fromkeys("HIp", 3_600_000_000),
    **dict.fromkeys("MR", 60_000_000),
    **dict.fromkeys("cSTX", 1_000_000),
}
"""By directive of ``strftime``, the microseconds that a time goes on before it shows; others show each one."""


def _part_of_text(text: str, name: str, index: int, *arguments: object) -> Any:
    return getattr(text, name)(*arguments)[index]


def _part_of_list(lists: pa.ListArray, index: Value) -> Value:
    place, counts = index.as_py(), lists.value_lengths().to_numpy(zero_copy_only=False)
    if len(counts) and not -counts.min() <= place < counts.min():
        raise Guard("a text that has fewer parts")
    starts = lists.offsets.to_numpy()
    return lists.values.take(pa.array(starts[:-1] + place if place >= 0 else starts[1:] + place))


def _sliced(value: Value, start: Value, stop: Value, step: Value) -> Value:
    begin, end, by = start.as_py() or 0, stop.as_py(), step.as_py() or 1
    if begin < 0 or (end is not None and end < 0) or by != 1:
        return _SLICE(value, start, stop, step)
    return pc.utf8_slice_codeunits(value, begin, end)


_SLICE = _each(str, lambda text, start, stop, step: text[start:stop:step])


def _contains(value: Value, part: Value) -> Value:
    if isinstance(value, pa.Scalar) or isinstance(part, pa.Array):
        return _each(bool, lambda text, part: part in text)(value, part)
    return pc.match_substring(value, part.as_py())


def _joined(between: Value, *parts: Value) -> Value:
    return pc.binary_join_element_wise(*parts, between)


def column_of(values: Sequence[Any]) -> pa.Array:
    """Values of one type as a column.

    Raises:
        ValueError: if they are not of one type, or of one that columns do not have as it is.
        OverflowError: if a whole number has more than 64 bits.
    """
    kinds = set(map(type, values))
    if len(kinds) != 1 or not kinds <= _ARROW_TYPES.keys():
        raise ValueError("they are not of one type")
    if any(getattr(value, "tzinfo", None) is not None for value in values):
        raise ValueError("they are times with a zone")
    return pa.array(values, _ARROW_TYPES[kinds.pop()])


def _place(value: Value, keys: pa.Array) -> Value:
    """The place of each value among some, -1 where it is none of them."""
    return pc.fill_null(pc.index_in(value if pa.types.is_string(value.type) else _as_whole(value), value_set=keys), -1)


def _looked_up(place: Value, column: pa.Array) -> Value:
    if pc.any(pc.less(place, 0)).as_py():
        raise Guard("a key that is not in a dict")
    return column.take(place)


def _in_re2(value: Value, pattern: Value, flags: Value, how: str, group: int | None = None) -> Translated | None:
    """The regular expression as Arrow has it; None if it might not find the same as Python's."""
    found = translated(pattern.as_py(), flags.as_py(), how, group)
    if found is None or (found.has_end and pc.any(pc.ends_with(value, "\n")).as_py()):
        return None
    return found if pc.all(pc.string_is_ascii(value)).as_py() is not False else None


def _matcher(pattern: Value, flags: Value, how: str) -> Callable[..., Any]:
    matcher: Callable[..., Any] = getattr(re.compile(pattern.as_py(), flags.as_py() & ~re.DEBUG), how)
    return matcher


def _matches(value: Value, pattern: Value, flags: Value, how: Value) -> Value:
    if (in_re2 := _in_re2(value, pattern, flags, how.as_py())) is not None:
        return pc.match_substring_regex(value, in_re2.text)
    match = _matcher(pattern, flags, how.as_py())
    return _each(bool, lambda text: match(text) is not None)(value)


def _has_group(value: Value, pattern: Value, flags: Value, how: Value, group: Value) -> Value:
    match, number = _matcher(pattern, flags, how.as_py()), group.as_py()
    return _each(bool, lambda text: match(text)[number] is not None)(value)


def _group(value: Value, pattern: Value, flags: Value, how: Value, group: Value, is_certain: Value) -> Value:
    number = group.as_py()
    in_re2 = _in_re2(value, pattern, flags, how.as_py(), number) if is_certain.as_py() else None
    if in_re2 is not None:
        return pc.struct_field(pc.extract_regex(value, in_re2.text), WANTED)
    match = _matcher(pattern, flags, how.as_py())
    return _each(str, lambda text: match(text)[number])(value)


def _substituted(value: Value, pattern: Value, flags: Value, by: Value, count: Value) -> Value:
    in_re2 = _in_re2(value, pattern, flags, "search")
    if in_re2 is None or in_re2.may_be_empty or count.as_py() or "\\" in by.as_py():
        substitute, replacement, most = _matcher(pattern, flags, "sub"), by.as_py(), count.as_py()
        return _each(str, lambda text: substitute(replacement, text, most))(value)
    return pc.replace_substring_regex(value, in_re2.text, by.as_py())


def _is_in(value: Value, among: list[Any]) -> Value:
    found = _as_whole(value) if pa.types.is_integer(value.type) else value
    return pc.is_in(found, pa.array(among, found.type))


KERNELS: dict[str, Callable[..., Value]] = {
    "add": _add,
    "sub": _arithmetic(pc.subtract_checked, pc.subtract),
    "mul": _arithmetic(pc.multiply_checked, pc.multiply),
    "truediv": _true_division,
    "floordiv": _floor_division,
    "mod": _modulo,
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
    "invert": lambda value: pc.bit_wise_not(_as_whole(value)),
    "float": as_float,
    "text": lambda value: value if pa.types.is_string(value.type) else _as_whole(value).cast(pa.string()),
    "length": lambda value: pc.utf8_length(value).cast(pa.int64()),
    "is in": lambda value, *among: _is_in(value, [one.as_py() for one in among]),
    "contains": _contains,
    "place": _place,
    "is key": lambda place: pc.greater_equal(place, 0),
    "looked up": _looked_up,
    "matches": _matches,
    "has group": _has_group,
    "group": _group,
    "substituted": _substituted,
    "format": _each(str, format),
    "percent": _each(str, lambda form, *values: form % values),
    "fill": _each(str, lambda form, *values: form.format(*values)),
    "join": _joined,
    "split": lambda value, at: pc.split_pattern(value, at.as_py()),
    "part of list": _part_of_list,
    "length of list": lambda lists: lists.value_lengths().cast(pa.int64()),
    "part": _each(str, _part_of_text),
    "parts": _each(int, lambda text, name, *arguments: len(getattr(text, name)(*arguments))),
    "strftime": _time_as_text,
    "item": _each(str, lambda text, index: text[index]),
    "slice": _sliced,
    **{
        f"{name} to {kind}": _of_times(compute, kind)
        for name, compute, kinds in (
            ("add", pc.add_checked, ("timedelta", "datetime", "date")),
            ("sub", pc.subtract_checked, ("timedelta", "datetime", "date")),
            ("mul", pc.multiply_checked, ("timedelta",)),
            ("truediv", _true_division, ("float",)),
            ("floordiv", _floor_division, ("int", "timedelta")),
            ("mod", _modulo, ("timedelta",)),
            ("negate", pc.negate_checked, ("timedelta",)),
            ("abs", pc.abs_checked, ("timedelta",)),
        )
        for kind in kinds
    },
    "days": lambda value: _floor_division(_micros(value), _scalar(_DAY_US)),
    "seconds": lambda value: _floor_division(_modulo(_micros(value), _scalar(_DAY_US)), _scalar(_SECOND_US)),
    "microseconds": lambda value: _modulo(_micros(value), _scalar(_SECOND_US)),
    "total_seconds": _seconds,
    "in UTC": _in_calendar,
    "timestamp": _each(float, datetime.datetime.timestamp),
    "toordinal": _each(int, datetime.date.toordinal),
    "with parts": _each(datetime.datetime, _with_parts),
    **{f"{kind.__name__} method": _each(kind, _method) for kind in (str, bool, int)},
    **{f"math.{name}": _each(kind, getattr(math, name)) for name, kind in MATH.items()},
    **{f"{kind.__name__} round": _each(kind, round) for kind in (int, float)},
    **{f"{kind.__name__} power": _each(kind, pow) for kind in (int, float)},
    "int": lambda value: _each(int, int)(value) if _is_float(value) else _as_whole(value),
    "int of each": _each(int, int),
    "float of each": _each(float, float),
    "startswith": lambda value, part: pc.starts_with(value, part.as_py()),
    "endswith": lambda value, part: pc.ends_with(value, part.as_py()),
    "count": lambda value, part: pc.count_substring(value, part.as_py()).cast(pa.int64()),
    "replace": lambda value, old, new: pc.replace_substring(value, old.as_py(), new.as_py()),
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "microsecond": _part(lambda value: pc.add(pc.multiply(pc.millisecond(value), 1_000), pc.microsecond(value))),
    "weekday": _part(pc.day_of_week),
    "isoweekday": _part(lambda value: pc.add(pc.day_of_week(value), 1)),
    "date": lambda value: _in_calendar(value).cast(pa.date32()),
    "upper": _of_ascii(pc.ascii_upper),
    "lower": _of_ascii(pc.ascii_lower),
    "strip": _of_ascii(lambda value: pc.utf8_trim(value, _WHITESPACE)),
    "lstrip": _of_ascii(lambda value: pc.utf8_ltrim(value, _WHITESPACE)),
    "rstrip": _of_ascii(lambda value: pc.utf8_rtrim(value, _WHITESPACE)),
}
"""By the name of the operation in an expression."""


def truth(value: Value) -> Value:
    """Whether each value is true, as ``bool`` says."""
    if pa.types.is_boolean(value.type):
        return value
    if pa.types.is_string(value.type):
        return pc.greater(pc.binary_length(value), 0)
    return pc.not_equal(value, pa.scalar(0, value.type))
