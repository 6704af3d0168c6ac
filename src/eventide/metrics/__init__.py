"""Metrics of functions: counters, gauges, meters, distributions, and the groups that they are made in.

A function finds its group in ``open``, with ``runtime_context.get_metrics_group()``. Their values are reported
with the metrics of the job, under the name of the operator.
"""

from __future__ import annotations

from eventide.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
