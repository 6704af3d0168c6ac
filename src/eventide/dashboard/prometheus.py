"""The endpoint that Prometheus asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from eventide.dashboard.samples import METRICS, Sample, samples
from eventide.dashboard.watched import WatchedJob

CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "eventide_"


class _Jobs:
    """Tells of all jobs when it is asked: a collector as ``prometheus_client`` wants one."""

    def __init__(self, jobs: Callable[[], Iterable[WatchedJob]]) -> None:
        self._jobs = jobs

    def collect(self) -> Iterator[Metric]:
        found: dict[str, list[Sample]] = {}
        for sample in samples(self._jobs(), time.time_ns() // 1_000_000):
            found.setdefault(sample.metric.name, []).append(sample)
        for metric in METRICS:
            some = found.get(metric.name, ())
            kind = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
            family = kind(PREFIX + metric.name, metric.text, labels=list(some[0].labels) if some else ())
            for sample in some:
                family.add_metric(list(sample.labels.values()), sample.value)
            if some:
                yield family


def registry_of(jobs: Callable[[], Iterable[WatchedJob]]) -> CollectorRegistry:
    """A registry of its own, which knows nothing but these jobs."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Jobs(jobs))
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """All that a registry has, in Prometheus' text format."""
    text: bytes = generate_latest(registry)
    return text
