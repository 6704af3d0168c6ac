"""Aggregates of columns, for ``window(...).aggregate(count(), sum_("amount").alias("total"), ...)``. Not in PyFlink.

They are values that describe a computation; nulls, overflow and NaN are treated as Spark 4 treats them. A column is
given by its name: anything else raises a `ProgramError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Self

from eventide.common.typeinfo import DecimalTypeInfo, TypeInformation, Types
from eventide.common.typeinfo.basic import MOST_DIGITS
from eventide.errors import ProgramError, getting

__all__ = [
    "ColumnAggregate",
    "count",
    "sum_",
    "min_",
    "max_",
    "mean",
    "variance",
    "stddev",
    "var_pop",
    "stddev_pop",
    "first",
    "last",
    "collect_list",
    "collect_set",
    "count_distinct",
    "approx_count_distinct",
    "approx_quantiles",
    "approx_top_k",
]

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
            ProgramError: The name is empty, or not text.

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


def column_aggregate(function: str, column: str, default_name: str, **options: object) -> ColumnAggregate:
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


def check_sketches_are_installed(function: str) -> None:
    """Refuse an approximate aggregate where the library that computes it is missing.

    Raises:
        ProgramError: saying what to install.

    >>> check_sketches_are_installed("approx_top_k")
    """
    if find_spec("datasketches") is None:
        raise ProgramError(
            f"{function} needs the library datasketches, which is not installed here: "
            f"{getting('sketches')}, also where Spark's workers run"
        )


def count(column: str | None = None) -> ColumnAggregate:
    """Count the rows, or those in which a column is not null. LONG; 0 without rows.

    >>> count().output_name, count("user").output_name
    ('count', 'count(user)')
    """
    if column is None:
        return ColumnAggregate("count", None, "count")
    return column_aggregate("count", column, f"count({column})")


def sum_(column: str) -> ColumnAggregate:
    """Add a column up; nulls are skipped, and a sum without values is null.

    The sum of BYTE, SHORT, INT and LONG is a LONG, of FLOAT and DOUBLE a DOUBLE, of BIG_INT a BIG_INT, of BIG_DEC a
    BIG_DEC. A sum that does not fit LONG, BIG_INT or BIG_DEC ends the job with a `DataError`, as in Spark 4.

    >>> sum_("amount").alias("total")
    sum_('amount').alias('total')
    """
    return column_aggregate("sum_", column, f"sum({column})")


def min_(column: str) -> ColumnAggregate:
    """Find the smallest value that is not null; its type is the column's.

    Text and bytes are ordered by their bytes (UTF-8), false is less than true, and NaN is larger than any number.

    >>> from eventide.common import Types
    >>> min_("day").result_type(Types.SQL_DATE())
    SQL_DATE
    """
    return column_aggregate("min_", column, f"min({column})")


def max_(column: str) -> ColumnAggregate:
    """Find the largest value that is not null, in the order of `min_`; its type is the column's.

    >>> max_("price").output_name
    'max(price)'
    """
    return column_aggregate("max_", column, f"max({column})")


def mean(column: str) -> ColumnAggregate:
    """Divide the sum by the number of values; nulls are skipped, and a mean without values is null.

    It is a DOUBLE; of BIG_INT and BIG_DEC it is a BIG_DEC, rounded half up to its 18 digits, and a sum that does not
    fit the column's type ends the job with a `DataError`. Spark's name for it is ``avg``.

    >>> mean("delay").output_name
    'avg(delay)'
    """
    return column_aggregate("mean", column, f"avg({column})")


def variance(column: str) -> ColumnAggregate:
    """Compute the variance of a sample, a DOUBLE: divided by one less than the number of values; null for one value.

    >>> variance("delay").output_name
    'variance(delay)'
    """
    return column_aggregate("variance", column, f"variance({column})")


def stddev(column: str) -> ColumnAggregate:
    """Compute the standard deviation of a sample, a DOUBLE: the square root of `variance`.

    >>> stddev("delay").output_name
    'stddev(delay)'
    """
    return column_aggregate("stddev", column, f"stddev({column})")


def var_pop(column: str) -> ColumnAggregate:
    """Compute the variance of a population, a DOUBLE: divided by the number of values; 0 for one value, null for none.

    >>> var_pop("delay").output_name
    'var_pop(delay)'
    """
    return column_aggregate("var_pop", column, f"var_pop({column})")


def stddev_pop(column: str) -> ColumnAggregate:
    """Compute the standard deviation of a population, a DOUBLE: the square root of `var_pop`.

    >>> stddev_pop("delay").output_name
    'stddev_pop(delay)'
    """
    return column_aggregate("stddev_pop", column, f"stddev_pop({column})")


def first(column: str, ignore_nulls: bool = False) -> ColumnAggregate:
    """Take the value of the earliest row by event time; among equal times, of the first that arrived.

    It is Spark's ``min_by`` on the event time: null if that row has no value, unless `ignore_nulls` skips rows without
    a value.

    >>> first("price", ignore_nulls=True)
    first('price', ignore_nulls=True)
    """
    return column_aggregate("first", column, f"first({column})", ignore_nulls=bool(ignore_nulls))


def last(column: str, ignore_nulls: bool = False) -> ColumnAggregate:
    """Take the value of the latest row by event time; among equal times, of the last that arrived.

    It is Spark's ``max_by`` on the event time; `ignore_nulls` is as for `first`.

    >>> last("price").output_name
    'last(price)'
    """
    return column_aggregate("last", column, f"last({column})", ignore_nulls=bool(ignore_nulls))


def collect_list(column: str) -> ColumnAggregate:
    """Collect the values that are not null, in the order of their arrival; an empty list without values.

    All values are kept in the state until the window is gone.

    >>> from eventide.common import Types
    >>> collect_list("item").result_type(Types.STRING())
    LIST(STRING)
    """
    return column_aggregate("collect_list", column, f"collect_list({column})")


def collect_set(column: str) -> ColumnAggregate:
    """Collect the different values that are not null; an empty list without values.

    The list is sorted, in the order of `min_`: Spark promises no order. NaN is one value, and -0.0 is 0.0. All
    different values are kept in the state until the window is gone.

    >>> collect_set("item").output_name
    'collect_set(item)'
    """
    return column_aggregate("collect_set", column, f"collect_set({column})")


def count_distinct(column: str) -> ColumnAggregate:
    """Count the different values that are not null, exactly. LONG.

    NaN is one value, and -0.0 is 0.0. All different values are kept in the state until the window is gone;
    `approx_count_distinct` keeps a few hundred bytes instead.

    >>> count_distinct("user").output_name
    'count(DISTINCT user)'
    """
    return column_aggregate("count_distinct", column, f"count(DISTINCT {column})")


def approx_count_distinct(column: str, rsd: float = 0.05) -> ColumnAggregate:
    """Estimate the number of different values that are not null (HyperLogLog). LONG.

    NaN is one value, and -0.0 is 0.0. Few values are counted exactly.

    Args:
        column: The name of the column.
        rsd: The relative standard deviation of the estimate, 0.001 to 0.25. 0.05 keeps up to about 300 bytes a
            group; a tenth of it keeps a hundred times as much.

    Raises:
        ProgramError: `rsd` is out of its range, or the extra `sketches` is not installed.

    >>> approx_count_distinct("user")
    approx_count_distinct('user', rsd=0.05)
    """
    check_sketches_are_installed("approx_count_distinct")
    rsd = _between("approx_count_distinct", "rsd", rsd, 0.001, 0.25)
    return column_aggregate("approx_count_distinct", column, f"approx_count_distinct({column})", rsd=rsd)


def approx_quantiles(column: str, probabilities: Sequence[float], rank_error: float = 0.005) -> ColumnAggregate:
    """Estimate quantiles of the values that are not null (KLL). A list of DOUBLE, or null without values.

    A quantile is the smallest value such that at least this part of all values is not larger: 0.5 is the median, 0
    the minimum, 1 the maximum. NaN is larger than any number. Up to a few hundred values (twice 1 / `rank_error`)
    the quantiles are exact, and those of Spark's ``percentile_approx``. Beyond, the sketch draws random bits: a
    micro-batch that Spark repeats may give other values within the error.

    Args:
        column: The name of the column.
        probabilities: One or more numbers from 0 to 1; the list has the quantiles in the same order.
        rank_error: By how much the part of values that are not larger may differ from the probability, with 99 %
            confidence; 0.0002 to 0.25. 0.005 keeps up to about 16 KB a group.

    Raises:
        ProgramError: An argument is out of its range, or the extra `sketches` is not installed.

    >>> approx_quantiles("delay", [0.5, 0.99])
    approx_quantiles('delay', probabilities=(0.5, 0.99), rank_error=0.005)
    """
    check_sketches_are_installed("approx_quantiles")
    if not isinstance(probabilities, Sequence) or isinstance(probabilities, str) or not probabilities:
        raise ProgramError(
            f"approx_quantiles: expected a list of probabilities such as [0.5, 0.99], got {probabilities!r}"
        )
    ranks = tuple(_between("approx_quantiles", "a probability", rank, 0.0, 1.0) for rank in probabilities)
    error = _between("approx_quantiles", "rank_error", rank_error, 0.0002, 0.25)
    name = f"approx_quantiles({column}, {list(ranks)})"
    return column_aggregate("approx_quantiles", column, name, probabilities=ranks, rank_error=error)


def approx_top_k(column: str, k: int = 5, max_items_tracked: int = 10_000) -> ColumnAggregate:
    """Estimate the `k` most frequent values. A list of rows (value, count), the most frequent first.

    As in Spark, null is a value too, and counted. NaN is one value, and -0.0 is 0.0. Values with equal counts are in
    their own order, null last. With up to `max_items_tracked` different values, the counts are exact. Beyond, they may
    be too large, by at most 3 of each `max_items_tracked` rows.

    Args:
        column: The name of the column.
        k: The greatest number of values in the list.
        max_items_tracked: The greatest number of different values in the state, `k` to 1,000,000.

    Raises:
        ProgramError: An argument is out of its range, or the extra `sketches` is not installed.

    >>> from eventide.common import Types
    >>> approx_top_k("item", 3).result_type(Types.STRING())
    LIST(ROW(value: STRING, count: LONG))
    """
    check_sketches_are_installed("approx_top_k")
    most = _whole("approx_top_k", "k", k, 1, 1_000_000)
    tracked = _whole("approx_top_k", "max_items_tracked", max_items_tracked, most, 1_000_000)
    name = f"approx_top_k({column}, {most})"
    return column_aggregate("approx_top_k", column, name, k=most, max_items_tracked=tracked)


def _between(function: str, what: str, value: object, lowest: float, highest: float) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not lowest <= value <= highest:
        raise ProgramError(f"{function}: {what} is a number from {lowest:g} to {highest:g}, got {value!r}")
    return float(value)


def _whole(function: str, what: str, value: object, lowest: int, highest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        raise ProgramError(f"{function}: {what} is a whole number from {lowest} to {highest}, got {value!r}")
    return int(value)
