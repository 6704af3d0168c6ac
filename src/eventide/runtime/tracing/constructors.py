"""Classes of Python that traced functions call: they make symbols of symbols, and real objects of anything else."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.expressions import constant
from eventide.runtime.tracing.kinds import NUMBERS, PARTS_OF_TIMES, WHOLE, AnyDecimal, InUtc
from eventide.runtime.tracing.known_functions import CLASS_METHODS
from eventide.runtime.tracing.symbols import Symbol, TracedObject, Unknown, operand_of, plain, way_of

_UNITS_US = {
    "days": 86_400_000_000,
    "seconds": 1_000_000,
    "microseconds": 1,
    "milliseconds": 1_000,
    "minutes": 60_000_000,
    "hours": 3_600_000_000,
    "weeks": 604_800_000_000,
}
"""The units of a difference of times, in the order in which its class takes them."""


class TracedClass(TracedObject):
    """Stands for a class. Its constants, such as ``datetime.min``, are those of the class.

    Args:
        known: the class.
        make: makes a symbol of arguments, at least one of which is a symbol.
    """

    _what = "a class"

    def __init__(self, known: type, make: Callable[..., Symbol]) -> None:
        self._known = known
        self._make = make

    def __call__(self, *values: object, **named: object) -> Any:
        """Make an object, or the symbol of one."""
        return _real_or_traced(self._known, self._make, values, named)

    def __getattr__(self, name: str) -> Any:
        if name in CLASS_METHODS.get(self._known, ()):
            made = partial(_made_by, self._known, name)
            return lambda *values, **named: _real_or_traced(getattr(self._known, name), made, values, named)
        value = getattr(self._known, name, None)
        if not isinstance(value, datetime.date | datetime.timedelta):
            raise NotTraceable(f"it uses the attribute {name!r} of the class {self._known.__name__}")
        return value


def _real_or_traced(
    real: Callable[..., Any], make: Callable[..., Any], values: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """The object or symbol that a class, or one of its methods, makes of some arguments."""
    if not any(isinstance(value, Symbol) for value in (*values, *named.values())):
        return real(*map(plain, values), **{name: plain(value) for name, value in named.items()})
    return make(*values, **named)


def _by_name(what: str, names: tuple[str, ...], values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a class, each with its name."""
    given = dict(zip(names, values, strict=False))
    if len(values) > len(names) or not named.keys() <= {*names} - given.keys():
        raise NotTraceable(f"it calls {what}() with arguments that are not known")
    return given | named


def _check_kinds(what: str, values: dict[str, Any], kinds: tuple[type, ...]) -> None:
    for value in values.values():
        kind = operand_of(value).kind
        if kind not in kinds:
            raise NotTraceable(f"it calls {what}() with a {kind.__name__}")


def _timedelta(*values: Any, **named: Any) -> Symbol:
    given = _by_name("timedelta", tuple(_UNITS_US), values, named)
    way, operands = way_of(*given.values()), [*map(operand_of, given.values())]
    if any(operand.kind is Unknown for operand in operands):
        return way.symbol(Unknown, f"timedelta of {[*given]}", *operands)
    _check_kinds("timedelta", given, NUMBERS)
    if any(operand.kind is float for operand in operands):
        return way.symbol(datetime.timedelta, "timedelta of each", constant(tuple(given)), *operands)
    micros: Any = 0
    for name, value in given.items():
        part = value if _UNITS_US[name] == 1 else value * _UNITS_US[name]
        micros = part if type(micros) is int and not micros else micros + part
    return way.symbol(datetime.timedelta, "timedelta", operand_of(micros))


def _datetime(*values: Any, **named: Any) -> Symbol:
    given = _by_name("datetime", (*PARTS_OF_TIMES, "tzinfo"), values, named)
    zone = _checked_zone(given.pop("tzinfo", None))
    _check_kinds("datetime", given, WHOLE)
    way, operands = way_of(*given.values()), [*map(operand_of, given.values())]
    made = way.operation(datetime.datetime, "datetime of each", constant(tuple(given)), *operands)
    return Symbol(made, way) if zone is None else way.symbol(InUtc, "in UTC", made)


def _date(*values: Any, **named: Any) -> Symbol:
    given = _by_name("date", PARTS_OF_TIMES[:3], values, named)
    _check_kinds("date", given, WHOLE)
    way, operands = way_of(*given.values()), [*map(operand_of, given.values())]
    return way.symbol(datetime.date, "date of each", constant(tuple(given)), *operands)


def _checked_zone(zone: object) -> datetime.timezone | None:
    if zone is None:
        return None
    if zone is not datetime.UTC:
        raise NotTraceable("it makes a time with a zone other than UTC")
    return datetime.UTC


def _made_by(known: type, name: str, *values: Any, **named: Any) -> Symbol:
    """The symbol that a method of a class makes of symbols."""
    what = f"{known.__name__}.{name}"
    if known is datetime.datetime and name == "fromtimestamp":
        given = _by_name(what, ("timestamp", "tz"), values, {"tz": None, **named} if len(values) < 2 else named)
        if _checked_zone(given["tz"]) is not None:
            return _in_utc(given["timestamp"])
        values, named = (given["timestamp"],), {}
    kinds = CLASS_METHODS[known][name]
    if named or len(values) != len(kinds):
        raise NotTraceable(f"it calls {what}() with arguments that are not known")
    operands = [*map(operand_of, values)]
    for operand, kind in zip(operands, kinds, strict=True):
        if operand.kind is not kind and not (kind is float and operand.kind in WHOLE):
            raise NotTraceable(f"it calls {what}() with a {operand.kind.__name__}")
    return way_of(*values).symbol(known, what, *operands)


def _in_utc(seconds: Any) -> Symbol:
    """The time of seconds since the epoch."""
    kind = operand_of(seconds).kind
    if kind not in NUMBERS:
        raise NotTraceable(f"it calls datetime.fromtimestamp() with a {kind.__name__}")
    if kind is float:
        return way_of(seconds).symbol(InUtc, "from seconds", operand_of(seconds))
    return way_of(seconds).symbol(InUtc, "from microseconds", operand_of(seconds * 1_000_000))


def _decimal(value: Any) -> Symbol:
    expression = operand_of(value)
    if expression.kind in (str, AnyDecimal):
        return way_of(value).symbol(AnyDecimal, "any decimal", expression)
    if expression.kind not in (*WHOLE, Decimal):
        raise NotTraceable(f"it makes a Decimal of a {expression.kind.__name__}")
    return way_of(value).symbol(Decimal, "decimal", expression)


CLASSES: dict[Any, Callable[..., Any]] = {
    datetime.timedelta: TracedClass(datetime.timedelta, _timedelta),
    datetime.datetime: TracedClass(datetime.datetime, _datetime),
    datetime.date: TracedClass(datetime.date, _date),
    Decimal: TracedClass(Decimal, _decimal),
}
"""By class, its stand-in for functions while they are traced."""
