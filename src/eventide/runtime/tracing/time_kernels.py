"""Kernels of dates and times, and of the differences between them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.tracing.column_values import (
    DAY_US,
    EXACT_FLOAT,
    SECOND_US,
    Value,
    as_float,
    as_whole,
    checked,
    in_calendar,
    largest,
    of_each,
    scalar,
)
from eventide.runtime.tracing.number_kernels import floor_division, modulo, true_division


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
            case "datetime":
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


def _with_parts(time: datetime.datetime, *parts: Any) -> datetime.datetime:
    return time.replace(**dict(zip(parts[::2], parts[1::2], strict=True)))


def _time_as_text(value: Value, *form: Value) -> Value:
    """The texts of ``strftime``, which is called once for all times that the format shows alike."""
    if len(form) != 1:
        return _STRFTIME(value, *form)
    if pa.types.is_timestamp(value.type):
        shown = min((_SHOWN_AFTER_US.get(each, 1) for each in _DIRECTIVE.findall(form[0].as_py())), default=DAY_US)
        step = pa.scalar(shown)
        value = pc.multiply(floor_division(_micros(value), step), step).cast(pa.timestamp("us"))
    distinct = value.dictionary_encode()
    return _STRFTIME(distinct.dictionary, *form).take(distinct.indices)


_STRFTIME = of_each(str, lambda time, *form: time.strftime(*form))
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)
_SHOWN_AFTER_US = {
    **dict.fromkeys("aAbBdDFGhjmuUVwWxyYzZ%", DAY_US),
    **dict.fromkeys("HIp", 3_600_000_000),
    **dict.fromkeys("MR", 60_000_000),
    **dict.fromkeys("cSTX", 1_000_000),
}
"""By directive of ``strftime``, the microseconds that a time goes on before it shows; others show each one."""


TIME_KERNELS: dict[str, Callable[..., Value]] = {
    "strftime": _time_as_text,
    **{
        f"{name} to {kind}": _of_times(compute, kind)
        for name, compute, kinds in (
            ("add", pc.add_checked, ("timedelta", "datetime", "date")),
            ("sub", pc.subtract_checked, ("timedelta", "datetime", "date")),
            ("mul", pc.multiply_checked, ("timedelta",)),
            ("truediv", true_division, ("float",)),
            ("floordiv", floor_division, ("int", "timedelta")),
            ("mod", modulo, ("timedelta",)),
            ("negate", pc.negate_checked, ("timedelta",)),
            ("abs", pc.abs_checked, ("timedelta",)),
        )
        for kind in kinds
    },
    "days": lambda value: floor_division(_micros(value), scalar(DAY_US)),
    "seconds": lambda value: floor_division(modulo(_micros(value), scalar(DAY_US)), scalar(SECOND_US)),
    "microseconds": lambda value: modulo(_micros(value), scalar(SECOND_US)),
    "total_seconds": _seconds,
    "in UTC": in_calendar,
    "timestamp": of_each(float, datetime.datetime.timestamp),
    "toordinal": of_each(int, datetime.date.toordinal),
    "with parts": of_each(datetime.datetime, _with_parts),
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
