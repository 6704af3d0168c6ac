"""Replacements of builtins and constants in traced functions, where Python would ask a symbol for its value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.constructors import CLASSES
from eventide.runtime.tracing.containers import is_none
from eventide.runtime.tracing.expressions import Expression, Kind, constant
from eventide.runtime.tracing.kinds import NUMBERS, WHOLE, AnyDecimal, InUtc
from eventide.runtime.tracing.known_functions import MATH, MATH_OF_SEVERAL, MATH_OF_WHOLE, MATH_PARTS
from eventide.runtime.tracing.number_kernels import CONTEXT_DIGITS
from eventide.runtime.tracing.patterns import certain_groups
from eventide.runtime.tracing.symbols import (
    SplitParts,
    Symbol,
    Text,
    TracedObject,
    TracePath,
    operand_of,
    plain,
    rounded_decimal,
    shown,
    way_of,
)


def _length(value: Any) -> Any:
    if isinstance(value, SplitParts):
        return value._count
    if not isinstance(value, Symbol):
        return len(value)
    kind = operand_of(value).kind
    if kind is not str:
        raise NotTraceable(f"it asks for the length of a {kind.__name__}")
    return way_of(value).symbol(int, "length", operand_of(value))


def _text(*values: object) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return str(*values)
    return formatted(values[0])


def formatted(value: object, spec: Any = "") -> Any:
    """The text that ``format`` gives; ``str`` gives the same where nothing is specified.

    Raises:
        NotTraceable: for values of which columns make no text, or that are specified by other values.
    """
    if not isinstance(value, Symbol):
        return format(value, spec)
    spec = plain(spec)
    in_utc = operand_of(value).kind is InUtc
    expression = operand_of(value) if in_utc or (operand_of(value).kind is AnyDecimal and not spec) else shown(value)
    if type(spec) is not str:
        raise NotTraceable(f"it makes text of a {expression.kind.__name__}")
    if not spec and expression.kind in (int, str, AnyDecimal):
        return way_of(value).symbol(str, "text", expression)
    return way_of(value).symbol(str, "format in UTC" if in_utc else "format", expression, constant(spec))


def _whole(*values: Any) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return int(*values)
    return _converted(int, values[0], "int")


def _converted(kind: Kind, value: Symbol, name: str) -> Symbol:
    expression = operand_of(value)
    if expression.kind is AnyDecimal:
        return way_of(value).symbol(kind, f"any {name}", expression)
    if expression.kind not in (*NUMBERS, str, Decimal):
        raise NotTraceable(f"it makes a {kind.__name__} of a {expression.kind.__name__}")
    return way_of(value).symbol(kind, name if expression.kind in NUMBERS else f"{name} of each", expression)


def _rounded(value: Any, digits: Any = None) -> Any:
    if not isinstance(value, Symbol):
        return round(value, digits)
    expression = operand_of(value)
    if expression.kind in (Decimal, AnyDecimal) and type(digits) is int and 0 <= digits <= CONTEXT_DIGITS:
        return rounded_decimal(value, digits)
    if expression.kind is AnyDecimal and digits is None:
        return way_of(value).symbol(int, "any int round", expression)
    is_whole = expression.kind is Decimal and digits is None
    if not (is_whole or expression.kind in NUMBERS) or type(digits) not in (int, type(None)):
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
    if symbols and not all(operand_of(one).kind in (*WHOLE, Decimal, AnyDecimal) for one in (start, *items)):
        raise NotTraceable("it calls sum() with values that are neither whole numbers nor decimals")
    return sum(items, start)


def _of_math(name: str, kind: Kind) -> Callable[..., Any]:
    """A function of ``math``, with the type of its result, for numbers that may be symbols."""
    function, kinds = getattr(math, name), WHOLE if name in MATH_OF_WHOLE else (*NUMBERS, Decimal)

    def compute(*values: Any, **named: Any) -> Any:
        groups = [[*value] for value in values] if name in MATH_OF_SEVERAL else [[*values]]
        several = [value for group in groups for value in group] + [*named.values()]
        if not any(isinstance(value, Symbol) for value in several):
            return function(*(groups if name in MATH_OF_SEVERAL else values), **named)
        operands = [*map(operand_of, several)]
        if any(operand.kind not in kinds for operand in operands):
            raise NotTraceable(f"it calls {name}() with values that are not {'whole ' * (kinds is WHOLE)}numbers")
        way = way_of(*several)
        if name in MATH_PARTS:
            parts = [way.symbol(each, f"math.{name} {place}", *operands) for place, each in enumerate(MATH_PARTS[name])]
            return tuple(parts)
        if named or name in MATH_OF_SEVERAL:
            form = constant((*map(len, groups),)), constant((*named,))
            of_whole = all(operand.kind in WHOLE for operand in operands)
            if name == "prod" and (Decimal in (operand.kind for operand in operands)):
                raise NotTraceable("it calls prod() with decimals")
            found: Kind = float if name == "prod" and not of_whole else kind
            return way.symbol(found, f"math.{name} to {found.__name__}", *form, *operands)
        return way.symbol(kind, f"math.{name}", *operands)

    return compute


class Pattern(TracedObject):
    """A compiled regular expression."""

    _what = "a regular expression"

    def __init__(self, compiled: re.Pattern[str]) -> None:
        if not isinstance(compiled.pattern, str):
            raise NotTraceable("it has a regular expression of bytes")
        self._compiled = compiled
        self._operands = constant(compiled.pattern), constant(compiled.flags)

    def search(self, *texts: object) -> Any:
        """The first match in a text; None if there is none."""
        return self._matched("search", texts)

    def match(self, *texts: object) -> Any:
        """A match at the beginning of a text."""
        return self._matched("match", texts)

    def fullmatch(self, *texts: object) -> Any:
        """A match of a whole text."""
        return self._matched("fullmatch", texts)

    def sub(self, repl: object, string: Any, count: Any = 0) -> Any:
        """The text with each match replaced."""
        if not any(isinstance(value, Symbol) for value in (repl, string)):
            return self._compiled.sub(plain(repl), plain(string), count)
        if isinstance(repl, Symbol) or type(repl := plain(repl)) is not str or type(count) is not int:
            raise NotTraceable("it calls sub() with a replacement that is not a constant text")
        _check_text("sub", string)
        self._compiled.sub(repl, "")  # an error of the template is one for each text
        return way_of(string).symbol(
            str, "substituted", operand_of(string), *self._operands, constant(repl), constant(count)
        )

    def _matched(self, how: str, texts: tuple[Any, ...]) -> Any:
        if not any(isinstance(text, Symbol) for text in texts):
            return getattr(self._compiled, how)(*map(plain, texts))
        if len(texts) != 1:
            raise NotTraceable(f"it calls {how}() with a place to begin at")
        (text,) = texts
        _check_text(how, text)
        operands = operand_of(text), *self._operands, constant(how)
        way = way_of(text)
        return _Match(self._compiled, way, operands) if way.ask(way.operation(bool, "matches", *operands)) else None


def _check_text(name: str, symbol: Symbol) -> None:
    kind = operand_of(symbol).kind
    if kind is not str:
        raise NotTraceable(f"it calls {name}() of a regular expression with a {kind.__name__}")


class _Match(TracedObject):
    """The match of a regular expression in a text that has one."""

    _what = "a match"

    def __init__(self, compiled: re.Pattern[str], way: TracePath, operands: tuple[Expression, ...]) -> None:
        self._compiled = compiled
        self._way = way
        self._operands = operands

    def __bool__(self) -> bool:
        return True

    def group(self, *groups: object) -> Any:
        """A group by number or name, or a tuple of several; all of the match where none is given."""
        found = tuple(map(self.__getitem__, groups or (0,)))
        return found if len(found) > 1 else found[0]

    def groups(self, default: object = None) -> tuple[Any, ...]:
        """All groups."""
        found = (self[number] for number in range(1, self._compiled.groups + 1))
        return tuple(default if one is None else one for one in found)

    def __getitem__(self, group: object) -> Any:
        number = self._compiled.groupindex.get(plain(group), group)
        if type(number) is not int or not 0 <= number <= self._compiled.groups:
            raise NotTraceable(f"it asks for the group {group!r}, which does not exist")
        operands = *self._operands, constant(number)
        is_certain = number in certain_groups(self._compiled.pattern, self._compiled.flags)
        if not is_certain and not self._way.ask(self._way.operation(bool, "has group", *operands)):
            return None
        return self._way.symbol(str, "group", *operands, constant(is_certain))


def _of_pattern(name: str) -> Callable[..., Any]:
    """A function of ``re`` that compiles its first argument, as it does for each call."""

    def call(pattern: object, *values: object, **named: Any) -> Any:
        flags = named.pop("flags", 0)
        if name != "sub" and len(values) > 1:
            values, flags = values[:1], values[1]
        compiled = pattern if isinstance(pattern, Pattern) else Pattern(re.compile(plain(pattern), flags))
        return getattr(compiled, name)(*values, **named)

    return call


REPLACED: dict[Any, Callable[..., Any]] = {
    **{getattr(math, name): _of_math(name, kind) for name, kind in MATH.items()},
    **{getattr(re, name): _of_pattern(name) for name in ("fullmatch", "match", "search", "sub")},
    re.compile: lambda pattern, flags=0: Pattern(re.compile(plain(pattern), flags)),
    **{len: _length, str: _text, format: formatted, int: _whole, float: _floating, round: _rounded, sum: _sum},
    **CLASSES,
}
"""Functions that traced ones call in place of builtins whose result Python computes, or forces to be a value."""

PATTERNS: dict[type, Callable[[Any], Any]] = {re.Pattern: Pattern}
"""Replacements of compiled expressions in traced functions."""


class _RightSide:
    """The right side of ``@`` in place of an instruction that a symbol cannot answer."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute

    def __rmatmul__(self, value: object) -> Any:
        return self._compute(value)


_CONVERSIONS: list[Callable[[Any], Any]] = [lambda value: value, _text, repr, ascii]
"""Conversions of values before an f-string formats them, by number: none, ``!s``, ``!r`` and ``!a``."""


def _of_values(flags: int) -> _RightSide:
    """Formats a value, or a pair of it and how it is to be formatted, as FORMAT_VALUE does with some flags."""
    convert = _CONVERSIONS[flags & 3]
    if flags & 4:
        return _RightSide(lambda pair: formatted(convert(pair[0]), pair[1]))
    return _RightSide(lambda value: formatted(convert(value)))


OPERATORS: dict[str, Callable[[int], Any]] = {
    "FORMAT_VALUE": _of_values,
    "CONVERT_VALUE": lambda how: _RightSide(_CONVERSIONS[how]),
    "FORMAT_SIMPLE": lambda _: _RightSide(formatted),
    "FORMAT_WITH_SPEC": lambda _: _RightSide(lambda pair: formatted(*pair)),
    "BUILD_STRING": lambda _: _RightSide(lambda parts: Text("").join(parts)),
    "IS_OP": lambda is_not: _RightSide(lambda value: is_none(value) != bool(is_not)),
}
"""Makers of the right side of ``@`` in place of the instructions of f-strings and of ``is None``, by their names."""
