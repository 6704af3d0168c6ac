"""Containers in traced functions that are constant for a batch, in which a symbol may be looked for."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import pyarrow as pa

from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_values import ARROW_TYPES, column_of
from eventide.runtime.tracing.expressions import Constant, Expression, Field, Kind, constant_column
from eventide.runtime.tracing.kinds import NUMBERS, WHOLE, InUtc
from eventide.runtime.tracing.symbols import (
    Symbol,
    Text,
    TracedObject,
    TracePath,
    Unknown,
    operand_of,
    plain,
    unknown_is_none,
    way_of,
)


class Table(TracedObject):
    """A dict in which a function may look a symbol up."""

    _what = "a dict that may change"

    def __init__(self, content: dict[Any, Any]) -> None:
        self._content = dict(content)
        self._columns: dict[tuple[int, ...], Constant] = {}

    def get(self, key: object, default: object = None) -> Any:
        """The value of a key, or the default."""
        return self[key] if key in self else default  # noqa: SIM401 - that is get

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, Symbol):
            return plain(key) in self._content
        return way_of(key).ask(way_of(key).operation(bool, "is key", self._place(key)))

    def __getitem__(self, key: object) -> Any:
        if not isinstance(key, Symbol):
            return self._content[plain(key)]
        return self._parts(way_of(key), self._place(key), (), [*self._content.values()])

    def _place(self, key: Symbol) -> Expression:
        kind = operand_of(key).kind
        if kind not in (int, str) or {kind} != set(map(type, self._content)):
            raise NotTraceable(f"it looks up a {kind.__name__} in a dict that is empty, or has keys of other types")
        return way_of(key).operation(int, "place", operand_of(key), self._column((-1,), self._content))

    def _parts(self, way: TracePath, place: Expression, path: tuple[int, ...], values: Sequence[Any]) -> Any:
        """The symbol of a value, or a tuple of those of its parts."""
        if all(type(value) is tuple and len(value) == len(values[0]) > 0 for value in values):
            several = enumerate(zip(*values, strict=True))
            return tuple(self._parts(way, place, (*path, number), parts) for number, parts in several)
        column = self._column(path, values)
        return way.symbol(type(values[0]), "looked up", place, column)

    def _column(self, path: tuple[int, ...], values: Iterable[Any]) -> Constant:
        if path not in self._columns:
            try:
                self._columns[path] = constant_column(column_of([*values]))
            except (ValueError, OverflowError) as error:
                raise NotTraceable(f"it looks values up in a dict that no column can hold: {error}") from error
        return self._columns[path]


class _Tuple(tuple[Any, ...]):
    """A constant tuple."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return is_in(self, value) if has_symbol(value) else super().__contains__(value)


class _List(list[Any]):
    """A list as it is now."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return is_in(self, value) if has_symbol(value) else super().__contains__(value)

    def _change(self, *_: object) -> NoReturn:
        raise NotTraceable("it changes a list from outside")

    __iadd__ = __imul__ = append = clear = extend = _change
    insert = pop = remove = reverse = sort = _change  # type: ignore[assignment]


class _Set(TracedObject):
    """A constant set, or one as it is now, whose order of iteration a copy would not have."""

    _what = "a set from outside"

    def __init__(self, content: Collection[Any]) -> None:
        self._content = content

    def __contains__(self, value: object) -> bool:
        return is_in(self._content, value) if has_symbol(value) else plain(value) in self._content

    def __iter__(self) -> Iterator[Any]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __bool__(self) -> bool:
        return bool(self._content)


def is_none(value: object) -> bool:
    """Whether a value is None. A field may be, what is computed never is; a batch with rows that are stays Python."""
    if isinstance(value, Unknown):
        return unknown_is_none(value)
    expression = operand_of(value) if isinstance(value, Symbol) else None
    if not isinstance(expression, Field):
        return value is None
    if expression.type_info.is_pickled:
        raise NotTraceable("it tests whether an object is None")
    return way_of(value).ask(way_of(value).operation(bool, "is none", expression))


def has_symbol(value: object) -> bool:
    """Whether a value is a symbol, or a tuple with one inside."""
    return any(map(has_symbol, value)) if type(value) is tuple else isinstance(value, Symbol)


def is_in(values: Iterable[Any], value: Any) -> bool:
    """Whether one of some constants is equal to a symbol, or to a tuple with symbols: an answer of their way.

    A number is equal to those of other types, and NaN to nothing.
    """
    if any(type(one) not in _KNOWN for one in _parts_of(values)):
        raise NotTraceable("it looks for a value among some of other types than those of Python's own")
    if type(value) is not tuple:
        constants = [*values]
        if None in constants and is_none(value):
            return True
        condition = _equal_to_one(value, constants)
        return condition is not None and way_of(value).ask(condition)
    if any(not isinstance(one, Symbol) and type(one) not in _KNOWN for one in _parts_of([value])):
        raise NotTraceable("it looks for a tuple that may have no hash")
    if any(operand_of(one).kind not in _EQUAL for one in _symbols_in(value)):
        raise NotTraceable("it looks for a tuple of other values than numbers, texts, dates and times")
    way = way_of(*_symbols_in(value))
    alike = [one for one in values if type(one) is tuple]
    if len(alike) > _MOST_TUPLES:
        raise NotTraceable(f"it looks for a tuple among more than {_MOST_TUPLES}")
    found = [conditions for one in alike if (conditions := _equal_parts(way, value, one)) is not None]
    of_each = [way.operation(bool, "all of", *conditions) for conditions in found]
    return bool(of_each) and way.ask(way.operation(bool, "any of", *of_each))


_MOST_TUPLES = 64


def _parts_of(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and in place of tuples their parts."""
    for value in values:
        if isinstance(value, tuple):
            yield from _parts_of(value)
        else:
            yield value


def _symbols_in(value: tuple[Any, ...]) -> Iterator[Symbol]:
    for part in value:
        if type(part) is tuple:
            yield from _symbols_in(part)
        elif isinstance(part, Symbol):
            yield part


def _equal_parts(way: TracePath, value: tuple[Any, ...], among: tuple[Any, ...]) -> list[Expression] | None:
    """The conditions on which a tuple is equal to a constant one; None if it never is."""
    if len(value) != len(among):
        return None
    found: list[Expression] = []
    for part, other in zip(value, among, strict=True):
        conditions: list[Expression] | None = []
        if not has_symbol(part):
            conditions = [] if part is other or plain(part) == other else None
        elif type(part) is tuple:
            conditions = _equal_parts(way, part, other) if type(other) is tuple else None
        elif other is None:
            is_field = isinstance(operand_of(part), Field)
            conditions = [way.operation(bool, "is none", operand_of(part))] if is_field else None
        else:
            condition = _equal_to_one(part, [other])
            conditions = None if condition is None else [condition]
        if conditions is None:
            return None
        found += conditions
    return found


def _equal_to_one(symbol: Symbol, constants: Iterable[Any]) -> Expression | None:
    """The condition on which a symbol is equal to one of some constants; None if it never is."""
    expression = operand_of(symbol)
    equal_to = _EQUAL.get(expression.kind)
    if equal_to is None:
        raise NotTraceable(f"it looks for a {expression.kind.__name__} among values")
    if any(type(one) is Decimal and one.is_snan() for one in constants):
        raise NotTraceable("it looks for a value among some that cannot be compared")
    equal = {repr(one): one for value in constants for one in equal_to(value)}
    if not equal:
        return None
    kind = _ARROW_TYPES[expression.kind]
    among = Constant(list, f"{kind} {[*equal]}", (pa.array([*equal.values()], kind),))
    return way_of(symbol).operation(bool, "is in", expression, among)


def _exact(value: Any) -> Fraction | None:
    """The value of a constant that is a finite number, and not one of hundreds of digits."""
    if type(value) is Decimal and (not value.is_finite() or (value and abs(value.adjusted()) > _MOST_DIGITS)):
        return None
    if type(value) is float and not math.isfinite(value):
        return None
    return Fraction(value) if type(value) in (*NUMBERS, Decimal) else None


def _equal_whole(value: Any) -> Iterator[int]:
    exact = value if type(value) is int else _exact(value)  # thousands of them take a while as fractions
    if exact is not None and exact.denominator == 1 and -(2**63) <= exact < 2**63:
        yield int(exact)


def _equal_float(value: Any) -> Iterator[float]:
    if type(value) in (*NUMBERS, Decimal):
        try:
            number = float(value)
        except OverflowError:
            return
        if number == value:
            yield from (0.0, -0.0) if number == 0 else (number,)


def _equal_decimal(value: Any) -> Iterator[Decimal]:
    exact = _exact(value)
    if exact is not None and abs(exact) < 10**_MOST_PLACES and (exact * 10**_MOST_PLACES).denominator == 1:
        digits = tuple(map(int, str(abs(int(exact * 10**_MOST_PLACES)))))
        yield Decimal((int(exact < 0), digits, -_MOST_PLACES))


def _equal_of(kind: type) -> Callable[[Any], Iterator[Any]]:
    return lambda value: iter([value] if type(value) is kind else [])


def _equal_time(value: Any) -> Iterator[datetime.datetime]:
    if type(value) is datetime.datetime and value.tzinfo is None:
        yield value


def _equal_time_in_utc(value: Any) -> Iterator[datetime.datetime]:
    if type(value) is datetime.datetime and value.tzinfo is not None:
        if value.tzinfo is not datetime.UTC:
            raise NotTraceable("it looks for a time among some with a zone other than UTC")
        yield value.replace(tzinfo=None)


_KNOWN = frozenset({type(None), *NUMBERS, Decimal, str, bytes, datetime.date, datetime.datetime, datetime.timedelta})
"""The types of constants whose comparison with values in columns is known."""
_MOST_DIGITS = 400
"""Numbers with more digits are not equal to any in columns."""
_MOST_PLACES = 38
"""The digits of decimals in columns, before and after the point."""
_EQUAL: dict[Kind, Callable[[Any], Iterator[Any]]] = {
    **dict.fromkeys(WHOLE, _equal_whole),
    float: _equal_float,
    Decimal: _equal_decimal,
    datetime.datetime: _equal_time,
    InUtc: _equal_time_in_utc,
    **{kind: _equal_of(kind) for kind in (str, datetime.date, datetime.timedelta)},
}
"""By the kind of a symbol, what gives its values that are equal to a constant: two if it is zero, -0.0 is the other."""
_ARROW_TYPES = {**ARROW_TYPES, bool: pa.int64(), InUtc: pa.timestamp("us"), Decimal: pa.decimal256(76, _MOST_PLACES)}


CONTAINERS: dict[type, Callable[[Any], Any]] = {
    **{tuple: _Tuple, frozenset: _Set, set: _Set, list: _List, dict: Table, str: Text}
}
"""Replacements of constants, and of containers that are constant for a batch, in traced functions."""
