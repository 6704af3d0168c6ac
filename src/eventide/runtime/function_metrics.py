"""The metrics of functions where the functions are: made when they are opened, read at the end of each micro-batch."""

from __future__ import annotations

from typing import Any

from eventide.metrics import MetricGroup
from eventide.metrics._readings import to_json
from eventide.runtime.invoke import calling
from eventide.runtime.metrics import OWN


class FunctionMetrics:
    """Those of all functions that work in the tasks of one operator, or of one source, and in its chain.

    It belongs to the description of the tasks, and travels empty. What is taken from it says what is new, so that it
    does not matter in which worker a subtask runs; a micro-batch that is run again counts once, because what the failed
    attempt counted is lost with its worker or with its output.

    >>> metrics = FunctionMetrics()
    >>> metrics.group("parse").counter("bad").inc(2)
    >>> metrics.take(subtask=0, clock_ms=0)
    [{'parse': {'bad': ['count', 2]}}]
    >>> metrics.take(subtask=0, clock_ms=0)
    []
    """

    def __init__(self) -> None:
        self._groups: dict[str, MetricGroup] = {}

    def group(self, operator: str) -> MetricGroup:
        """The group of an operator."""
        if operator not in self._groups:
            self._groups[operator] = MetricGroup(OWN)
        return self._groups[operator]

    def clear(self) -> None:
        """Begin anew."""
        self._groups.clear()

    def take(self, subtask: int, clock_ms: int) -> list[dict[str, dict[str, list[Any]]]]:
        """What is new, as JSON values by operator and name; at most one part, and none where there is nothing.

        Raises:
            UserFunctionError: if a gauge raises.
        """
        new: dict[str, dict[str, list[Any]]] = {}
        for operator, group in self._groups.items():
            for name, metric in group.metrics().items():
                with calling(operator, during=f"when its metric {name!r} was read"):
                    reading = metric.take(subtask, clock_ms)
                if reading is not None:
                    new.setdefault(operator, {})[name] = to_json(reading)
        return [new] if new else []

    def __reduce__(self) -> tuple[type[FunctionMetrics], tuple[()]]:
        return FunctionMetrics, ()
