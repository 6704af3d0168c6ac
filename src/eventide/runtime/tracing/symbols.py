"""Symbols: the arguments of a function while it is traced, in place of values that are not there yet."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, ClassVar, NoReturn

from eventide.common.typeinfo import (
    DecimalTypeInfo,
    DictTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from eventide.common.types import Row
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.decimal_sizes import decimal_size
from eventide.runtime.tracing.expressions import Computation, Constant, Expression, Field, Kind, constant
from eventide.runtime.tracing.kinds import (
    COMPARISONS,
    KINDS,
    NUMBERS,
    PARTS,
    SHOWN,
    TIME_METHODS,
    TIME_RESULTS,
    TIMES,
    AnyDecimal,
    InUtc,
    are_comparable,
    kind_of,
)
from eventide.runtime.tracing.known_functions import METHODS
from eventide.runtime.tracing.number_kernels import CONTEXT_DIGITS

_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1
_MOST_CONDITIONS = 32
_MOST_QUESTIONS = 512
_DEEPEST = 100


class TracePath:
    """One way through a function: the answers to what it asked of symbols, and what it computed.

    Args:
        answers: those to give first, one after the other; then everything is true.
        known: the operations of the trace, by what they are, which all of its ways share.
    """

    def __init__(self, answers: list[bool], known: dict[Any, Computation]) -> None:
        self._answers = answers
        self._known = known
        self._questions = 0
        self.asked: dict[Expression, bool] = {}
        self.computed: dict[Computation, None] = {}

    def ask(self, condition: Expression) -> bool:
        """The answer to a condition, the same each time.

        Raises:
            NotTraceable: if there is no end of questions.
        """
        self._questions += 1
        if condition not in self.asked:
            if len(self.asked) >= _MOST_CONDITIONS:
                raise NotTraceable("it tests too many conditions, one after the other")
            place = len(self.asked)
            self.asked[condition] = self._answers[place] if place < len(self._answers) else True
        if self._questions > _MOST_QUESTIONS:
            raise NotTraceable("it tests conditions too often, as a loop does that a value ends")
        return self.asked[condition]

    def operation(self, kind: Kind, name: str, *operands: Expression) -> Computation:
        """The operation on some operands, of which there is one object; the way has computed it.

        Raises:
            NotTraceable: if there are too many below each other.
        """
        depth = 1 + max((one.depth for one in operands if isinstance(one, Computation)), default=0)
        if depth > _DEEPEST:
            raise NotTraceable("it computes too long a chain of values")
        parts = tuple(id(one) if isinstance(one, Computation) else one for one in operands)
        found = self._known.setdefault((name, parts), Computation(kind, name, operands, depth))
        self.computed[found] = None
        return found

    def symbol(self, kind: Kind, name: str, *operands: Expression) -> Symbol:
        """The symbol of an operation."""
        made = Unknown if kind is Unknown else Symbol
        return made(self.operation(kind, name, *operands), self)


class Symbol:
    """A value that is not there yet. Operators make another symbol; a question for its truth has an answer of the way.

    All that would have to know the value raises :class:`NotTraceable`. Its own attributes begin with an underscore:
    programs that read such a name are not traced.
    """

    __slots__ = ("_expression", "_way")
    __array_ufunc__: ClassVar[None] = None  # so numbers of numpy leave their operators to it, which refuses them

    def __init__(self, expression: Expression, way: TracePath) -> None:
        self._expression = expression
        self._way = way

    def __bool__(self) -> bool:
        if self._expression.kind not in TRUTHS:
            raise NotTraceable(f"it tests whether a {self._expression.kind.__name__} is true")
        return self._way.ask(self._expression)

    def __getattr__(self, name: str) -> Any:
        kind = self._expression.kind
        if kind is str and name in METHODS:
            return lambda *arguments, **named: _called(self, name, *arguments, **named)
        if name in PARTS.get(kind, ()):
            return self._way.symbol(int, name, self._expression)
        if name in TIME_METHODS.get(kind, ()):
            since_epoch = kind is InUtc and name == "timestamp"
            return lambda: self._way.symbol(
                TIME_METHODS[kind][name], "total_seconds" if since_epoch else name, self._expression
            )
        if kind in (datetime.datetime, InUtc, datetime.date) and name == "replace":
            return lambda **parts: _with_parts(self, parts)
        if kind in (Decimal, AnyDecimal) and name == "quantize":
            return lambda unit, rounding=None: _quantized(self, unit, rounding)
        if kind in (*TIMES, InUtc) and name in ("isoformat", "strftime"):
            return lambda *arguments: _as_text(self, name, arguments)
        raise NotTraceable(f"it uses the attribute {name!r} of a {kind.__name__}")

    def __contains__(self, part: object) -> bool:
        operand = operand_of(part)
        if self._expression.kind is str and operand.kind is str:
            return self._way.ask(self._way.operation(bool, "contains", self._expression, operand))
        raise NotTraceable("it looks into a value with `in`")

    def __getitem__(self, at: object) -> Symbol:
        places = (at.start, at.stop, at.step) if type(at) is slice else (at,)
        kinds = (int, type(None)) if type(at) is slice else (int,)
        if self._expression.kind is not str or not all(type(place) in kinds for place in places):
            raise NotTraceable(f"it takes a part of a {self._expression.kind.__name__}")
        return self._way.symbol(str, "item" if len(places) == 1 else "slice", self._expression, *map(constant, places))

    def __pow__(self, other: Any) -> Symbol:
        kinds = {self._expression.kind, type(other)}
        if not kinds <= {*NUMBERS} or (float not in kinds and other < 0):
            raise NotTraceable("it raises a value to a power that is not a constant, or is negative")
        kind: Kind = float if float in kinds else int
        return self._way.symbol(kind, f"{kind.__name__} power", self._expression, operand_of(other))

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

    def __divmod__(self, other: object) -> tuple[Symbol, Symbol]:
        return _binary("floordiv", self, other), _binary("mod", self, other)

    def __rdivmod__(self, other: object) -> tuple[Symbol, Symbol]:
        return _binary("floordiv", other, self), _binary("mod", other, self)


class Unknown(Symbol):
    """A value that `open()` will make, or one computed from it, of which only the fields that it needs are known.

    It is its own kind. A trace with one tells which fields a function reads, and is not evaluated.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Unknown:
        return self._with(f"attribute {name}")

    def __call__(self, *arguments: object, **named: object) -> Unknown:
        return self._with(f"call with {[*named]}", *arguments, *named.values())

    def __getitem__(self, at: object) -> Unknown:
        return self._with("item", at)

    def __contains__(self, part: object) -> bool:
        return bool(self._with("contains", part))

    def _with(self, name: str, *others: Any) -> Unknown:
        others = tuple(_seen(other, self._way) for other in others)
        return Unknown(self._way.operation(Unknown, name, self._expression, *others), self._way)


def unknown_is_none(value: Unknown) -> bool:
    """Whether something unknown is None: an answer of its way."""
    return bool(value._with("is none"))


def go_on(value: Unknown, way: TracePath) -> None:
    """Let an attribute of an object, which all ways find, ask another way."""
    value._way = way


def _seen(value: object, way: TracePath) -> Expression:
    """A value that something unknown is given: fields, constants, and tuples of these, but no element."""
    if type(value) is tuple:
        return way.operation(Unknown, "tuple", *(_seen(part, way) for part in value))
    return constant(None) if value is None else operand_of(value)


TRUTHS = (int, float, bool, str, Decimal, datetime.timedelta, Unknown)
"""The kinds of values of which a trace knows whether they are true."""


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(self: Symbol, *arguments: object) -> NoReturn:
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
    "rpow": "raises to the power of a value",
    "round": "rounds a value",
    "lshift": "shifts bits",
    "rlshift": "shifts bits",
    "rshift": "shifts bits",
    "rrshift": "shifts bits",
}.items():
    setattr(Symbol, f"__{_name}__", _refusing(_what))


def _with_parts(symbol: Symbol, parts: dict[str, Any]) -> Symbol:
    """A date, or a date and time, with other parts; in UTC, or without a zone."""
    way, expression, kind = symbol._way, symbol._expression, symbol._expression.kind
    numbers = {name: value for name, value in parts.items() if name != "tzinfo"}
    zone = parts.get("tzinfo", datetime.UTC)
    has_zone = "tzinfo" in parts
    is_known = (zone is datetime.UTC and not (has_zone and kind is datetime.date)) or (zone is None and kind is InUtc)
    if not is_known or not numbers.keys() <= PARTS[kind] or any(type(value) is not int for value in numbers.values()):
        raise NotTraceable(
            "it calls replace() of a time with parts that are not numbers, or with a zone other than UTC"
        )
    if numbers or not parts:
        named = [constant(each) for pair in numbers.items() for each in pair]
        name = "date with parts" if kind is datetime.date else "with parts"
        expression = way.operation(kind, name, expression, *named)
    if zone is None:
        return way.symbol(datetime.datetime, "without zone", expression)
    return way.symbol(InUtc, "in UTC", expression) if has_zone else Symbol(expression, way)


def _as_text(symbol: Symbol, name: str, arguments: tuple[Any, ...]) -> Symbol:
    if any(type(plain(argument)) is not str for argument in arguments):
        raise NotTraceable(f"it calls {name}() with arguments that are not constants")
    operands = [*map(operand_of, arguments)]
    in_utc = " in UTC" if symbol._expression.kind is InUtc else ""
    if name == "strftime":
        return symbol._way.symbol(str, name + in_utc, symbol._expression, *operands)
    return symbol._way.symbol(str, f"str method{in_utc}", symbol._expression, constant(name), *operands)


class Text(str):
    """A constant text that a function may put together with symbols."""

    __slots__ = ()

    def __mod__(self, values: object) -> Any:
        several = values if type(values) is tuple else (values,)
        return self._filled("percent", several) if _has_symbol(several) else super().__mod__(values)

    def format(self, *values: object, **named: object) -> Any:
        """The text with values in its places."""
        return super().format(*values, **named) if not _has_symbol(values) or named else self._filled("fill", values)

    def join(self, parts: Iterable[Any]) -> Any:
        """The parts with this text between them."""
        several = [*parts]
        if not _has_symbol(several):
            return super().join(several)
        if any(operand_of(part).kind is not str for part in several):
            raise NotTraceable("it joins values that are not text")
        return self._filled("join", several)

    def __contains__(self, part: object) -> bool:
        if not isinstance(part, Symbol):
            return super().__contains__(plain(part))
        return part._way.ask(part._way.operation(bool, "contains", operand_of(self), operand_of(part)))

    def _filled(self, name: str, values: Sequence[Any]) -> Symbol:
        return way_of(*values).symbol(str, name, operand_of(self), *map(shown, values))


def shown(value: object) -> Expression:
    """The expression of a value that text is made of.

    Raises:
        NotTraceable: if its columns have other objects than the function.
    """
    expression = operand_of(value)
    if expression.kind not in (*SHOWN, Unknown):
        raise NotTraceable(f"it makes text of a {expression.kind.__name__}")
    return expression


def _has_symbol(values: Iterable[Any]) -> bool:
    return any(isinstance(value, Symbol) for value in values)


def plain(value: object) -> Any:
    """A constant without what the tracer has put in its place."""
    return str(value) if type(value) is Text else value


def operand_of(value: object) -> Expression:
    """The expression of an operand.

    Raises:
        NotTraceable: if it is of a type that nothing is computed with.
    """
    if isinstance(value, Symbol):
        return value._expression
    value = plain(value)
    if type(value) is int and not _MIN_LONG <= value <= _MAX_LONG:
        raise NotTraceable(f"it computes with {value}, which has more than 64 bits")
    if type(value) is datetime.datetime and value.tzinfo is datetime.UTC:
        return Constant(InUtc, repr(value), (value.replace(tzinfo=None),))
    if type(value) not in (int, float, bool, str, Decimal, *TIMES) or getattr(value, "tzinfo", None) is not None:
        raise NotTraceable(f"it computes with a {type(value).__name__}")
    return constant(value)


def way_of(*values: object) -> TracePath:
    """The way that symbols belong to, of which there is one among some values."""
    return next(value._way for value in values if isinstance(value, Symbol))


def _number(name: str, symbol: Symbol) -> Symbol:
    kind = symbol._expression.kind
    if kind is datetime.timedelta:
        return symbol._way.symbol(kind, f"{name} to {kind.__name__}", symbol._expression)
    if kind in (Decimal, AnyDecimal):
        return decimal_symbol(symbol._way, name, symbol._expression)
    if kind not in NUMBERS:
        raise NotTraceable(f"it computes with a {kind.__name__}")
    return symbol._way.symbol(float if kind is float else int, name, symbol._expression)


def _binary(name: str, left: object, right: object) -> Symbol:
    operands = operand_of(left), operand_of(right)
    if Unknown in (operands[0].kind, operands[1].kind):
        return way_of(left, right).symbol(Unknown, name, *operands)
    if (of_times := TIME_RESULTS.get((name, operands[0].kind, operands[1].kind))) is not None:
        return way_of(left, right).symbol(of_times, f"{name} to {of_times.__name__}", *operands)
    kind = kind_of(name, *(operand.kind for operand in operands))
    if kind is None:
        kinds = " and a ".join(operand.kind.__name__ for operand in operands)
        raise NotTraceable(f"it uses the operator {name} on a {kinds}")
    if kind in (Decimal, AnyDecimal):
        return decimal_symbol(way_of(left, right), name, *operands)
    return _of_numbers(way_of(left, right), kind, name, *operands)


def decimal_symbol(way: TracePath, name: str, *operands: Expression) -> Symbol:
    """The decimal of an operation: on columns of decimals, if it has a known number of digits.

    Else Python computes each value, as one of any number of digits.
    """
    has_any = name == "truediv" or AnyDecimal in (operand.kind for operand in operands)
    if has_any or decimal_size(Computation(Decimal, name, operands)) is None:
        return way.symbol(AnyDecimal, f"any {name}", *map(_as_any, operands))
    return way.symbol(Decimal, name, *operands)


def _of_numbers(way: TracePath, kind: Kind, name: str, *operands: Expression) -> Symbol:
    """The symbol of an operation that compares or adds up values, with decimals of any number of digits among them."""
    if AnyDecimal in (operand.kind for operand in operands):
        return way.symbol(kind, f"any {name}", *map(_as_any, operands))
    return way.symbol(kind, name, *operands)


def _as_any(operand: Expression) -> Expression:
    """An operand of an operation on decimals of any number of digits: a constant keeps its digits as text."""
    if isinstance(operand, Constant) and operand.kind is Decimal:
        return Constant(AnyDecimal, operand.text, (str(operand.value),))
    return operand


def rounded_decimal(symbol: Symbol, places: int) -> Symbol:
    """A decimal rounded to some digits after the point, at least none."""
    if symbol._expression.kind is AnyDecimal:
        return symbol._way.symbol(Decimal, "any round", symbol._expression, constant(places), constant(None))
    return decimal_symbol(symbol._way, "round decimal", symbol._expression, constant(places))


def _quantized(symbol: Symbol, unit: object, rounding: object) -> Symbol:
    rounding = plain(rounding)
    if type(unit) is not Decimal or not unit.is_finite() or type(rounding) not in (str, type(None)):
        raise NotTraceable("it calls quantize() with values that are not constants")
    places = -int(unit.as_tuple().exponent)
    if not 0 <= places <= CONTEXT_DIGITS:
        raise NotTraceable("it calls quantize() with a unit that is larger than 1, or has too many digits")
    return symbol._way.symbol(Decimal, "any round", symbol._expression, constant(places), constant(rounding))


def _equal(name: str, symbol: Symbol, other: object) -> Any:
    operand = operand_of(other)
    if Unknown in (symbol._expression.kind, operand.kind):
        return symbol._way.symbol(Unknown, name, symbol._expression, operand)
    if are_comparable({symbol._expression.kind, operand.kind}):
        return _of_numbers(symbol._way, bool, name, symbol._expression, operand)
    raise NotTraceable(f"it compares a {symbol._expression.kind.__name__} with a {operand.kind.__name__}")


def _operator(name: str) -> tuple[Callable[[Symbol, Any], Symbol], Callable[[Symbol, Any], Symbol]]:
    return lambda self, other: _binary(name, self, other), lambda self, other: _binary(name, other, self)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"):
    _straight, _reflected = _operator(_name)
    setattr(Symbol, f"__{_name}__", _straight)
    setattr(Symbol, f"__r{_name}__", _reflected)
for _name in COMPARISONS:
    setattr(Symbol, f"__{_name}__", _operator(_name)[0])
for _name, _what in {"neg": "negate", "pos": "plus", "abs": "abs"}.items():
    setattr(Symbol, f"__{_name}__", lambda self, name=_what: _number(name, self))


def _called(symbol: Symbol, name: str, *arguments: object, **named: object) -> Any:
    """The result of a method of text."""
    if [*named] == ["maxsplit"] and len(arguments) == 1:
        arguments = (*arguments, named["maxsplit"])
    elif named:
        raise NotTraceable(f"it calls {name}() with arguments by name")
    text, way = symbol._expression, symbol._way
    operands = list(map(_argument, arguments))
    if name in ("split", "rsplit"):
        return SplitParts(symbol, name, operands)
    if name == "partition":
        return tuple(way.symbol(str, "part", text, constant(name), constant(at), *operands) for at in range(3))
    if _FAST.get(name) == len(arguments) and all(type(one) is str and one for one in map(plain, arguments)):
        return way.symbol(METHODS[name], name, text, *operands)
    return way.symbol(METHODS[name], f"{METHODS[name].__name__} method", text, constant(name), *operands)


def _argument(value: object) -> Expression:
    if isinstance(value, tuple):  # of beginnings, say
        return constant(tuple(map(plain, value)))
    return constant(None) if value is None else operand_of(value)


_FAST = {
    **{"upper": 0, "lower": 0, "strip": 0, "lstrip": 0, "rstrip": 0},
    **{"startswith": 1, "endswith": 1, "count": 1, "replace": 2},
}
"""How many texts that are constants a method is called with where Arrow has it."""


class TracedObject:
    """Stands for an object of which a trace knows a few methods; to all else that it is asked, it has no answer.

    So it has no text either, which would be its own. ``_what`` it stands for is a part of reasons; as those of symbols,
    its own attributes begin with an underscore.
    """

    __slots__ = ()
    _what: ClassVar[str]

    def __getattr__(self, name: str) -> NoReturn:
        raise NotTraceable(f"it uses the attribute {name!r} of {self._what}")

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise NotTraceable(f"it uses {self._what} in a way that columns do not support")

    __bool__ = __len__ = __iter__ = __contains__ = _refuse
    __eq__ = __hash__ = __str__ = __repr__ = __format__ = _refuse


class SplitParts(TracedObject):
    """The list that ``split`` of a text gives, of which single parts may be taken."""

    __slots__ = ("_name", "_operands", "_symbol")
    _what = "a list of parts"

    def __init__(self, symbol: Symbol, name: str, operands: list[Expression]) -> None:
        self._symbol = symbol
        self._name = name
        self._operands = operands
        if any(not isinstance(operand, Constant) or operand.value == "" for operand in operands):
            raise NotTraceable(f"it calls {name}() with arguments that are not constants")
        symbol._way.operation(str, "text", symbol._expression)  # None has no parts, whether one is taken or not

    def __getitem__(self, index: object) -> Symbol:
        if type(index) is not int:
            raise NotTraceable(f"it takes parts of a {self._name}() other than one by its number")
        if self._is_plain:
            return self._symbol._way.symbol(str, "part of list", self._list(), constant(index))
        return self._operation(str, "part", constant(self._name), constant(index))

    def __iter__(self) -> NoReturn:
        raise NotTraceable(f"it goes through the parts of a {self._name}()")

    @property
    def _count(self) -> Symbol:
        """How many there are."""
        if self._is_plain:
            return self._symbol._way.symbol(int, "length of list", self._list())
        return self._operation(int, "parts", constant(self._name))

    @property
    def _is_plain(self) -> bool:
        """Whether Arrow can split the text, at a constant, as often as the constant is found."""
        return self._name == "split" and [operand.kind for operand in self._operands] == [str]

    def _list(self) -> Expression:
        """The expression of the list, which is computed once, however many parts are taken."""
        symbol = self._symbol
        return symbol._way.operation(list, "split", symbol._expression, *self._operands)

    def _operation(self, kind: Kind, name: str, *more: Expression) -> Symbol:
        symbol = self._symbol
        return symbol._way.symbol(kind, name, symbol._expression, *more, *self._operands)


def argument(path: tuple[int, ...], type_info: TypeInformation, way: TracePath) -> Any:
    """An argument of a type, or a part of one: tuples, rows and dicts of symbols, or one symbol."""
    match type_info:
        case TupleTypeInfo():
            return tuple(argument((*path, place), kind, way) for place, kind in enumerate(type_info.types))
        case RowTypeInfo():
            values = (argument((*path, place), kind, way) for place, kind in enumerate(type_info.types))
            return Row.of_fields(tuple(type_info.field_names), values)
        case DictTypeInfo():
            named = zip(type_info.field_names, type_info.types, strict=True)
            return {name: argument((*path, place), kind, way) for place, (name, kind) in enumerate(named)}
    kind = Decimal if isinstance(type_info, DecimalTypeInfo) else KINDS.get(str(type_info), object)
    return Symbol(Field(kind, path, type_info), way)
