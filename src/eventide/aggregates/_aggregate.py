"""Description of an aggregate: a function, a column, options, and a name for the result; and the type of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from eventide.common.typeinfo import DecimalTypeInfo, TypeInformation, Types
from eventide.common.typeinfo.basic import MOST_DIGITS
from eventide.errors import ProgramError

INTEGERS = (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG())
FLOATS = (Types.FLOAT(), Types.DOUBLE())
DECIMALS = (Types.BIG_INT(), Types.BIG_DEC())
NUMBERS = frozenset({*INTEGERS, *FLOATS, *DECIMALS})
SINGLE_VALUES = NUMBERS | {
    Types.STRING(),
    Types.CHAR(),
    Types.BOOLEAN(),
    Types.SQL_DATE(),
    Types.SQL_TIME(),
    Types.SQL_TIMESTAMP(),
    Types.INSTANT(),
    Types.PRIMITIVE_ARRAY(Types.BYTE()),
}
# The types that an aggregate takes, and from the type of its column to that of its result; None is a refusal.
Rule = Callable[[TypeInformation], TypeInformation | None]
_NUMBERS_ONLY = frozenset({"sum_", "mean", "variance", "stddev", "var_pop", "stddev_pop", "approx_quantiles"})


@dataclass(frozen=True, repr=False)
class ColumnAggregate:
    """One aggregate of a column. Made with the functions of `eventide.aggregates`; a value that compares and pickles.

    Its `repr` is the call that makes it, with all options; it is the same in every process and release, because it
    is part of what a checkpoint remembers of a program.

    Attributes:
        function: The name of the function that made it, such as ``sum_``.
        column: The name of the column, or None for ``count()``.
        default_name: The name of the result unless `alias` gives another: Spark's name, such as ``sum(amount)``.
        options: The other arguments, as pairs of name and value.
        name: The name given with `alias`, or None.

    >>> from eventide.aggregates import sum_
    >>> total = sum_("amount").alias("total")
    >>> total
    sum_('amount').alias('total')
    >>> total.output_name, sum_("amount").output_name
    ('total', 'sum(amount)')
    """

    function: str
    column: str | None
    default_name: str
    options: tuple[tuple[str, Any], ...] = ()
    name: str | None = None

    @property
    def output_name(self) -> str:
        """The name of the result's column."""
        return self.default_name if self.name is None else self.name

    def alias(self, name: str) -> Self:
        """Return the same aggregate with another name for its result.

        Raises:
            ProgramError: The name is empty, or no text.

        >>> from eventide.aggregates import count
        >>> count().alias("orders").output_name
        'orders'
        """
        if not isinstance(name, str) or not name:
            raise ProgramError(f"{self!r}.alias: expected a name for the result, got {name!r}")
        return replace(self, name=name)

    def result_type(self, input_type: TypeInformation | None = None) -> TypeInformation:
        """Return the type of the result, given the type of the column; ``count()`` needs none.

        Raises:
            ProgramError: The aggregate cannot take a column of this type; the message names both.

        >>> from eventide.aggregates import collect_list, mean, sum_
        >>> from eventide.common import Types
        >>> sum_("n").result_type(Types.INT()), mean("n").result_type(Types.INT())
        (LONG, DOUBLE)
        >>> collect_list("n").result_type(Types.INT())
        LIST(INT)
        """
        if self.column is None:
            return Types.LONG()
        if not isinstance(input_type, TypeInformation):
            raise ProgramError(
                f"{self!r}: expected the type of column {self.column!r} as a TypeInformation, got {input_type!r}"
            )
        result = _RULES[self.function](input_type)
        if result is not None:
            return result
        if self.function in _NUMBERS_ONLY:
            takes, advice = "numbers only", "convert it to a number in a map before the window"
        else:
            takes = "numbers, text, bytes, truth values, dates and times only"
            advice = "take one of its fields, or make a text of it, in a map before the window"
        raise ProgramError(
            f"{self!r}: column {self.column!r} is of type {input_type}, but {self.function} takes {takes}; {advice}"
        )

    def option(self, name: str) -> Any:
        """Return the value of one option, such as ``ignore_nulls`` of `first`."""
        return dict(self.options)[name]

    def __repr__(self) -> str:
        arguments = [] if self.column is None else [repr(self.column)]
        arguments += [f"{name}={value!r}" for name, value in self.options]
        alias = "" if self.name is None else f".alias({self.name!r})"
        return f"{self.function}({', '.join(arguments)}){alias}"


def column_aggregate(function: str, column: str, default_name: str, **options: Any) -> ColumnAggregate:
    """Make an aggregate of one column.

    Raises:
        ProgramError: The column is not given by its name.
    """
    if not isinstance(column, str) or not column:
        raise ProgramError(f"{function}: expected the name of a column, got {column!r}")
    return ColumnAggregate(function, column, default_name, tuple(options.items()))


def _among(types: frozenset[TypeInformation], result: Callable[[TypeInformation], TypeInformation]) -> Rule:
    """Decimals of a fixed size are numbers, and among all types."""
    return lambda column_type: (
        result(column_type) if column_type in types or isinstance(column_type, DecimalTypeInfo) else None
    )


def _sum(column_type: TypeInformation) -> TypeInformation:
    if isinstance(column_type, DecimalTypeInfo):
        return Types.BIG_DEC(MOST_DIGITS, column_type.scale)
    if column_type in DECIMALS:
        return column_type
    return Types.LONG() if column_type in INTEGERS else Types.DOUBLE()


def _mean(column_type: TypeInformation) -> TypeInformation:
    is_decimal = column_type in DECIMALS or isinstance(column_type, DecimalTypeInfo)
    return Types.BIG_DEC() if is_decimal else Types.DOUBLE()


def _top(column_type: TypeInformation) -> TypeInformation:
    return Types.LIST(Types.ROW_NAMED(["value", "count"], [column_type, Types.LONG()]))


_DOUBLE_OF_NUMBERS = _among(NUMBERS, lambda _: Types.DOUBLE())
_SAME_OF_SINGLE_VALUES = _among(SINGLE_VALUES, lambda column_type: column_type)
_LONG_OF_SINGLE_VALUES = _among(SINGLE_VALUES, lambda _: Types.LONG())
_RULES: Mapping[str, Rule] = {
    "count": lambda _: Types.LONG(),
    "sum_": _among(NUMBERS, _sum),
    "min_": _SAME_OF_SINGLE_VALUES,
    "max_": _SAME_OF_SINGLE_VALUES,
    "mean": _among(NUMBERS, _mean),
    "variance": _DOUBLE_OF_NUMBERS,
    "stddev": _DOUBLE_OF_NUMBERS,
    "var_pop": _DOUBLE_OF_NUMBERS,
    "stddev_pop": _DOUBLE_OF_NUMBERS,
    "first": lambda column_type: column_type,
    "last": lambda column_type: column_type,
    "collect_list": Types.LIST,
    "collect_set": _among(SINGLE_VALUES, Types.LIST),
    "count_distinct": _LONG_OF_SINGLE_VALUES,
    "approx_count_distinct": _LONG_OF_SINGLE_VALUES,
    "approx_quantiles": _among(NUMBERS, lambda _: Types.LIST(Types.DOUBLE())),
    "approx_top_k": _among(SINGLE_VALUES, _top),
}
