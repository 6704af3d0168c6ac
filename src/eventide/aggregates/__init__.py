"""Aggregates of columns, for ``window(...).aggregate(count(), sum_("amount").alias("total"), ...)``. Not in PyFlink.

They are values that say what is to be computed; nulls, overflow and NaN are treated as Spark 4 treats them.
"""

from eventide.aggregates._aggregate import ColumnAggregate
from eventide.aggregates._numbers import count, max_, mean, min_, stddev, stddev_pop, sum_, var_pop, variance
from eventide.aggregates._sketches import approx_count_distinct, approx_quantiles, approx_top_k
from eventide.aggregates._values import collect_list, collect_set, count_distinct, first, last

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
