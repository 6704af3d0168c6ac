"""Metrics of jobs for OpenTelemetry: instruments that are asked when the program's own exporter wants them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from eventide.common.job import JobClient
from eventide.dashboard.watched import METRICS, Series, WatchedJobs, samples


def name_of(metric: Series) -> str:
    """The name of a metric in OpenTelemetry's style, where capital letters do not count.

    >>> name_of(Series("watermarkLag", ""))
    'eventide.watermark_lag'
    """
    return "eventide." + re.sub("([A-Z])", r"_\1", metric.name).lower()


class Telemetry:
    """The instruments of a meter provider. What they say goes where the program has the provider send it."""

    _known: ClassVar[dict[int, Telemetry]] = {}
    _making: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, provider: MeterProvider) -> None:
        self._jobs = WatchedJobs()
        self._provider = provider
        meter = provider.get_meter("eventide")
        for metric in METRICS:
            make: Callable[..., Any] = (
                meter.create_observable_counter if metric.is_counter else meter.create_observable_gauge
            )
            make(name_of(metric), [self._asked(metric)], unit=metric.unit, description=metric.text)

    @classmethod
    def of(cls, provider: MeterProvider | None) -> Telemetry:
        """The instruments of a provider, made once; of the one that the process has, if none is given."""
        wanted = provider or get_meter_provider()
        with cls._making:
            if id(wanted) not in cls._known:
                cls._known[id(wanted)] = cls(wanted)
            return cls._known[id(wanted)]

    def watch(self, name: str, client: JobClient, description: dict[str, Any]) -> None:
        """Tell of a job, and of twenty that have ended."""
        self._jobs.add(name, client, description)

    def _asked(self, metric: Series) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            for sample in samples(self._jobs(), time.time_ns() // 1_000_000):
                if sample.metric is metric:
                    yield Observation(sample.value, dict(sample.labels))

        return observe
