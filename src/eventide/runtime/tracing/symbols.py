"""Symbols: what a function is given while it is traced, in place of values that are not there yet."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any, NoReturn

from eventide.common.typeinfo import DecimalTypeInfo, DictTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from eventide.common.types import Row
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.expressions import Expression, Field, Kind, Operation, constant
from eventide.runtime.tracing.kernels import CONTEXT_DIGITS

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG"), int),
    **dict.fromkeys(("FLOAT", "DOUBLE"), float),
    "BOOLEAN": bool,
    "STRING": str,
    "SQL_TIMESTAMP": datetime.datetime,
    "SQL_DATE": datetime.date,
}
_WHOLE = (int, bool)
_NUMBERS = (int, float, bool)
_TIMES = (datetime.datetime, datetime.date)
_PARTS_OF_DATE = frozenset({"year", "month", "day"})
_PARTS_OF_TIME = _PARTS_OF_DATE | {"hour", "minute", "second", "microsecond"}
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MOST_CONDITIONS = 32
_MOST_QUESTIONS = 512
_DEEPEST = 100


class Way:
    """One way through a function: the answers to what it asked of symbols, and what it computed.

    Args:
        answers: those to give first, one after the other; then everything is true.
        known: the operations of the trace, by what they are, which all of its ways share.
    """

    def __init__(self, answers: list[bool], known: dict[Any, Operation]) -> None:
        self._answers = answers
        self._known = known
        self._questions = 0
        self.asked: dict[Expression, bool] = {}
        self.computed: dict[Operation, None] = {}

    def ask(self, condition: Expression) -> bool:
        """The answer to a condition, the same each time.

        Raises:
            NotTraceable: if there is no end of questions.
        """
        self._questions += 1
        if condition not in self.asked:
            if len(self.asked) >= _MOST_CONDITIONS:
                raise NotTraceable("it asks for too many conditions, one after the other")
            place = len(self.asked)
            self.asked[condition] = self._answers[place] if place < len(self._answers) else True
        if self._questions > _MOST_QUESTIONS:
            raise NotTraceable("it asks too often, as a loop does that ends by a value")
        return self.asked[condition]

    def operation(self, kind: Kind, name: str, *operands: Expression) -> Operation:
        """The operation on some operands, of which there is one object; the way has computed it.

        Raises:
            NotTraceable: if there are too many below each other.
        """
        depth = 1 + max((one.depth for one in operands if isinstance(one, Operation)), default=0)
        if depth > _DEEPEST:
            raise NotTraceable("it computes too long a chain of values")
        parts = tuple(id(one) if isinstance(one, Operation) else one for one in operands)
        found = self._known.setdefault((name, parts), Operation(kind, name, operands, depth))
        self.computed[found] = None
        return found

    def symbol(self, kind: Kind, name: str, *operands: Expression) -> Symbol:
        """The symbol of an operation."""
        return Symbol(self.operation(kind, name, *operands), self)


class Symbol:
    """A value that is not there yet. Operators make another symbol; a question for its truth has an answer of the way.

    All that would have to know the value raises :class:`NotTraceable`. Its own attributes begin with an underscore:
    programs that read such a name are not traced.
    """

    __slots__ = ("_expression", "_way")

    def __init__(self, expression: Expression, way: Way) -> None:
        self._expression = expression
        self._way = way

    def __bool__(self) -> bool:
        if self._expression.kind not in TRUTHS:
            raise NotTraceable(f"it asks whether a {self._expression.kind.__name__} is true")
        return self._way.ask(self._expression)

    def __getattr__(self, name: str) -> Any:
        kind = self._expression.kind
        if kind is str and name in _METHODS:
            return lambda *arguments: _METHODS[name](self, *arguments)
        if (kind is datetime.datetime and name in _PARTS_OF_TIME) or (kind is datetime.date and name in _PARTS_OF_DATE):
            return self._way.symbol(int, name, self._expression)
        if kind in _TIMES and name in _TIME_METHODS and (name != "date" or kind is datetime.datetime):
            return lambda: self._way.symbol(_TIME_METHODS[name], name, self._expression)
        raise NotTraceable(f"it uses the attribute {name!r} of a {kind.__name__}")

    def __contains__(self, part: object) -> bool:
        if self._expression.kind is str and isinstance(part, str):
            return self._way.ask(self._way.operation(bool, "contains", self._expression, constant(part)))
        raise NotTraceable("it looks into a value with `in`")

    def __neg__(self) -> Symbol:
        return _number("negate", self)

    def __pos__(self) -> Symbol:
        return _number("plus", self)

    def __abs__(self) -> Symbol:
        return _number("abs", self)

    def __invert__(self) -> Symbol:
        if self._expression.kind is not int:
            raise NotTraceable(f"it uses ~ on a {self._expression.kind.__name__}")
        return self._way.symbol(int, "invert", self._expression)

    def __hash__(self) -> int:
        raise NotTraceable("it uses a value as the key of a dict, or in a set")

    def __eq__(self, other: object) -> Any:
        return _equal("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _equal("ne", self, other)

    def __divmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return _binary("floordiv", self, other), _binary("mod", self, other)

    def __rdivmod__(self, other: Any) -> tuple[Symbol, Symbol]:
        return _binary("floordiv", other, self), _binary("mod", other, self)


TRUTHS = (int, float, bool, str)
"""The kinds of values of which a trace knows whether they are true."""


def expression_of(symbol: Symbol) -> Expression:
    """What a symbol stands for."""
    return symbol._expression


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(self: Symbol, *arguments: Any) -> NoReturn:
        raise NotTraceable(f"it {what}")

    return refuse


for _name, _what in {
    "len": "asks for a length",
    "iter": "goes through the parts of a value",
    "int": "makes an int of a value",
    "float": "makes a float of a value",
    "index": "uses a value as an index or a count",
    "str": "makes text of a value",
    "repr": "makes text of a value",
    "format": "makes text of a value",
    "pow": "raises a value to a power",
    "rpow": "raises to the power of a value",
    "round": "rounds a value",
    "lshift": "shifts bits",
    "rlshift": "shifts bits",
    "rshift": "shifts bits",
    "rrshift": "shifts bits",
}.items():
    setattr(Symbol, f"__{_name}__", _refusing(_what))


_ORDERED: tuple[set[Kind], ...] = ({str}, {datetime.datetime}, {datetime.date})
_TIME_METHODS: dict[str, Kind] = {"date": datetime.date, "weekday": int, "isoweekday": int}


def _operand(value: Any) -> Expression:
    if isinstance(value, Symbol):
        return value._expression
    if type(value) is int and not _MIN_LONG <= value <= _MAX_LONG:
        raise NotTraceable(f"it computes with {value}, which has more than 64 bits")
    if type(value) not in (int, float, bool, str, Decimal, *_TIMES) or getattr(value, "tzinfo", None) is not None:
        raise NotTraceable(f"it computes with a {type(value).__name__}")
    return constant(value)


def _way_of(*values: Any) -> Way:
    return next(value._way for value in values if isinstance(value, Symbol))


def _number(name: str, symbol: Symbol) -> Symbol:
    kind = symbol._expression.kind
    if kind not in _NUMBERS:
        raise NotTraceable(f"it computes with a {kind.__name__}")
    return symbol._way.symbol(float if kind is float else int, name, symbol._expression)


def _binary(name: str, left: Any, right: Any) -> Symbol:
    operands = _operand(left), _operand(right)
    kind = _kind_of(name, *(operand.kind for operand in operands))
    if kind is None:
        kinds = " and a ".join(operand.kind.__name__ for operand in operands)
        raise NotTraceable(f"it uses the operator {name} on a {kinds}")
    symbol = _way_of(left, right).symbol(kind, name, *operands)
    if kind is Decimal and decimal_size(symbol._expression) is None:
        raise NotTraceable("it computes with decimals that have no fixed number of digits, or with too many")
    return symbol


def _kind_of(name: str, left: Kind, right: Kind) -> Kind | None:
    """The kind of the result of an operator; None where it has none, or none that is known here."""
    both = {left, right}
    if name in ("add", "sub", "mul"):
        if both <= {*_NUMBERS}:
            return float if float in both else int
        if both == {str} and name == "add":
            return str
        return Decimal if Decimal in both and both <= {Decimal, *_WHOLE} else None
    if name == "truediv":
        return float if both <= {*_NUMBERS} else None
    if name in ("floordiv", "mod"):
        return int if both <= {*_WHOLE} else None
    if name in ("and", "or", "xor"):
        return bool if both == {bool} else int if both <= {*_WHOLE} else None
    if name in _COMPARISONS:
        return bool if both <= {*_NUMBERS} or both in _ORDERED else None
    raise AssertionError(name)


def _equal(name: str, symbol: Symbol, other: object) -> Any:
    operand = _operand(other)
    kinds = {symbol._expression.kind, operand.kind}
    if kinds <= {*_NUMBERS} or kinds in _ORDERED:
        return symbol._way.symbol(bool, name, symbol._expression, operand)
    raise NotTraceable(f"it compares a {symbol._expression.kind.__name__} with a {operand.kind.__name__}")


def _operator(name: str) -> tuple[Callable[[Symbol, Any], Symbol], Callable[[Symbol, Any], Symbol]]:
    return lambda self, other: _binary(name, self, other), lambda self, other: _binary(name, other, self)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"):
    _straight, _reflected = _operator(_name)
    setattr(Symbol, f"__{_name}__", _straight)
    setattr(Symbol, f"__r{_name}__", _reflected)
for _name in _COMPARISONS:
    setattr(Symbol, f"__{_name}__", _operator(_name)[0])


def _method(name: str, kind: Kind, *, takes: int = 0) -> Callable[..., Symbol]:
    def call(symbol: Symbol, *arguments: Any) -> Symbol:
        if len(arguments) != takes or not all(type(argument) is str and argument for argument in arguments):
            raise NotTraceable(f"it calls {name}() with other arguments than texts that are constants")
        return symbol._way.symbol(kind, name, symbol._expression, *map(constant, arguments))

    return call


_METHODS = {
    **{name: _method(name, str) for name in ("upper", "lower", "strip", "lstrip", "rstrip")},
    "startswith": _method("startswith", bool, takes=1),
    "endswith": _method("endswith", bool, takes=1),
    "replace": _method("replace", str, takes=2),
}


def argument(number: int, type_info: TypeInformation, way: Way) -> Any:
    """An argument of a type: tuples, rows and dicts of symbols, or one symbol."""
    return _value((number,), type_info, way)


def _value(path: tuple[int, ...], type_info: TypeInformation, way: Way) -> Any:
    match type_info:
        case TupleTypeInfo():
            return tuple(_value((*path, place), kind, way) for place, kind in enumerate(type_info.types))
        case RowTypeInfo():
            values = (_value((*path, place), kind, way) for place, kind in enumerate(type_info.types))
            return Row.of_fields(tuple(type_info.field_names), values)
        case DictTypeInfo():
            named = zip(type_info.names, type_info.types, strict=True)
            return {name: _value((*path, place), kind, way) for place, (name, kind) in enumerate(named)}
    kind = Decimal if isinstance(type_info, DecimalTypeInfo) else _KINDS.get(str(type_info), object)
    return Symbol(Field(kind, path, type_info), way)


_LONG_DIGITS = 19


def decimal_size(expression: Expression) -> tuple[int, int] | None:
    """How many digits a decimal or whole number has at most, and how many of them after the point.

    None where that is not known, or is more than Python computes with.
    """
    if expression.kind in _WHOLE:
        return _LONG_DIGITS, 0
    match expression:
        case Field(type_info=DecimalTypeInfo(precision, scale)):
            size = precision, scale
        case Operation(name=name, operands=(left, right)):
            first, second = decimal_size(left), decimal_size(right)
            if first is None or second is None:
                return None
            scale = first[1] + second[1] if name == "mul" else max(first[1], second[1])
            before = first[0] - first[1], second[0] - second[1]
            size = (sum(before) if name == "mul" else max(before) + 1) + scale, scale
        case _:
            value = getattr(expression, "value", None)
            if not isinstance(value, Decimal) or not value.is_finite() or (not value and value.is_signed()):
                return None
            _, digits, exponent = value.as_tuple()
            if not isinstance(exponent, int) or exponent > 0:
                return None
            size = max(len(digits), -exponent), -exponent
    return size if size[0] <= CONTEXT_DIGITS else None


def type_of(expression: Expression) -> TypeInformation | None:
    """The type of the values of an expression; None for None, which fits every type.

    Raises:
        NotTraceable: if columns have none.
    """
    if isinstance(expression, Field):
        return expression.type_info
    if expression.kind is Decimal and (size := decimal_size(expression)) is not None:
        return Types.BIG_DEC(*size)
    kinds: dict[Kind, TypeInformation] = {
        int: Types.LONG(),
        float: Types.DOUBLE(),
        bool: Types.BOOLEAN(),
        str: Types.STRING(),
        datetime.date: Types.SQL_DATE(),
        datetime.datetime: Types.SQL_TIMESTAMP(),
    }
    if expression.kind is type(None):
        return None
    if expression.kind not in kinds:
        raise NotTraceable(f"it returns a {expression.kind.__name__}")
    value = getattr(expression, "value", None)
    if type(value) is int and not _MIN_LONG <= value <= _MAX_LONG:
        raise NotTraceable(f"it returns {value}, which has more than 64 bits")
    if type(value) is float and math.isnan(value):
        raise NotTraceable("it returns NaN")
    return kinds[expression.kind]


def _length(value: Any) -> Any:
    if not isinstance(value, Symbol):
        return len(value)
    if value._expression.kind is not str:
        raise NotTraceable(f"it asks for the length of a {value._expression.kind.__name__}")
    return value._way.symbol(int, "length", value._expression)


def _text(*values: Any) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return str(*values)
    (symbol,) = values
    if symbol._expression.kind not in (int, str):
        raise NotTraceable(f"it makes text of a {symbol._expression.kind.__name__}")
    return symbol._way.symbol(str, "text", symbol._expression)


def _floating(*values: Any) -> Any:
    if len(values) != 1 or not isinstance(values[0], Symbol):
        return float(*values)
    (symbol,) = values
    if symbol._expression.kind not in _NUMBERS:
        raise NotTraceable(f"it makes a float of a {symbol._expression.kind.__name__}")
    return symbol._way.symbol(float, "float", symbol._expression)


def _sum(values: Any, start: Any = 0) -> Any:
    """What ``sum`` gives; newer versions of Python add floating-point numbers up in another way than ``+`` does."""
    items = [*values]
    symbols = [one for one in (start, *items) if isinstance(one, Symbol)]
    if symbols and not all(_operand(one).kind in _WHOLE for one in (start, *items)):
        raise NotTraceable("it calls sum() with other values than whole numbers")
    return sum(items, start)


REPLACED: dict[Any, Callable[..., Any]] = {len: _length, str: _text, float: _floating, sum: _sum}
"""What traced functions call in place of builtins whose result Python forces to be a value, or computes by itself."""


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
    kind = symbol._expression.kind
    if kind not in (int, str) or not {kind}.issuperset(map(type, values)):
        raise NotTraceable(f"it looks for a {kind.__name__} among values of other types")
    return symbol._way.ask(symbol._way.operation(bool, "is in", symbol._expression, *map(_operand, sorted(values))))


CONTAINERS: dict[type, Callable[[Any], Any]] = {tuple: _Tuple, frozenset: _Set}
"""What traced functions have in place of constant tuples and sets."""
