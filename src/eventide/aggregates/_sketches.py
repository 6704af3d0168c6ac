"""Approximate aggregates, which keep a small sketch of the values instead of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventide.aggregates._aggregate import ColumnAggregate, column_aggregate
from eventide.aggregates.library import check_sketches_are_installed
from eventide.errors import ProgramError


def approx_count_distinct(column: str, rsd: float = 0.05) -> ColumnAggregate:
    """Estimate how many different values that are not null there are (HyperLogLog). LONG.

    NaN is one value, and -0.0 is 0.0. Few values are counted exactly.

    Args:
        column: The name of the column.
        rsd: The relative standard deviation of the estimate, 0.001 to 0.25. 0.05 keeps up to about 300 bytes a
            group; a tenth of it keeps a hundred times as much.

    Raises:
        ProgramError: `column` is no name, `rsd` is out of its range, or `eventide[sketches]` is not installed.

    >>> approx_count_distinct("user")
    approx_count_distinct('user', rsd=0.05)
    """
    check_sketches_are_installed("approx_count_distinct")
    rsd = _between("approx_count_distinct", "rsd", rsd, 0.001, 0.25)
    return column_aggregate("approx_count_distinct", column, f"approx_count_distinct({column})", rsd=rsd)


def approx_quantiles(column: str, probabilities: Sequence[float], rank_error: float = 0.005) -> ColumnAggregate:
    """Estimate quantiles of the values that are not null (KLL). A list of DOUBLE, or null where there is no value.

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
        ProgramError: `column` is no name, another argument is out of its range, or `eventide[sketches]` is not
            installed.

    >>> approx_quantiles("delay", [0.5, 0.99])
    approx_quantiles('delay', probabilities=(0.5, 0.99), rank_error=0.005)
    """
    check_sketches_are_installed("approx_quantiles")
    if not isinstance(probabilities, Sequence) or isinstance(probabilities, str) or not probabilities:
        message = f"approx_quantiles: expected a list of probabilities such as [0.5, 0.99], got {probabilities!r}"
        raise ProgramError(message)
    ranks = tuple(_between("approx_quantiles", "a probability", rank, 0.0, 1.0) for rank in probabilities)
    error = _between("approx_quantiles", "rank_error", rank_error, 0.0002, 0.25)
    name = f"approx_quantiles({column}, {list(ranks)})"
    return column_aggregate("approx_quantiles", column, name, probabilities=ranks, rank_error=error)


def approx_top_k(column: str, k: int = 5, max_items_tracked: int = 10_000) -> ColumnAggregate:
    """Estimate the `k` most frequent values. A list of rows (value, count), the most frequent first.

    As in Spark, null is a value too, and counted. NaN is one value, and -0.0 is 0.0. Values with equal counts are in
    their own order, null last. Where there are no more than `max_items_tracked` different values, the counts are
    exact. Beyond, they may be too large, by at most 3 of each `max_items_tracked` rows.

    Args:
        column: The name of the column.
        k: How many values the list has at most.
        max_items_tracked: How many different values are kept in the state, `k` to 1,000,000.

    Raises:
        ProgramError: `column` is no name, another argument is out of its range, or `eventide[sketches]` is not
            installed.

    >>> from eventide.common import Types
    >>> approx_top_k("item", 3).result_type(Types.STRING())
    LIST(ROW(value: STRING, count: LONG))
    """
    check_sketches_are_installed("approx_top_k")
    most = _whole("approx_top_k", "k", k, 1, 1_000_000)
    tracked = _whole("approx_top_k", "max_items_tracked", max_items_tracked, most, 1_000_000)
    name = f"approx_top_k({column}, {most})"
    return column_aggregate("approx_top_k", column, name, k=most, max_items_tracked=tracked)


def _between(function: str, what: str, value: Any, lowest: float, highest: float) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not lowest <= value <= highest:
        message = f"{function}: {what} is a number from {lowest:g} to {highest:g}, got {value!r}"
        raise ProgramError(message)
    return float(value)


def _whole(function: str, what: str, value: Any, lowest: int, highest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
        message = f"{function}: {what} is a whole number from {lowest} to {highest}, got {value!r}"
        raise ProgramError(message)
    return int(value)
