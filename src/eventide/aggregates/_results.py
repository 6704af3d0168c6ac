"""Which types an aggregate takes, and which type its result has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eventide.common.typeinfo import DecimalTypeInfo, TypeInformation, Types
from eventide.common.typeinfo.decimal import MOST_DIGITS
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
_NUMBERS_ONLY = frozenset({"sum_", "mean", "variance", "stddev", "var_pop", "stddev_pop", "approx_quantiles"})


def result_type(
    function: str, aggregate: str, column: str | None, input_type: TypeInformation | None
) -> TypeInformation:
    """Return the type of a function's result.

    Args:
        function: Which of the functions of `eventide.aggregates`.
        aggregate: The whole aggregate as text, for a message.
        column: The name of its column, or None for ``count()``.
        input_type: The type of the column; without a column, it is not looked at.

    Raises:
        ProgramError: The function does not take such a column.
    """
    if column is None:
        return Types.LONG()
    if not isinstance(input_type, TypeInformation):
        message = f"{aggregate}: expected the type of column {column!r} as a TypeInformation, got {input_type!r}"
        raise ProgramError(message)
    result = _RULES[function](input_type)
    if result is not None:
        return result
    if function in _NUMBERS_ONLY:
        takes, advice = "numbers only", "convert it to a number in a map before the window"
    else:
        takes = "numbers, text, bytes, truth values, dates and times only"
        advice = "take one of its fields, or make a text of it, in a map before the window"
    message = f"{aggregate}: column {column!r} is of type {input_type}, but {function} takes {takes}; {advice}"
    raise ProgramError(message)
