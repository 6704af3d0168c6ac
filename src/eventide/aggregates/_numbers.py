"""Counts, sums, extremes and moments."""

from __future__ import annotations

from eventide.aggregates._aggregate import ColumnAggregate, column_aggregate


def count(column: str | None = None) -> ColumnAggregate:
    """Count the rows, or those in which a column is not null. LONG; 0 where there is none.

    Raises:
        ProgramError: `column` is neither None nor a name.

    >>> count().output_name, count("user").output_name
    ('count', 'count(user)')
    """
    if column is None:
        return ColumnAggregate("count", None, "count")
    return column_aggregate("count", column, f"count({column})")


def sum_(column: str) -> ColumnAggregate:
    """Add a column up; nulls are skipped, and a sum of nothing is null.

    Of BYTE, SHORT, INT and LONG it is a LONG, of FLOAT and DOUBLE a DOUBLE, of BIG_INT a BIG_INT, of BIG_DEC a
    BIG_DEC. A sum that does not fit LONG, BIG_INT or BIG_DEC ends the job with a `DataError`, as in Spark 4.

    Raises:
        ProgramError: `column` is no name.

    >>> sum_("amount").alias("total")
    sum_('amount').alias('total')
    """
    return column_aggregate("sum_", column, f"sum({column})")


def min_(column: str) -> ColumnAggregate:
    """Find the smallest value that is not null; its type is the column's.

    Text and bytes are ordered by their bytes (UTF-8), false is less than true, and NaN is larger than any number.

    Raises:
        ProgramError: `column` is no name.

    >>> from eventide.common import Types
    >>> min_("day").result_type(Types.SQL_DATE())
    SQL_DATE
    """
    return column_aggregate("min_", column, f"min({column})")


def max_(column: str) -> ColumnAggregate:
    """Find the largest value that is not null; its type is the column's, and the order that of `min_`.

    Raises:
        ProgramError: `column` is no name.

    >>> max_("price").output_name
    'max(price)'
    """
    return column_aggregate("max_", column, f"max({column})")


def mean(column: str) -> ColumnAggregate:
    """Divide the sum by how many values there are; nulls are neither, and a mean of nothing is null.

    It is a DOUBLE; of BIG_INT and BIG_DEC it is a BIG_DEC, rounded half up to its 18 digits, and a sum that does not
    fit the column's type ends the job with a `DataError`. Spark's name for it is ``avg``.

    Raises:
        ProgramError: `column` is no name.

    >>> mean("delay").output_name
    'avg(delay)'
    """
    return column_aggregate("mean", column, f"avg({column})")


def variance(column: str) -> ColumnAggregate:
    """Compute the variance of a sample, a DOUBLE: divided by one less than the number of values; of one it is null.

    Raises:
        ProgramError: `column` is no name.

    >>> variance("delay").output_name
    'variance(delay)'
    """
    return column_aggregate("variance", column, f"variance({column})")


def stddev(column: str) -> ColumnAggregate:
    """Compute the standard deviation of a sample, a DOUBLE: the square root of `variance`.

    Raises:
        ProgramError: `column` is no name.

    >>> stddev("delay").output_name
    'stddev(delay)'
    """
    return column_aggregate("stddev", column, f"stddev({column})")


def var_pop(column: str) -> ColumnAggregate:
    """Compute the variance of all there is, a DOUBLE: divided by the number of values; of one it is 0, of none null.

    Raises:
        ProgramError: `column` is no name.

    >>> var_pop("delay").output_name
    'var_pop(delay)'
    """
    return column_aggregate("var_pop", column, f"var_pop({column})")


def stddev_pop(column: str) -> ColumnAggregate:
    """Compute the standard deviation of all there is, a DOUBLE: the square root of `var_pop`.

    Raises:
        ProgramError: `column` is no name.

    >>> stddev_pop("delay").output_name
    'stddev_pop(delay)'
    """
    return column_aggregate("stddev_pop", column, f"stddev_pop({column})")
