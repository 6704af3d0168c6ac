"""Replacements of builtins and constants in traced functions, where Python would ask a symbol for its value."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any

from eventide.runtime.tracing.admission import MATH, NotTraceable
from eventide.runtime.tracing.expressions import Kind, constant
from eventide.runtime.tracing.symbols import NUMBERS, WHOLE, Parts, Symbol, Text, operand_of, plain, way_of

_SHOWN = (int, bool, float, str, Decimal, datetime.date, datetime.datetime, datetime.timedelta)
"""The kinds of values that texts are made of."""


def _length(value: Any) -> Any:
    if isinstance(value, Parts):
        return value.count
    if not isinstance(value, Symbol):
        return len(value)
    kind = operand_of(value).kind
    if kind is not str:
        raise NotTraceable(f"it asks for the length of a {kind.__name__}")
    return way_of(value).symbol(int, "length", operand_of(value))


def _text(*values: Any) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return str(*values)
    return formatted(values[0])


def formatted(value: Any, spec: Any = "") -> Any:
    """The text that ``format`` gives; ``str`` gives the same where nothing is specified.

    Raises:
        NotTraceable: for values of which columns make no text, or that are specified by other values.
    """
    if not isinstance(value, Symbol):
        return format(value, spec)
    expression, spec = operand_of(value), plain(spec)
    if expression.kind not in _SHOWN or type(spec) is not str:
        raise NotTraceable(f"it makes text of a {expression.kind.__name__}")
    if not spec and expression.kind in (int, str):
        return way_of(value).symbol(str, "text", expression)
    return way_of(value).symbol(str, "format", expression, constant(spec))


def _whole(*values: Any) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return int(*values)
    return _converted(int, values[0], "int")


def _converted(kind: Kind, value: Symbol, name: str) -> Symbol:
    expression = operand_of(value)
    if expression.kind not in (*NUMBERS, str, Decimal):
        raise NotTraceable(f"it makes a {kind.__name__} of a {expression.kind.__name__}")
    return way_of(value).symbol(kind, name if expression.kind in NUMBERS else f"{name} of each", expression)


def _rounded(value: Any, digits: Any = None) -> Any:
    if not isinstance(value, Symbol):
        return round(value, digits)
    expression = operand_of(value)
    if expression.kind not in NUMBERS or type(digits) not in (int, type(None)):
        raise NotTraceable(f"it rounds a {expression.kind.__name__}")
    kind: Kind = int if digits is None or expression.kind is not float else float
    return way_of(value).symbol(kind, f"{kind.__name__} round", expression, constant(digits))


def _floating(*values: Any) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return float(*values)
    return _converted(float, values[0], "float")


def _sum(values: Any, start: Any = 0) -> Any:
    """The result of ``sum``; newer versions of Python add floating-point numbers up in another way than ``+`` does."""
    items = [*values]
    symbols = [one for one in (start, *items) if isinstance(one, Symbol)]
    if symbols and not all(operand_of(one).kind in WHOLE for one in (start, *items)):
        raise NotTraceable("it calls sum() with other values than whole numbers")
    return sum(items, start)


def _of_math(name: str, kind: Kind) -> Callable[..., Any]:
    function = getattr(math, name)

    def compute(*values: Any) -> Any:
        if not any(isinstance(value, Symbol) for value in values):
            return function(*values)
        if any(operand_of(value).kind not in NUMBERS for value in values):
            raise NotTraceable(f"it calls {name}() with other values than numbers")
        return way_of(*values).symbol(kind, f"math.{name}", *map(operand_of, values))

    return compute


REPLACED: dict[Any, Callable[..., Any]] = {
    **{getattr(math, name): _of_math(name, kind) for name, kind in MATH.items()},
    **{len: _length, str: _text, format: formatted, int: _whole, float: _floating, round: _rounded, sum: _sum},
}
"""Functions that traced ones call in place of builtins whose result Python computes, or forces to be a value."""


class _Tuple(tuple[Any, ...]):
    """A constant tuple in which a function may look for a symbol."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return _is_in(self, value) if isinstance(value, Symbol) else super().__contains__(value)


class _Set(frozenset[Any]):
    """A constant set in which a function may look for a symbol."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return _is_in(self, value) if isinstance(value, Symbol) else super().__contains__(value)


def _is_in(values: Collection[Any], symbol: Symbol) -> bool:
    kind = operand_of(symbol).kind
    if kind not in (int, str) or not {kind}.issuperset(map(type, values)):
        raise NotTraceable(f"it looks for a {kind.__name__} among values of other types")
    among = map(operand_of, sorted(values))
    return way_of(symbol).ask(way_of(symbol).operation(bool, "is in", operand_of(symbol), *among))


CONTAINERS: dict[type, Callable[[Any], Any]] = {tuple: _Tuple, frozenset: _Set, str: Text}
"""Replacements of constant tuples, sets and texts in traced functions."""


class _Operator:
    """The right side of ``@`` in place of an instruction that makes text."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute

    def __rmatmul__(self, value: Any) -> Any:
        return self._compute(value)


def _of_values(flags: int) -> _Operator:
    """Formats a value, or a pair of it and how it is to be formatted, as FORMAT_VALUE does with some flags."""
    convert = {0: lambda value: value, 1: _text, 2: repr, 3: ascii}[flags & 3]
    if flags & 4:
        return _Operator(lambda pair: formatted(convert(pair[0]), pair[1]))
    return _Operator(lambda value: formatted(convert(value)))


TEXT_MAKERS: dict[str, Callable[[int], Any]] = {
    "FORMAT_VALUE": _of_values,
    "BUILD_STRING": lambda _: _Operator(lambda parts: Text("").join(parts)),
}
"""Makers of the right side of ``@`` in place of the instructions of an f-string, by the names of these."""
