"""Random functions over random batches: what their traces give must be what they give, element by element.

`random_operators` has the functions of operators, and runs all of them.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

from eventide.api.functions.output_tag import OutputTag
from eventide.common.time import Instant
from eventide.common.typeinfo import DictTypeInfo, TypeInformation, Types
from eventide.common.types import Row
from eventide.datastream.functions import AggregateFunction
from eventide.runtime.chain.chained_operators import Moment, Process
from eventide.runtime.columnar.panes import RegularPanes
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.metrics import Metrics
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import accumulated, filtered, flat_mapped, mapped
from eventide.runtime.tracing.folds import aggregate_fold_of
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.window.contents import Accumulated
from eventide.runtime.window.reducing import how_to_put_together
from eventide.runtime.window.reducing_columns import reduced_columns

ROWS = 24

_INTS = (0, 1, -1, 2, 7, -13, 100, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 3, 2**62, 2**63 - 1, -(2**63))
_SMALL = (0, 1, -1, 2, 3, 5, -7, 127, -128)
_FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 1e300, -1e308, 5e-324, math.inf, -math.inf, math.nan, 2.0**53, 3.7)
_TEXTS = ("", "a", "b", "ab", " a ", "abc", "ABC", "ß", "İ", "\x1c x\n", "\xa0", "long text", "x" * 40, "日本")
_SEPARATORS = ("", "a", " ", "-", "ab", "x", "%", "\xa0")
_ASKS = ("isdigit", "isalpha", "isupper", "isspace", "isascii", "isalnum")
_DECIMALS = tuple(map(Decimal, ("0.00", "1.25", "-1.25", "99999999.99", "3.10", "-0.01")))
_TIMES = (
    datetime.datetime(1970, 1, 1),  # noqa: DTZ001 - as they come from columns
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999),  # noqa: DTZ001
    datetime.datetime(1969, 12, 31, 1, 2, 3, 4),  # noqa: DTZ001
    datetime.datetime.min,  # noqa: DTZ901
    datetime.datetime.max,  # noqa: DTZ901
)
_FIELDS = {
    "i": (Types.LONG(), _INTS),
    "j": (Types.INT(), _SMALL),
    "k": (Types.LONG(), _SMALL),
    "f": (Types.DOUBLE(), _FLOATS),
    "g": (Types.FLOAT(), (0.5, -0.0, 1.0, 3.25, math.nan, math.inf)),
    "s": (Types.STRING(), _TEXTS),
    "u": (Types.STRING(), ("a", "b", "ab", "")),
    "b": (Types.BOOLEAN(), (True, False)),
    "d": (Types.BIG_DEC(10, 2), _DECIMALS),
    "t": (Types.SQL_TIMESTAMP(), _TIMES),
    "q": (Types.SQL_DATE(), tuple(time.date() for time in _TIMES)),
    "v": (Types.LIST(Types.STRING()), (["a"], [], ["b", "ß"])),
    "m": (Types.MAP(Types.STRING(), Types.LONG()), ({"a": 1}, {})),
    "n": (Types.BIG_INT(), (0, -1, 10**20)),
    "c": (Types.CHAR(), ("a", "ß")),
    "w": (Types.INSTANT(), (Instant(0, 0), Instant(-1, 999_000_000))),
    "o": (Types.PICKLED_BYTE_ARRAY(), (1, ("a", 1.5), {2})),
    "h": (Types.PRIMITIVE_ARRAY(Types.BYTE()), (b"", b"a\x00", b"\xff")),
    "l": (Types.SQL_TIME(), (datetime.time(0, 0), datetime.time(23, 59, 59, 999_999))),
    "y": (Types.BYTE(), (0, 127, -128, 1)),
    "z": (Types.SHORT(), (0, 2**15 - 1, -(2**15), -1)),
    "x": (Types.BIG_DEC(28, 9), tuple(map(Decimal, ("0E-9", "9999999999999999999.000000001", "-0.000000001")))),
    "a": (Types.LIST(Types.LONG()), ([], [1], [2**63 - 1, -1])),
}
_OBJECTS = "vmncwohla"
"""The fields whose columns have other objects than the function."""
_NAMES = tuple(_FIELDS)
_INSIDE = Types.ROW_NAMED(
    ["x", "y", "z"], [Types.LONG(), Types.STRING(), Types.TUPLE([Types.DOUBLE(), Types.BIG_DEC(6, 3), Types.BOOLEAN()])]
)
_ROWS_INSIDE = tuple(
    Row(x=number, y=text, z=(float(at), Decimal(at).scaleb(-3), at % 2 == 0))
    for at, (number, text) in enumerate(itertools.product((0, -1, 2**53, 2**63 - 1), ("", "y", "ß")))
)
_FIELDS["r"] = (_INSIDE, _ROWS_INSIDE)
_WITH_INSIDE = tuple(_FIELDS)
_PARTS = ("year", "month", "day", "weekday()", "isoweekday()", "hour", "minute", "second", "microsecond")
_UNITS = ("days", "weeks", "seconds", "hours", "minutes", "milliseconds", "microseconds")
_MATH = ("sqrt", "log", "exp", "sin", "fabs", "log10", "tanh", "cbrt", "expm1", "gamma", "degrees", "radians", "asinh")
_TUPLES = "((1, 'b'), (0, None))"
_OF_DECIMALS = ("+", "-", "*", "/", "//", "%")
_NUMERALS = ("1.50", "-0.00", "1e3", "0.333333333333333333333333333333", "NaN", "x", " 7 ", "-2.5")
_OF_TRUTHS = ("and", "or", "&", "|", "^", "==", "<")


@dataclass(frozen=True)
class Layout:
    """How elements consist of fields, which have the names, types and values of `_FIELDS`.

    Attributes:
        form: "row", "tuple" or "dict"; or "plain", if they are the values of one field.
        names: the names of the fields.
    """

    form: str
    names: tuple[str, ...] = _WITH_INSIDE

    @property
    def type_info(self) -> TypeInformation:
        """The type of the elements."""
        kinds = [_FIELDS[name][0] for name in self.names]
        if self.form == "plain":
            return kinds[0]
        if self.form == "tuple":
            return Types.TUPLE(kinds)
        return DictTypeInfo(kinds, self.names) if self.form == "dict" else Types.ROW_NAMED([*self.names], kinds)

    def element(self, values: tuple[Any, ...]) -> Any:
        """The element with the values of its fields."""
        if self.form == "plain":
            return values[0]
        if self.form == "tuple":
            return values
        return dict(zip(self.names, values, strict=True)) if self.form == "dict" else Row.of_fields(self.names, values)

    def ways_to(self, variable: str, name: str) -> tuple[str, ...]:
        """Expressions of a field of the element that a variable has."""
        by_name, by_place = f"{variable}[{name!r}]", f"{variable}[{self.names.index(name)}]"
        if self.form == "plain":
            return (variable,)
        if self.form == "tuple":
            return (by_place,)
        return (
            (by_name, f"{variable}.get({name!r})") if self.form == "dict" else (f"{variable}.{name}", by_name, by_place)
        )

    def as_dict(self, variable: str) -> str:
        """An expression of the whole element as a dict."""
        by_form = {"row": f"{variable}.as_dict()", "dict": variable}
        return by_form.get(self.form, f"dict(zip({self.names!r}, {variable}))")


FORMS = tuple(map(Layout, ("row", "tuple", "dict")))


_GLOBALS: dict[str, Any] = {
    "Row": Row,
    "nan": math.nan,
    "inf": math.inf,
    "Instant": Instant,
    "ROUND_HALF_UP": ROUND_HALF_UP,
    "Decimal": Decimal,
    "D": Decimal("0.908"),
}
_GLOBALS |= {"S": frozenset({1, 3, 2**53}), "T": _TIMES[1]}
_GLOBALS |= {"datetime": datetime, "timedelta": datetime.timedelta, "timezone": datetime.timezone, "math": math}
_GLOBALS |= {"V": (0, 1.0, -7, None, "a", "", math.nan, 2**53, Decimal("1.25"), 0.1, *_TIMES, _TIMES[1].date())}
_GLOBALS |= {"W": {(0, ""), (1, "a"), (1.0, "b"), (-7, None), (True, ("a",)), ("a", 1)}}
_GLOBALS |= {"U": datetime.datetime(2000, 2, 29, tzinfo=datetime.UTC)}
_GLOBALS |= {"BY_INT": {0: "zero", 1: "a", -7: "ß", 2**53: ""}, "BY_TEXT": {"a": 1, "": 2**63 - 1, "ß": -1}}
_GLOBALS |= {"PAIRS": {0: ("x", 0.5), 1: ("", -0.0), 3: ("日本", math.nan)}, "LIST": [0, 1, 127], "TEXTS": {"a", "abc"}}
_PATTERNS = (
    r"^a",
    r"(?i)(ab)+(c)?",
    r"\w+$",
    "[^a-c]",
    r"(a|b)(?P<n>.*)",
    r"\s",
    "(?=b)",
    "(x)\\1",
    "b*",
    "",
    "[à-ÿ]",
    "(a)?b",
)
_GLOBALS |= {f"P{place}": re.compile(pattern) for place, pattern in enumerate(_PATTERNS)} | {"re": re}
_GLOBALS |= {"LONGS": OutputTag("l", Types.LONG()), "TEXTS_BESIDE": OutputTag("t", Types.STRING())}
_GLOBALS["ANYTHING"] = OutputTag("a")
_GLOBALS["H"] = datetime.timedelta(hours=1, microseconds=1)


@dataclass(frozen=True)
class Case:
    """A function, and the elements that it is called with.

    Attributes:
        source: the text of the function.
        function: the function.
        type_info: the type of the elements.
        values: the elements.
    """

    source: str
    function: Callable[[Any], Any]
    type_info: TypeInformation
    values: list[Any]


@dataclass(frozen=True)
class AggregateCase:
    """An aggregate function, and the elements that it is called with; as :class:`Case`."""

    source: str
    function: AggregateFunction[Any, Any, Any]
    type_info: TypeInformation
    values: list[Any]


class Maker:
    """Makes random functions and elements from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._layouts: dict[str, Layout] = {}

    def case(self, rows: int = ROWS) -> Case:
        """One more function, with some elements."""
        layout = self._of_one()
        source = f"lambda e: {self._result()}"
        return Case(source, self._made(source), layout.type_info, self._values(layout, rows))

    def process(self, rows: int = ROWS) -> Case:
        """One more function that puts elements out beside others, by conditions."""
        layout = self._of_one()
        source = f"lambda e, ctx: {self._outputs(2)}"
        return Case(source, self._made(source), layout.type_info, self._values(layout, rows))

    def row_by_position(self, rows: int = ROWS) -> tuple[Case, Case]:
        """One more function that gives a row whose fields have no names, and one that gives a tuple of the same."""
        layout = self._of_one()
        condition, values = self._bool(1), self._values(layout, rows)
        fields = [(self._any(1), self._random.choice((self._int, self._str))(0)) for _ in range(2)]
        fields = [fields[0], fields[self._random.choice((0, 1))]]
        sources = (
            "lambda e: Row({0[0]}, Row({0[1]})) if {2} else Row({1[0]}, Row({1[1]}))",
            "lambda e: ({0[0]}, ({0[1]},)) if {2} else ({1[0]}, ({1[1]},))",
        )
        made = (source.format(*fields, condition) for source in sources)
        of_rows, of_tuples = (Case(each, self._made(each), layout.type_info, values) for each in made)
        return of_rows, of_tuples

    def _outputs(self, depth: int) -> str:
        """A list of results, some of which are for side outputs."""
        tag = self._random.choice(("LONGS", "TEXTS_BESIDE", "ANYTHING"))
        value = {"LONGS": self._int, "TEXTS_BESIDE": self._str, "ANYTHING": self._bool}[tag](1)
        if depth <= 0:
            return self._one(
                lambda: f"[({tag}, {value})]", lambda: f"[({self._int(1)}, ctx.timestamp())]", lambda: "[]"
            )
        return self._one(
            lambda: f"({self._outputs(depth - 1)} if {self._bool(1)} else {self._outputs(depth - 1)})",
            lambda: f"[*{self._outputs(depth - 1)}, ({tag}, {value}), *{self._outputs(0)}]",
            lambda: f"({self._outputs(0)} if {self._bool(0)} else {self._outputs(depth - 1)})",
        )

    def aggregate(self, rows: int = ROWS) -> AggregateCase:
        """An aggregate function of a few fields, many of which are sums or extremes, with some elements."""
        layout = self._of_one(*(Layout(each.form, _NAMES) for each in FORMS))
        grown = [self._growth(f"a[{place}]") for place in range(self._random.choice((1, 2, 2, 3)))]
        add, starts = ", ".join(text for text, _ in grown), ", ".join(start for _, start in grown)
        methods = {
            "create_accumulator": eval(f"lambda self: ({starts},)"),
            "add": self._made(f"lambda self, e, a: ({add},)"),
            "get_result": lambda self, accumulator: accumulator,
            "merge": lambda self, one, other: None,
        }
        function = type("Made", (AggregateFunction,), methods)()
        return AggregateCase(add, function, layout.type_info, self._values(layout, rows))

    def _of_one(self, *layouts: Layout) -> Layout:
        """Let functions have one argument, an element of one of some layouts; give this."""
        layout = self._random.choice(layouts or FORMS)
        self._layouts = {"e": layout}
        return layout

    def _made(self, source: str) -> Callable[..., Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of a literal that is compared with None
            function: Callable[..., Any] = eval(source, dict(_GLOBALS))
        return function

    def _growth(self, before: str) -> tuple[str, str]:
        """How a field of an accumulator grows, in most cases so that its parts can be put together; its start."""
        is_text = self._random.random() < 0.2
        new, other = (self._str(1), self._str(0)) if is_text else (self._int(1), self._int(0))
        sign = self._random.choice(("<", "<=", ">", ">="))
        text = self._one(
            lambda: f"{before} + {new}",
            lambda: f"{new} + {before}",
            lambda: f"({before} + {new} if {self._bool(1)} else {before})",
            lambda: f"{before} + ({new} if {self._bool(0)} else {other})",
            lambda: f"{self._random.choice(('min', 'max'))}({before}, {new})",
            lambda: f"({new} if {new} {sign} {before} else {before})",
            lambda: f"({before} if {before} {sign} {new} else {new})",
            lambda: f"({new} if {before} {sign} {other} else {before})",
            lambda: f"({before} + {new} if a[0] {sign} {other} else {before})",
            lambda: f"({other} if {self._bool(0)} else {before} + {new})",
            lambda: self._random.choice((before, new, "a[0]", f"{before} + a[0]", f"{before} - {new}")),
        )
        start = self._random.choice(("''", "'b'")) if is_text else self._random.choice(("0", "0", "0", "1", "-5"))
        return text, start

    def _values(self, layout: Layout, rows: int) -> list[Any]:
        """Elements whose fields are at the edges of their types; in some, fields are None."""
        with_none = {name for name in layout.names if self._random.random() < 0.1}
        are_tame = self._random.random() < 0.5
        columns = []
        for name in layout.names:
            pool = _FIELDS[name][1]
            values = self._random.choices(pool[: max(3, len(pool) // 2)] if are_tame else pool, k=rows)
            if name in with_none:
                values = [None if self._random.random() < 0.2 else value for value in values]
            columns.append(values)
        return list(map(layout.element, zip(*columns, strict=True)))

    def _one(self, *choices: Callable[[], str]) -> str:
        return self._random.choice(choices)()

    def _field(self, name: str) -> str:
        """A field of one of the arguments that have it, or a constant of its type."""
        ways = [layout.ways_to(each, name) for each, layout in self._layouts.items() if name in layout.names]
        if ways:
            return self._random.choice(self._random.choice(ways))
        return "Instant(0, 0)" if name == "w" else repr(self._random.choice(_FIELDS[name][1]))

    def _one_of_them(self) -> str:
        """One of the arguments."""
        return self._random.choice([*self._layouts])

    def _all_of_it(self) -> str:
        """An expression of a whole element as a dict."""
        variable, layout = self._random.choice([*self._layouts.items()])
        return layout.as_dict(variable)

    def _result(self) -> str:
        depth = self._random.choice((1, 2, 2, 3))
        return self._one(
            lambda: self._any(depth),
            lambda: self._any(depth),
            lambda: f"({self._any(depth)}, {self._any(1)})",
            lambda: f"Row(x={self._any(depth)}, y={self._any(1)}, z={self._any(0)})",
            lambda: f"({self._any(1)}, ({self._any(0)}, {self._any(1)}))",
            lambda: f"({self._choice_with_none(depth)}, {self._any(0)})",
            lambda: " if ".join((self._one_of_them(), f"{self._bool(depth)} else {self._one_of_them()}")),
            lambda: f"({self._any(depth)}, {self._any(depth)})[{self._random.choice('01')}]",
            lambda: f"({self._field('r')}, {self._any(1)})",
            lambda: f"{self._any(1)} if {self._field('r')} else {self._any(1)}",
            lambda: f"{self._field('r')}{self._random.choice(('.x', '.y', '.z', '[2][0]', '.z[1]', '[-1][2]'))}",
            lambda: f"{{'x': {self._any(depth)}, 'y': {self._any(1)}}}",
            lambda: f"{{**{self._all_of_it()}, 'x': {self._any(depth)}, 'i': {self._any(1)}}}",
            lambda: f"{{'x': {self._any(1)}, 'y': {{'z': {self._any(0)}}}}}",
            lambda: f"{{k: v for k, v in {self._all_of_it()}.items() if k not in ('i', 's', 'v')}}",
            lambda: f"{self._all_of_it()} if {self._bool(1)} else {self._all_of_it()} | {{'i': {self._int(1)}}}",
            lambda: f"dict(x={self._any(depth)}, y={self._any(0)})",
        )

    def _choice_with_none(self, depth: int) -> str:
        kind = self._random.choice((self._int, self._float, self._str, self._bool))
        return f"({kind(depth - 1)} if {self._bool(depth - 1)} else None)"

    def _any(self, depth: int) -> str:
        kinds = (self._int, self._int, self._float, self._str, self._bool, self._decimal, self._time)
        return self._random.choice(kinds)(depth)

    def _any_or_object(self, depth: int) -> str:
        return self._field(self._random.choice(_OBJECTS)) if self._random.random() < 0.1 else self._any(depth)

    def _choice(self, kind: Callable[[int], str], depth: int) -> str:
        return f"({kind(depth)} if {self._bool(depth)} else {kind(depth)})"

    def _int(self, depth: int) -> str:
        if depth <= 0:
            return self._one(
                lambda: self._field(self._random.choice("ijk")),
                lambda: self._field(self._random.choice("jkyz")),
                lambda: f"{self._field('r')}.x",
                lambda: str(self._random.choice(_SMALL)),
                lambda: str(self._random.choice(_INTS)),
            )
        less = depth - 1
        return self._one(
            lambda: f"({self._int(less)} {self._random.choice('+-*')} {self._int(less)})",
            lambda: f"({self._int(less)} {self._random.choice(('//', '%'))} {self._int(less)})",
            lambda: f"({self._int(less)} {self._random.choice('&|^')} {self._int(less)})",
            lambda: f"{self._random.choice(('-', 'abs', '~', '+'))}({self._int(less)})",
            lambda: f"len({self._str(less)})",
            lambda: f"{self._str(less)}.{self._random.choice(('count', 'find', 'rfind', 'index'))}({self._str(0)})",
            lambda: f"len({self._str(less)}.split('a'))",
            lambda: f"({self._int(0)} if (p := {self._str(less)}.split('a')) is None else {self._int(less)})",
            lambda: f"BY_TEXT.get({self._str(less)}, {self._int(0)})",
            lambda: f"BY_TEXT[{self._field('u')} or 'a']",
            lambda: f"int({self._any(less)})",
            lambda: f"{self._random.choice(('int', 'round'))}({self._any_decimal(min(less, 1))})",
            lambda: f"round({self._number(less)})",
            lambda: f"{self._random.choice(('round', 'math.floor', 'math.ceil', 'int'))}({self._decimal(less)})",
            lambda: f"{self._delta(less)}.{self._random.choice(('days', 'seconds', 'microseconds'))}",
            lambda: f"({self._delta(less)} // {self._delta(0)})",
            lambda: f"int({self._stamp()} * 1000)",
            lambda: f"{self._day(less)}.toordinal()",
            lambda: f"math.{self._random.choice(('floor', 'ceil', 'trunc'))}({self._number(less)})",
            lambda: f"math.{self._random.choice(('gcd', 'lcm'))}({self._int(less)}, {self._int(0)})",
            lambda: f"math.prod(({self._int(less)}, {self._int(0)}))",
            lambda: f"math.isqrt({self._int(less)})",
            lambda: f"{self._in_utc()}.{self._random.choice(_PARTS)}",
            lambda: f"({self._int(less)} ** {self._random.choice('0123')})",
            lambda: f"{self._field('t')}.{self._random.choice(_PARTS)}",
            lambda: f"{self._field('q')}.{self._random.choice(_PARTS[:5])}",
            lambda: f"{self._random.choice(('min', 'max'))}({self._int(less)}, {self._int(less)})",
            lambda: f"({self._bool(less)} + {self._int(less)})",
            lambda: f"({self._int(less)} or {self._int(less)})",
            lambda: f"({self._int(0)} if (m := {self._field('i')}) is None else m + {self._int(less)})",
            lambda: self._choice(self._int, less),
            lambda: f"divmod({self._int(less)}, {self._int(less)})[{self._random.choice('01')}]",
            lambda: f"sorted([{self._int(less)}, {self._int(0)}], key=abs)[{self._random.choice('01')}]",
            lambda: f"max(({self._int(less)}, {self._int(0)}), key=lambda x: -x)",
            lambda: f"({self._int(less)}, {self._int(0)}).{self._random.choice(('index', 'count'))}({self._int(0)})",
            lambda: f"sum(x for x in ({self._int(0)}, {self._int(0)}) if x > 0)",
        )

    def _float(self, depth: int) -> str:
        if depth <= 0:
            return self._one(
                lambda: self._field(self._random.choice("fg")),
                lambda: f"{self._field('r')}.z[0]",
                lambda: self._random.choice(("0.0", "-0.0", "1.5", "0.1", "1e308", "3.0")),
            )
        less = depth - 1
        return self._one(
            lambda: f"({self._number(less)} / {self._number(less)})",
            lambda: f"({self._float(less)} {self._random.choice('+-*')} {self._number(less)})",
            lambda: f"({self._number(less)} {self._random.choice('+-*')} {self._float(less)})",
            lambda: f"{self._random.choice(('-', 'abs', '+'))}({self._float(less)})",
            lambda: f"float({self._any(less)})",
            lambda: f"float({self._any_decimal(min(less, 1))})",
            lambda: f"{self._delta(less)}.total_seconds()",
            lambda: f"PAIRS.get({self._int(less)}, ('', {self._float(0)}))[1]",
            lambda: f"({self._delta(less)} / {self._delta(0)})",
            self._stamp,
            lambda: f"math.{self._random.choice(_MATH)}({self._number(less)})",
            lambda: f"math.modf({self._number(less)})[{self._random.choice('01')}]",
            lambda: f"math.fsum([{self._number(less)}, {self._float(0)}, 0.1])",
            lambda: f"({self._float(less)} * math.{self._random.choice(('pi', 'e', 'tau', 'inf', 'nan'))})",
            lambda: f"{self._in_utc()}.timestamp()",
            lambda: (
                f"math.{self._random.choice(('pow', 'atan2', 'hypot', 'log', 'copysign', 'remainder'))}"
                f"({self._number(0)}, {self._number(0)})"
            ),
            lambda: f"round({self._number(less)}, {self._random.choice((-1, 0, 1, 2))})",
            lambda: f"({self._number(less)} ** {self._random.choice(('2', '0.5', '-1', '2.0'))})",
            lambda: f"{self._random.choice(('min', 'max'))}({self._float(less)}, {self._float(less)})",
            lambda: f"sorted(({self._float(less)}, {self._float(0)}, {self._float(0)}))[1]",
            lambda: self._choice(self._float, less),
        )

    def _stamp(self) -> str:
        """Seconds since the epoch, by the clock of this machine or in UTC."""
        return f"{self._moment(0)}{self._random.choice(('', '.replace(tzinfo=timezone.utc)'))}.timestamp()"

    def _number(self, depth: int) -> str:
        return self._random.choice((self._int, self._float))(depth)

    def _decimal(self, depth: int) -> str:
        less = depth - 1
        return self._one(
            lambda: self._field("d"),
            lambda: self._field("x"),
            lambda: f"{self._field('r')}.z[1]",
            lambda: f"(D * {self._int(min(less, 0))})",
            lambda: f"{self._random.choice(('-', '+', 'abs'))}({self._decimal(less) if depth > 0 else 'D'})",
            lambda: f"round({self._decimal(less) if depth > 0 else 'D'}, {self._random.choice('0123')})",
            lambda: f"sum([{self._field('d')}, {self._random.choice((self._field('j'), 'D', '1'))}])",
            lambda: f"Decimal({self._field(self._random.choice('ijkbd'))})",
            lambda: f"({self._field('d')} * {self._field('j')} + 1)",
            lambda: f"({self._field('d')} {self._random.choice(('//', '%'))} {self._field('d')})",
            lambda: (
                f"({self._field('x')} {self._random.choice(('//', '%'))} {self._field(self._random.choice('djx'))})"
            ),
            lambda: f"({self._int(0)} {self._random.choice(('//', '%'))} {self._field('d')})",
            lambda: f"({self._field('d')} {self._random.choice(('//', '%'))} {self._random.choice('37')})",
            lambda: f"round({self._any_decimal(min(less, 1))}, {self._random.choice('0123')})",
            lambda: f"{self._any_decimal(min(less, 1))}.quantize(Decimal('0.01'){self._rounding()})",
            lambda: (
                f"{self._field('d')}.quantize(Decimal({self._random.choice(('0.1', '1', '1E-9'))!r}){self._rounding()})"
            ),
            lambda: f"({self._field('d')} {self._random.choice('+-*')} {self._int(0)})",
            lambda: f"(Decimal('2.5') {self._random.choice('+-*')} {self._field('d')})",
            lambda: f"({self._field('d')} * {self._field('d')} * Decimal('1.000000'))",
            lambda: f"{self._random.choice(('min', 'max'))}({self._field('d')}, {self._int(0)} * D)",
        )

    def _any_decimal(self, depth: int) -> str:
        """A decimal of any number of digits, which columns do not return as it is."""
        less = depth - 1
        if depth <= 0:
            return self._one(
                lambda: f"({self._decimal(0)} / {self._random.choice((self._decimal, self._int))(0)})",
                lambda: f"({self._int(0)} / {self._decimal(0)})",
                lambda: f"Decimal({self._random.choice(_NUMERALS)!r} if {self._bool(0)} else str({self._int(0)}))",
                lambda: f"({self._field('x')} * {self._field('x')})",
                lambda: f"({self._field('x')} // Decimal('1E-9'))",
            )
        return self._one(
            lambda: f"({self._any_decimal(less)} {self._random.choice(_OF_DECIMALS)} {self._decimal(0)})",
            lambda: f"({self._decimal(0)} {self._random.choice(_OF_DECIMALS)} {self._any_decimal(less)})",
            lambda: f"({self._int(0)} {self._random.choice(_OF_DECIMALS)} {self._any_decimal(less)})",
            lambda: f"{self._random.choice(('-', '+', 'abs'))}({self._any_decimal(less)})",
            lambda: f"{self._random.choice(('min', 'max'))}({self._any_decimal(less)}, {self._decimal(0)})",
            lambda: f"sum([{self._any_decimal(less)}, {self._decimal(0)}, 1])",
            lambda: self._choice(self._any_decimal, less),
        )

    def _decimal_or_number(self, depth: int) -> str:
        """A number to compare a decimal number with: near to it in many cases, or a constant."""
        return self._one(
            lambda: self._decimal(depth),
            lambda: self._number(depth),
            lambda: f"({self._field('d')} + {self._random.choice(('0', '1', 'Decimal(1).scaleb(-9)'))})",
            lambda: f"Decimal({self._random.choice(('1', '1.250000000001', '-0.01', '1e3', '0E-25', 'NaN'))!r})",
            lambda: self._random.choice(("1.25", "0.1", "-1.25", "1e300", "-1e-300", "-0.01", "3.1", "-0.0")),
            lambda: f"float('{self._random.choice(('nan', 'inf', '-inf', '1e30'))}')",
        )

    def _rounding(self) -> str:
        return self._random.choice(("", ", rounding=ROUND_HALF_UP", ", 'ROUND_DOWN'"))

    def _time(self, depth: int) -> str:
        return self._one(
            lambda: self._moment(depth),
            lambda: self._day(depth),
            lambda: self._delta(depth),
            lambda: self._delta(depth),
        )

    def _moment(self, depth: int) -> str:
        """A date and time."""
        if depth <= 0:
            return self._random.choice((self._field("t"), self._field("t"), "T", "datetime.datetime(1970, 1, 1)"))
        parts = self._random.choice(("minute=0, second=0", "microsecond=0", "day=29", "hour=24"))
        return self._one(
            lambda: f"{self._in_utc()}.replace(tzinfo=None)",
            lambda: f"datetime.datetime.fromtimestamp({self._number(0)})",
            lambda: f"datetime.datetime({self._moment(0)}.year, {self._int(0)}, 1, minute={self._int(0)})",
            lambda: f"({self._moment(0)} {self._random.choice('+-')} {self._delta(depth - 1)})",
            lambda: f"({self._delta(depth - 1)} + {self._moment(0)})",
            lambda: f"{self._moment(0)}.replace({parts})",
            lambda: self._choice(self._moment, depth - 1),
        )

    def _day(self, depth: int) -> str:
        if depth <= 0:
            return self._random.choice((self._field("q"), f"{self._field('t')}.date()", "datetime.date(2000, 2, 29)"))
        return self._one(
            lambda: f"({self._day(0)} {self._random.choice('+-')} {self._delta(depth - 1)})",
            lambda: self._day(0),
            lambda: f"{self._day(0)}.replace(day={self._random.choice((1, 31))})",
            lambda: f"{self._in_utc()}.date()",
            lambda: f"datetime.date({self._day(0)}.year, {self._int(0)}, 28)",
        )

    def _in_utc(self) -> str:
        """A date and time with a zone."""
        return self._one(
            lambda: f"datetime.datetime.fromtimestamp({self._number(0)}, tz=timezone.utc)",
            lambda: f"datetime.datetime.fromtimestamp({self._field('k')} / {self._random.choice('37')}, timezone.utc)",
            lambda: f"{self._moment(0)}.replace(tzinfo=timezone.utc)",
            lambda: f"({self._moment(0)}.replace(tzinfo=timezone.utc, microsecond=0) - {self._delta(0)})",
        )

    def _delta(self, depth: int) -> str:
        """A difference of times."""
        if depth <= 0:
            return self._one(
                lambda: f"({self._field('t')} - {self._moment(0)})",
                lambda: f"({self._field('q')} - {self._day(0)})",
                lambda: f"timedelta({self._random.choice(_UNITS)}={self._int(0)})",
                lambda: self._random.choice(("H", "timedelta(0)", "timedelta(-1, 3, 7)", "timedelta(milliseconds=1)")),
            )
        less = depth - 1
        return self._one(
            lambda: f"({self._delta(less)} {self._random.choice('+-%')} {self._delta(less)})",
            lambda: f"({self._delta(less)} * {self._int(less)})",
            lambda: f"({self._int(0)} * {self._delta(less)})",
            lambda: f"({self._delta(less)} // {self._int(0)})",
            lambda: f"({self._delta(less)} / {self._number(0)})",
            lambda: f"({self._delta(less)} * {self._float(0)})",
            lambda: f"timedelta({self._int(less)}, {self._random.choice(_UNITS[2:])}={self._number(0)})",
            lambda: f"({self._in_utc()} - {self._in_utc()})",
            lambda: f"{self._random.choice(('-', 'abs', '+'))}({self._delta(less)})",
            lambda: f"({self._moment(less)} - {self._moment(0)})",
            lambda: f"max({self._delta(less)}, {self._delta(0)})",
        )

    def _str(self, depth: int) -> str:
        if depth <= 0:
            return self._one(
                lambda: self._field(self._random.choice("su")),
                lambda: f"{self._field('r')}.y",
                lambda: repr(self._random.choice(_TEXTS)),
            )
        less = depth - 1
        method = self._random.choice(("upper", "lower", "strip", "lstrip", "rstrip"))
        return self._one(
            lambda: f"({self._str(less)} + {self._str(less)})",
            lambda: f"{self._str(less)}.{method}()",
            lambda: f"{self._str(less)}.replace('a', {self._random.choice(_TEXTS)!r})",
            lambda: f"BY_INT.get({self._int(less)}, {self._str(0)})",
            lambda: f"PAIRS[{self._int(less)} % 2][0]",
            lambda: self._matched(less),
            lambda: f"{self._pattern()}.sub({self._random.choice(('', '<x>', 'n'))!r}, {self._str(less)})",
            lambda: f"str({self._any(less)})",
            lambda: f"str({self._any_decimal(min(less, 1))})",
            lambda: self._formatted(less),
            lambda: f"{self._day(less)}.isoformat()",
            lambda: f"{self._in_utc()}.{self._random.choice(('isoformat()', 'strftime({!r})'.format('%H %z %Z')))}",
            lambda: f"str({self._in_utc()})",
            lambda: f"{self._moment(less)}.{self._random.choice(('isoformat()', 'strftime({!r})'.format('%Y-%m')))}",
            lambda: self._part_of_text(less),
            lambda: f"{self._random.choice(_SEPARATORS)!r}.join(({self._str(less)}, {self._str(0)}, {self._str(0)}))",
            lambda: f"({self._str(less)} or {self._str(less)})",
            lambda: f"{self._random.choice(('min', 'max'))}({self._str(less)}, {self._str(less)})",
            lambda: f"sorted([{self._str(less)}, {self._str(0)}])[0]",
            lambda: self._choice(self._str, less),
        )

    def _pattern(self) -> str:
        return f"P{self._random.randrange(len(_PATTERNS))}"

    def _matched(self, depth: int) -> str:
        """A part of a match of a regular expression."""
        number, how = self._random.randrange(len(_PATTERNS)), self._random.choice(("search", "match", "fullmatch"))
        match = f"P{number}.{how}({self._str(depth)})"
        group = self._random.randint(0, re.compile(_PATTERNS[number]).groups)
        return self._one(
            lambda: f"(m[{group}] or 'none' if (m := {match}) else {self._str(0)})",
            lambda: f"({self._str(0)} if (m := {match}) is None else m.group({group}) or '')",
        )

    def _formatted(self, depth: int) -> str:
        """A text that values are put into, in one of the ways of Python."""
        spec = self._random.choice(("", "", "", ":>7", ":05d", ":.2f", ":,", ":x", "!s", "!s:<4", ":%Y-%m", ":e"))
        values = self._any_or_object(depth), self._any_or_object(0)
        if any(mark in value for value in values for mark in ('"', "\\")):  # which are not allowed in an f-string
            values = self._field(self._random.choice(_NAMES)), self._int(0)
        return self._one(
            lambda: f'f"{{{values[0]}{spec}}}"',
            lambda: f'f"<{{{values[0]}}}-{{{values[1]}{spec}}}>%"',
            lambda: f"('%s-%s' % ({values[0]}, {values[1]}))",
            lambda: f"('%{self._random.choice(('d', '5.1f', 'x', 's', '-4s', 'e', 'c'))}|' % {self._number(depth)})",
            lambda: f"'{{0}}_{{{'1' + spec.replace('!s', '')}}}'.format({values[0]}, {values[1]})",
            lambda: f"format({self._number(depth)}, {spec.replace('!s', '').lstrip(':')!r})",
        )

    def _part_of_text(self, depth: int) -> str:
        """Some part of a text, or what a method makes of it."""
        text, separator = self._str(depth), repr(self._random.choice(_SEPARATORS[1:]))
        number, other = self._random.choice((-2, -1, 0, 0, 1, 2, 40)), self._random.choice((-3, -1, 0, 1, 2, 5, "", ""))
        return self._one(
            lambda: f"{text}.split({separator})[{self._random.choice((0, 0, 0, 1, -1))}]",
            lambda: f"{text}.split({separator}, 1)[{self._random.choice((0, -1))}]",
            lambda: f"{text}.rsplit({separator}, maxsplit=1)[-1]",
            lambda: f"{text}.split()[{self._random.choice((0, -1))}]",
            lambda: f"{text}.partition({separator})[{self._random.choice('012')}]",
            lambda: f"{text}[{number}]",
            lambda: f"{text}[{number}:{other}]",
            lambda: f"{text}[{other}:]",
            lambda: f"{text}[::{self._random.choice((-1, 2))}]",
            lambda: f"{text}.{self._random.choice(('title', 'capitalize', 'casefold', 'swapcase'))}()",
            lambda: f"{text}.{self._random.choice(('zfill', 'ljust', 'rjust', 'center'))}({abs(number)})",
            lambda: f"{text}.{self._random.choice(('strip', 'lstrip', 'rstrip', 'removeprefix'))}({separator})",
            lambda: f"{text}.replace({self._str(0)}, {separator}, {number})",
        )

    def _bool(self, depth: int) -> str:
        if depth <= 0:
            return self._one(
                lambda: self._field("b"),
                lambda: f"{self._field('r')}.z[2]",
                lambda: f"({self._int(0)} {self._compare()} {self._int(0)})",
                lambda: f"({self._field('u')} == {self._random.choice(_TEXTS)!r})",
            )
        less = depth - 1
        return self._one(
            lambda: f"({self._number(less)} {self._compare()} {self._number(less)})",
            lambda: f"({self._str(less)} {self._compare()} {self._str(less)})",
            lambda: f"({self._decimal(less)} {self._compare()} {self._decimal_or_number(less)})",
            lambda: f"({self._decimal_or_number(less)} {self._compare()} {self._decimal(less)})",
            lambda: f"({self._any_decimal(min(less, 1))} {self._compare()} {self._decimal_or_number(less)})",
            lambda: f"({self._bool(less)} {self._random.choice(_OF_TRUTHS)} {self._bool(less)})",
            lambda: f"(not {self._bool(less)})",
            lambda: f"({self._random.choice(_TEXTS)!r} in {self._str(less)})",
            lambda: f"({self._int(less)} in (1, 2, 7))",
            lambda: f"({self._field('t')} {self._compare()} {self._random.choice(('T', self._field('t')))})",
            lambda: f"({self._field('q')} {self._compare()} {self._field('t')}.date())",
            lambda: f"({self._delta(less)} {self._compare()} {self._delta(0)})",
            lambda: f"({self._moment(less)} {self._compare()} {self._moment(0)})",
            lambda: f"({self._in_utc()} {self._compare()} {self._random.choice((self._in_utc(), 'U'))})",
            lambda: f"math.isclose({self._number(less)}, {self._number(0)}, abs_tol={self._number(0)})",
            lambda: f"math.{self._random.choice(('isnan', 'isinf', 'isfinite'))}({self._number(less)})",
            lambda: f"({self._str(less)} {self._random.choice(('in', 'not in'))} {{'a', 'ab', 'ß'}})",
            lambda: f"({self._number(less)} in {self._random.choice('SV')})",
            lambda: f"({self._decimal(less)} in {self._random.choice(('V', '(0, 1.25, None)'))})",
            lambda: f"({self._random.choice((self._str, self._bool))(less)} {self._random.choice(('in', 'not in'))} V)",
            lambda: f"({self._random.choice((self._moment, self._day, self._delta))(less)} in V)",
            lambda: f"({self._field(self._random.choice('ijkfgsudbtq'))} in V)",
            lambda: f"(({self._int(less)}, {self._str(0)}) in {self._random.choice(('W', _TUPLES))})",
            lambda: (
                f"({self._int(less)} {self._random.choice(('in', 'not in'))} {self._random.choice(('BY_INT', 'LIST'))})"
            ),
            lambda: f"({self._str(less)} in {self._random.choice(('BY_TEXT', 'TEXTS'))})",
            lambda: f"bool({self._pattern()}.search({self._str(less)}))",
            lambda: f"({self._pattern()}.fullmatch({self._str(less)}) is None)",
            lambda: f"bool(re.match({self._random.choice(_PATTERNS)!r}, {self._str(less)}, re.I))",
            lambda: f"{self._str(less)}.{self._random.choice(('startswith', 'endswith'))}('a')",
            lambda: f"{self._str(less)}.{self._random.choice(('startswith', 'endswith'))}({self._str(0)})",
            lambda: f"{self._str(less)}.startswith(('a', '', 'ß')[{self._random.choice((':', ':1'))}])",
            lambda: f"({self._str(0)} in {self._str(less)})",
            lambda: f"{self._str(less)}.{self._random.choice(_ASKS)}()",
            lambda: f"({self._field(self._random.choice(_NAMES))} is {self._random.choice(('', 'not '))}None)",
            lambda: f"({self._int(less)} <= {self._number(less)} < {self._int(less)})",
            lambda: f"bool({self._any(less)})",
            lambda: f"({self._number(less)} in ({self._number(0)}, {self._number(0)}))",
            lambda: f"(({self._int(less)}, {self._str(0)}) {self._compare()} ({self._int(0)}, {self._str(0)}))",
            lambda: f"{self._random.choice(('any', 'all'))}(x > 0 for x in ({self._number(0)}, {self._int(0)}))",
        )

    def _compare(self) -> str:
        return self._random.choice(("<", "<=", ">", ">=", "==", "!="))


def shown(value: Any) -> Any:
    """A value with its types, so that 1, 1.0 and True differ, and so do 0.0 and -0.0, while all NaN are one."""
    match value:
        case tuple():
            return "tuple", *map(shown, value)
        case dict():
            return "dict", tuple(value), *map(shown, value.values())
        case Row():
            return "Row", tuple(value.get_field_names() or ()), *map(shown, value)
    return type(value).__name__, repr(value)


def difference(case: Case) -> str | None:
    """How what a trace gives differs from what the function gives; None if it does not.

    The function is taken for that of a map, a filter and a flat_map.

    Raises:
        NotTraceable: if the function stays Python, for a map.
        Guard: if the batch is handed back to the function, for a map.
    """
    values = case.type_info.to_arrow(case.values)
    columns = Columns(case.type_info, values, None, pa.array(range(len(case.values)), pa.int64()))
    given = case.type_info.from_arrow(values)
    for found in (_of_filter(case, columns, given), _of_flat_map(case, columns, given)):
        if found is not None:
            return found
    column, kind = mapped(case.function, columns, None)
    return _compared(case, given, kind.from_arrow(column), case.function)


def difference_of_rows(cases: tuple[Case, Case]) -> str | None:
    """As `difference`, for a function that gives rows whose fields have no names: a declared type has the names."""
    of_rows, of_tuples = cases
    values = of_rows.type_info.to_arrow(of_rows.values)
    columns = Columns(of_rows.type_info, values, None, None)
    first, inside = mapped(of_tuples.function, columns, None)[1].types
    declared = Types.ROW_NAMED(["x", "r"], [first, Types.ROW(inside.types)])
    column, kind = mapped(of_rows.function, columns, declared)
    given = of_rows.type_info.from_arrow(values)
    return _compared(of_rows, given, kind.from_arrow(column), lambda e: declared.as_declared([of_rows.function(e)])[0])


def _of_filter(case: Case, columns: Columns, given: list[Any]) -> str | None:
    try:
        kept = filtered(case.function, columns).to_pylist()
    except (NotTraceable, Guard):
        return None
    return _compared(case, given, kept, lambda value: bool(case.function(value)))


def _of_flat_map(case: Case, columns: Columns, given: list[Any]) -> str | None:
    try:
        found = flat_mapped(case.function, columns, None)
    except (NotTraceable, Guard):
        return None
    results: list[list[Any]] = [[] for _ in given]
    for place, result in zip(found.sequence.to_pylist(), found.type_info.from_arrow(found.values), strict=True):
        results[place].append(result)
    return _compared(case, given, list(map(tuple, results)), lambda value: tuple(case.function(value) or ()))


def aggregate_difference(case: AggregateCase) -> str | None:
    """How an aggregate function differs from its parts, put together, and from its columns; None if it does not.

    Raises:
        NotTraceable: if its parts cannot be put together.
        Guard: if these elements are handed to the function.
    """
    function = case.function
    found = aggregate_fold_of(function, case.type_info)
    values = case.type_info.to_arrow(case.values)
    given = case.type_info.from_arrow(values)
    times, numbers = pa.array([0] * len(given)), pa.array(range(len(given)))
    columns = Columns(case.type_info, values, times, numbers)

    def of(elements: list[Any]) -> Any:
        return functools.reduce(lambda accumulator, e: function.add(e, accumulator), elements, found.start)

    try:
        expected = of(given)
    except Exception as error:
        expected = error
    how = how_to_put_together(found)
    if not isinstance(expected, Exception):
        for cut in (1, len(given) // 2):
            got = Accumulated(of(given[cut:]), how).after(of(given[:cut]))
            if shown(got) != shown(expected):
                return f"{case.source}\n  of {given!r}\n  gives {expected!r}, and its parts {got!r}"
    made = accumulated(function.add, columns, found.start, found.type_info)
    (got,) = reduced_columns(found.fold, RegularPanes(10, 10), None, columns, made).values
    if isinstance(expected, Exception) or shown(got) != shown(expected):
        return f"{case.source}\n  of {given!r}\n  gives {expected!r}, and its columns {got!r}"
    return None


def process_difference(case: Case) -> str | None:
    """How the outputs of a process function on columns differ from those of its calls; None if they do not.

    Raises:
        NotTraceable: if the function stays Python.
        Guard: if these elements are handed to the function.
    """
    step = Process("process", case.function, None)
    values = case.type_info.to_arrow(case.values)
    times = [None if place % 5 == 4 and len(case.source) % 2 else place for place in range(len(values))]
    columns = Columns(case.type_info, values, pa.array(times, pa.int64()), pa.array(range(7, 7 + len(values))))
    found = step.on_columns(columns)
    if found is None:
        raise NotTraceable
    try:
        expected = step.outputs(Elements(columns=columns), Moment(), Metrics())
    except Exception as error:
        return f"{case.source}\n  raises {error!r}, and its trace gives {found!r}"
    for tag in {*expected, *found}:
        ours, theirs = found.get(tag, Elements()), expected.get(tag, Elements())
        ones, others = ((e.timestamps, e.sequence, [*map(shown, e.values)]) for e in (ours, theirs))
        if ones != others:
            return f"{case.source}\n  of {case.values!r}\n  gives {theirs!r} for {tag}, and its trace {ours!r}"
    return None


def _compared(case: Case, given: list[Any], got: list[Any], function: Callable[[Any], Any]) -> str | None:
    for value, found in zip(given, got, strict=True):
        try:
            expected = function(value)
        except Exception as error:
            return f"{case.source}\n  of {value!r}\n  raises {error!r}, and its trace gives {found!r}"
        if shown(expected) != shown(found):
            return f"{case.source}\n  of {value!r}\n  gives {expected!r}, and its trace {found!r}"
    return None
