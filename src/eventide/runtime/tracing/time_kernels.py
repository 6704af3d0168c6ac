"""Kernels of dates and times, and of the differences between them."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.tracing.column_values import (
    DAY_US,
    EXACT_FLOAT,
    SECOND_US,
    Guard,
    Value,
    as_float,
    as_whole,
    checked,
    in_calendar,
    is_float,
    largest,
    numbers_of,
    of_each,
    scalar,
)
from eventide.runtime.tracing.known_functions import CLASS_METHODS
from eventide.runtime.tracing.number_kernels import divisor_of, floor_division, modulo, true_division


def _part(compute: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """A part of a date or of a date and time, as a whole number."""
    return lambda value: compute(in_calendar(value)).cast(pa.int64())


def _micros(value: Value) -> Value:
    """A time, or a difference of times, in microseconds; a whole number as it is."""
    if pa.types.is_date(value.type):
        return pc.multiply(in_calendar(value).cast(pa.int32()).cast(pa.int64()), DAY_US)
    if pa.types.is_timestamp(value.type):
        return in_calendar(value).cast(pa.int64())
    return value.cast(pa.duration("us")).cast(pa.int64()) if pa.types.is_duration(value.type) else as_whole(value)


def _of_times(compute: Callable[..., Value], kind: str) -> Callable[..., Value]:
    """An operator on times and their differences, which are microseconds; its result is of a kind."""

    def computed(*values: Value) -> Value:
        micros = [_micros(value) for value in values]
        if kind == "date":  # of a difference, only whole days count
            micros = [pc.multiply(floor_division(each, scalar(DAY_US)), DAY_US) for each in micros]
        found = checked(compute, *micros)
        match kind:
            case "timedelta":
                return found.cast(pa.duration("us"))
            case "datetime" | "datetime with a zone":
                return in_calendar(found.cast(pa.timestamp("us")))
            case "date":
                days = floor_division(found, scalar(DAY_US))
                return in_calendar(days.cast(pa.int32()).cast(pa.date32()))
        return found

    return computed


def _seconds(value: Value) -> Value:
    """Microseconds as seconds, as Python rounds them."""
    micros = _micros(value)
    if largest(micros) > EXACT_FLOAT:
        return of_each(float, lambda each: each / 1_000_000)(micros)
    return pc.divide(as_float(micros), 1e6)


def _nearest_quotient(left: Value, right: Value) -> Value:
    """The quotient of whole numbers as a whole number; of two that are as near, it is the even one."""
    dividend, divisor = (np.asarray(numbers_of(side)) for side in (left, right))
    divisor_of(right)
    if (dividend == -(2**63)).any() or (divisor == -(2**63)).any():
        raise Guard("a whole number with more than 64 bits")
    dividend, divisor = np.where(divisor < 0, -dividend, dividend), np.abs(divisor)
    quotient, rest = np.divmod(dividend, divisor)
    is_nearer = (rest > divisor - rest) | ((rest == divisor - rest) & (quotient % 2 == 1))
    return pa.array(np.atleast_1d(quotient + is_nearer))


def _times_number(left: Value, right: Value) -> Value:
    return (_DELTA_TIMES_FLOAT if is_float(left, right) else _DELTA_TIMES_WHOLE)(left, right)


def _by_number(left: Value, right: Value) -> Value:
    return (_DELTA_BY_FLOAT if is_float(right) else _DELTA_BY_WHOLE)(left, right)


_DELTA_TIMES_WHOLE = _of_times(pc.multiply_checked, "timedelta")
_DELTA_TIMES_FLOAT = of_each(datetime.timedelta, operator.mul)
_DELTA_BY_WHOLE = _of_times(_nearest_quotient, "timedelta")
_DELTA_BY_FLOAT = of_each(datetime.timedelta, operator.truediv)


def _from_seconds(value: Value) -> Value:
    """The time of floating-point seconds since the epoch, rounded to microseconds as Python does it."""
    seconds = np.asarray(numbers_of(as_float(value)))
    if not (np.abs(seconds) < _MOST_SECONDS).all():
        raise Guard("a date that Python does not have")
    fraction, whole = np.modf(seconds)
    micros = whole.astype(np.int64) * SECOND_US + np.rint(fraction * 1e6).astype(np.int64)
    return in_calendar(pa.array(micros).cast(pa.timestamp("us")))


_MOST_SECONDS = 1e12
"""More seconds since the epoch than any date of Python's has."""


def _named(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument has the names of the others."""
    return lambda names, *values: make(**dict(zip(names, values, strict=True)))


def _in_utc(time: datetime.datetime, name: str, *arguments: object) -> Any:
    return getattr(time.replace(tzinfo=datetime.UTC), name)(*arguments)


def _with_parts(time: datetime.date, *parts: Any) -> datetime.date:
    return time.replace(**dict(zip(parts[::2], parts[1::2], strict=True)))


def _time_as_text(value: Value, *form: Value, strftime: Callable[..., Value]) -> Value:
    """The texts of ``strftime``, which is called once for all times that the format shows alike."""
    if len(form) != 1:
        return strftime(value, *form)
    if pa.types.is_timestamp(value.type):
        shown = min((_SHOWN_AFTER_US.get(each, 1) for each in _DIRECTIVE.findall(form[0].as_py())), default=DAY_US)
        step = pa.scalar(shown)
        value = pc.multiply(floor_division(_micros(value), step), step).cast(pa.timestamp("us"))
    distinct = value.dictionary_encode()
    return strftime(distinct.dictionary, *form).take(distinct.indices)


_DIRECTIVE = re.compile("%(.?)", re.DOTALL)
_SHOWN_AFTER_US = {
    **dict.fromkeys("aAbBdDFGhjmuUVwWxyYzZ%", DAY_US),
    **dict.fromkeys("HIp", 3_600_000_000),
    **dict.fromkeys("MR", 60_000_000),
    **dict.fromkeys("cSTX", 1_000_000),
}
"""By directive of ``strftime``, the microseconds that a time goes on before it shows; others show each one."""


TIME_KERNELS: dict[str, Callable[..., Value]] = {
    "strftime": partial(_time_as_text, strftime=of_each(str, lambda time, *form: time.strftime(*form))),
    "strftime in UTC": partial(
        _time_as_text, strftime=of_each(str, lambda time, *form: _in_utc(time, "strftime", *form))
    ),
    "str method in UTC": of_each(str, _in_utc),
    "format in UTC": of_each(str, lambda time, form: _in_utc(time, "__format__", form)),
    **{
        f"{name} to {kind}": _of_times(compute, kind)
        for name, compute, kinds in (
            ("add", pc.add_checked, ("timedelta", "datetime", "datetime with a zone", "date")),
            ("sub", pc.subtract_checked, ("timedelta", "datetime", "datetime with a zone", "date")),
            ("truediv", true_division, ("float",)),
            ("floordiv", floor_division, ("int", "timedelta")),
            ("mod", modulo, ("timedelta",)),
            ("negate", pc.negate_checked, ("timedelta",)),
            ("abs", pc.abs_checked, ("timedelta",)),
            ("plus", lambda micros: micros, ("timedelta",)),
        )
        for kind in kinds
    },
    "mul to timedelta": _times_number,
    "truediv to timedelta": _by_number,
    "timedelta": lambda micros: as_whole(micros).cast(pa.duration("us")),
    "timedelta of each": of_each(datetime.timedelta, _named(datetime.timedelta)),
    "datetime of each": of_each(datetime.datetime, _named(datetime.datetime)),
    "date of each": of_each(datetime.date, _named(datetime.date)),
    "from microseconds": lambda micros: in_calendar(as_whole(micros).cast(pa.timestamp("us"))),
    "from seconds": _from_seconds,
    **{
        f"{kind.__name__}.{name}": of_each(kind, getattr(kind, name))
        for kind, names in CLASS_METHODS.items()
        for name in names
    },
    "days": lambda value: floor_division(_micros(value), scalar(DAY_US)),
    "seconds": lambda value: floor_division(modulo(_micros(value), scalar(DAY_US)), scalar(SECOND_US)),
    "microseconds": lambda value: modulo(_micros(value), scalar(SECOND_US)),
    "total_seconds": _seconds,
    "in UTC": in_calendar,
    "without zone": in_calendar,
    "timestamp": of_each(float, datetime.datetime.timestamp),
    "toordinal": of_each(int, datetime.date.toordinal),
    "with parts": of_each(datetime.datetime, _with_parts),
    "date with parts": of_each(datetime.date, _with_parts),
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "microsecond": _part(lambda value: pc.add(pc.multiply(pc.millisecond(value), 1_000), pc.microsecond(value))),
    "weekday": _part(pc.day_of_week),
    "isoweekday": _part(lambda value: pc.add(pc.day_of_week(value), 1)),
    "date": lambda value: in_calendar(value).cast(pa.date32()),
}
"""By the name of the operation in an expression."""
