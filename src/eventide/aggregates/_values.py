"""Single values by their time, lists of values, and how many different ones there are."""

from __future__ import annotations

from eventide.aggregates._aggregate import ColumnAggregate, column_aggregate


def first(column: str, ignore_nulls: bool = False) -> ColumnAggregate:
    """Take the value of the earliest row by event time; among equal times, of the one that arrived first.

    It is Spark's ``min_by`` on the event time: null where that row has none, unless `ignore_nulls` passes over rows
    without a value.

    Raises:
        ProgramError: `column` is no name.

    >>> first("price", ignore_nulls=True)
    first('price', ignore_nulls=True)
    """
    return column_aggregate("first", column, f"first({column})", ignore_nulls=bool(ignore_nulls))


def last(column: str, ignore_nulls: bool = False) -> ColumnAggregate:
    """Take the value of the latest row by event time; among equal times, of the one that arrived last.

    It is Spark's ``max_by`` on the event time; `ignore_nulls` is that of `first`.

    Raises:
        ProgramError: `column` is no name.

    >>> last("price").output_name
    'last(price)'
    """
    return column_aggregate("last", column, f"last({column})", ignore_nulls=bool(ignore_nulls))


def collect_list(column: str) -> ColumnAggregate:
    """Collect the values that are not null, in the order of their arrival; an empty list where there is none.

    All values are kept in the state until the window is gone.

    Raises:
        ProgramError: `column` is no name.

    >>> from eventide.common import Types
    >>> collect_list("item").result_type(Types.STRING())
    LIST(STRING)
    """
    return column_aggregate("collect_list", column, f"collect_list({column})")


def collect_set(column: str) -> ColumnAggregate:
    """Collect the different values that are not null; an empty list where there is none.

    The list is sorted, in the order of `min_`: Spark promises no order. NaN is one value, and -0.0 is 0.0. All
    different values are kept in the state until the window is gone.

    Raises:
        ProgramError: `column` is no name.

    >>> collect_set("item").output_name
    'collect_set(item)'
    """
    return column_aggregate("collect_set", column, f"collect_set({column})")


def count_distinct(column: str) -> ColumnAggregate:
    """Count the different values that are not null, exactly. LONG.

    NaN is one value, and -0.0 is 0.0. All different values are kept in the state until the window is gone;
    `approx_count_distinct` keeps a few hundred bytes instead.

    Raises:
        ProgramError: `column` is no name.

    >>> count_distinct("user").output_name
    'count(DISTINCT user)'
    """
    return column_aggregate("count_distinct", column, f"count(DISTINCT {column})")
