"""Kinds: the Python types of the values in a trace, and those of what operators and methods give."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

from eventide.runtime.tracing.expressions import Kind

KINDS: dict[str, Kind] = {
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG"), int),
    **dict.fromkeys(("FLOAT", "DOUBLE"), float),
    "BOOLEAN": bool,
    "STRING": str,
    "SQL_TIMESTAMP": datetime.datetime,
    "SQL_DATE": datetime.date,
    "TIME_DELTA": datetime.timedelta,
}
WHOLE = (int, bool)
NUMBERS = (int, float, bool)
TIMES = (datetime.datetime, datetime.date, datetime.timedelta)
SHOWN = (*NUMBERS, str, Decimal, *TIMES)
"""The kinds of values that text is made of: the columns of others have other objects than the function."""


class InUtc(datetime.datetime):
    """The kind of dates and times that were said to be UTC."""


InUtc.__name__ = "datetime with a zone"


class AnyDecimal(Decimal):
    """The kind of decimals whose numbers of digits follow from their values, such as quotients.

    Columns have them as text.
    """


AnyDecimal.__name__ = "decimal of any number of digits"

PARTS_OF_TIMES = ("year", "month", "day", "hour", "minute", "second", "microsecond")
"""The parts of a date and time, in the order in which its class takes them."""
PARTS: dict[Kind, frozenset[str]] = {
    **dict.fromkeys((datetime.datetime, InUtc), frozenset(PARTS_OF_TIMES)),
    datetime.date: frozenset({"year", "month", "day"}),
    datetime.timedelta: frozenset({"days", "seconds", "microseconds"}),
}
"""The attributes that are whole numbers."""
COMPARISONS = ("lt", "le", "gt", "ge")

_ORDERED: tuple[set[Kind], ...] = tuple({kind} for kind in (str, InUtc, *TIMES))
_OF_DATES: dict[str, Kind] = {"weekday": int, "isoweekday": int, "toordinal": int}
TIME_METHODS: dict[Kind, dict[str, Kind]] = {
    **{kind: {"date": datetime.date, "timestamp": float, **_OF_DATES} for kind in (datetime.datetime, InUtc)},
    datetime.date: _OF_DATES,
    datetime.timedelta: {"total_seconds": float},
}


def _time_results() -> Iterator[tuple[tuple[str, Kind, Kind], Kind]]:
    delta = datetime.timedelta
    for kind in (datetime.datetime, InUtc, datetime.date):
        yield ("sub", kind, kind), delta
        yield from {("add", kind, delta): kind, ("add", delta, kind): kind, ("sub", kind, delta): kind}.items()
    for name, result in {"add": delta, "sub": delta, "truediv": float, "floordiv": int, "mod": delta}.items():
        yield (name, delta, delta), result
    for number in NUMBERS:
        yield from {
            ("mul", delta, number): delta,
            ("mul", number, delta): delta,
            ("truediv", delta, number): delta,
        }.items()
    for number in WHOLE:
        yield ("floordiv", delta, number), delta


TIME_RESULTS = dict(_time_results())
"""The kinds of the results of operators on times and on the differences of these."""


def kind_of(name: str, left: Kind, right: Kind) -> Kind | None:
    """The kind of the result of an operator; None if it has none, or none that is known here."""
    both = {left, right}
    if name in ("add", "sub", "mul"):
        if both <= {*NUMBERS}:
            return float if float in both else int
        if both == {str} and name == "add":
            return str
        return _kind_of_decimals(both)
    if name == "truediv":
        return float if both <= {*NUMBERS} else AnyDecimal if _kind_of_decimals(both) is not None else None
    if name in ("floordiv", "mod"):
        return int if both <= {*WHOLE} else _kind_of_decimals(both)
    if name in ("and", "or", "xor"):
        return bool if both == {bool} else int if both <= {*WHOLE} else None
    if name in COMPARISONS:
        return bool if are_comparable(both) else None
    raise AssertionError(name)


def _kind_of_decimals(kinds: set[Kind]) -> Kind | None:
    """The kind of a result for decimals among whole numbers; None if there are no decimals, or others."""
    if not kinds <= {Decimal, AnyDecimal, *WHOLE}:
        return None
    return AnyDecimal if AnyDecimal in kinds else Decimal if Decimal in kinds else None


def are_comparable(kinds: set[Kind]) -> bool:
    """Whether values of these kinds are equal, lower or higher on columns where they are so in Python."""
    return kinds <= {*NUMBERS, Decimal, AnyDecimal} or kinds in _ORDERED
