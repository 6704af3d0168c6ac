"""Aggregates of columns, for ``window(...).aggregate(count(), sum_("amount").alias("total"), ...)``. Not in PyFlink.

They are values that say what is to be computed; nulls, overflow and NaN are treated as Spark 4 treats them.
"""

from eventide.aggregates._aggregate import ColumnAggregate
from eventide.aggregates._functions import (
    approx_count_distinct,
    approx_quantiles,
    approx_top_k,
    collect_list,
    collect_set,
    count,
    count_distinct,
    first,
    last,
    max_,
    mean,
    min_,
    stddev,
    stddev_pop,
    sum_,
    var_pop,
    variance,
)

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
