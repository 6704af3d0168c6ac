"""Metrics with which a function counts and measures: additions to attributes, read once in a micro-batch.

A reading of a metric consists of JSON values, and has the news of one subtask since its last reading. It is a list that
begins with its kind:

* ``["count", number]``;
* ``["rate", count, span_s, now_s, by_second]``: all events, and pairs of a second and the events in it, for the
  ``span_s`` seconds up to ``now_s``;
* ``["shown", by_subtask]``: pairs of a subtask and the last answer of its gauge;
* ``["spread", count, total, lowest, highest]``; without values, lowest and highest are None.

The value of a metric is all its readings merged into one, in the order of the micro-batches. Merging is associative. It
is commutative too, but for two gauges of one subtask, of which the later one counts.
"""

from __future__ import annotations

import collections
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from math import inf, isfinite
from numbers import Real
from typing import Any, TypeAlias, TypeVar

from eventide.errors import ProgramError

__all__ = [
    "Counter",
    "Distribution",
    "Meter",
    "Metric",
    "MetricGroup",
]

Number: TypeAlias = int | float
Reading: TypeAlias = list[Any]


class Metric(ABC):
    """The base of all metrics: the task that runs the function takes their readings.

    Taking a reading does not change what the function counts in, so that both may happen at once in two threads.
    """

    @abstractmethod
    def take(self, subtask: int, clock_ms: int) -> Reading | None:
        """Return the reading since the last call, for the runtime; None if there is none.

        Args:
            subtask: the number of the subtask that takes the reading.
            clock_ms: the time of the micro-batch by the clock, in milliseconds since the epoch.
        """


class Counter(Metric):
    """Counts up and down. Over subtasks and micro-batches, counters add up.

    >>> bad = MetricGroup().counter("bad lines")
    >>> bad.inc()
    >>> bad.inc(5)
    >>> bad.dec(2)
    >>> bad.get_count()
    4
    """

    __slots__ = ("_count", "_taken")

    def __init__(self) -> None:
        self._count: Number = 0
        self._taken: Number | None = None

    def inc(self, n: int = 1) -> None:
        """Add `n`."""
        self._count += n if type(n) is int else _finite(n)

    def dec(self, n: int = 1) -> None:
        """Subtract `n`."""
        self._count -= n if type(n) is int else _finite(n)

    def get_count(self) -> int:
        """Return what this function object has counted since it was opened: the job has the sum over all of them."""
        return int(self._count)

    def take(self, subtask: int, clock_ms: int) -> Reading | None:
        """Return what was counted since the last call; the first call reports 0 too."""
        now = self._count
        if now == self._taken:
            return None
        new, self._taken = now - (self._taken or 0), now
        return ["count", new]


class Meter(Metric):
    """Counts events, and gives their rate per second, over a span of time up to now.

    Now is the time of the last micro-batch by the clock. As in Flink, the count is divided by the whole span even
    before the job has run that long. Flink: ``MeterView``.

    >>> requests = MetricGroup().meter("requests", time_span_in_seconds=60)
    >>> requests.mark_event()
    >>> requests.mark_event(5)
    >>> requests.get_count()
    6
    """

    __slots__ = ("_count", "_span_s", "_taken")

    def __init__(self, time_span_in_seconds: int = 60) -> None:
        self._span_s = time_span_in_seconds
        self._count: Number = 0
        self._taken: Number = 0

    def mark_event(self, value: int = 1) -> None:
        """Count a number of events."""
        self._count += value if type(value) is int else _finite(value)

    def get_count(self) -> int:
        """Return how many events this function object has seen since it was opened."""
        return int(self._count)

    def take(self, subtask: int, clock_ms: int) -> Reading:
        """Return the events since the last call, at this time; zero events are reported too."""
        now, at_s = self._count, clock_ms // 1000
        new, self._taken = now - self._taken, now
        return ["rate", new, self._span_s, at_s, [[at_s, new]] if new else []]


class Distribution(Metric):
    """Gives the number of values, their sum, the lowest and the highest, and their mean, since the start.

    >>> MetricGroup().distribution("bytes of a line").update(80)
    """

    __slots__ = ("_count", "_highest", "_lowest", "_sum", "_taken")

    def __init__(self) -> None:
        self._count = 0
        self._sum: Number = 0
        self._lowest: Number = inf
        self._highest: Number = -inf
        self._taken: tuple[int, Number] | None = None

    def update(self, value: float) -> None:
        """Add a value.

        Raises:
            ProgramError: if it is not a number, or not a finite one, because no sum could be shown afterwards.
        """
        kind = type(value)
        if kind is not int and (kind is not float or value - value != 0):  # which is NaN where the float is not finite
            value = _finite(value)
        self._count += 1
        self._sum += value
        if value < self._lowest:  # noqa: PLR1730 - three times as quick as a call of min()
            self._lowest = value
        if value > self._highest:  # noqa: PLR1730
            self._highest = value

    def take(self, subtask: int, clock_ms: int) -> Reading | None:
        """Return the values since the last call, and the bounds of all; the first call reports an empty count too."""
        now = self._count, self._sum
        if now == self._taken:
            return None
        count, total = self._taken or (0, 0)
        self._taken = now
        bounds = (self._lowest, self._highest) if now[0] else (None, None)
        return ["spread", now[0] - count, now[1] - total, *bounds]


class _Gauge(Metric):
    """Shows the value that a user function returns at the end of each micro-batch, for each subtask."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask

    def take(self, subtask: int, clock_ms: int) -> Reading:
        """Call the function; the last answer of a subtask counts."""
        answer = self._ask()
        return ["shown", [[subtask, answer if isinstance(answer, str) else _plain(answer)]]]


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """Makes metrics, and keeps them by name. A group within a group prefixes its name to the names of its metrics.

    ``runtime_context.get_metrics_group()`` returns the group of an operator. A test of a function can make its own.

    For one name, it always returns the same metric, so that two functions of one operator may share it.

    >>> group = MetricGroup()
    >>> orders = group.add_group("country", "DE").counter("orders")
    >>> orders.inc(2)
    >>> [(name, metric.get_count()) for name, metric in group.metrics().items()]
    [('country.DE.orders', 2)]
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = reserved
        self._path = ""
        self._metrics: dict[str, Metric] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a group within this one.

        Args:
            name: the prefix of the names of its metrics; or, with `extra`, a key, such as ``"country"``.
            extra: the value of the key, such as ``"DE"``.
        """
        group = MetricGroup(self._reserved)
        parts = [_checked(part) for part in (name, extra) if part is not None]
        group._path = self._path + "".join(f"{part}." for part in parts)
        group._metrics = self._metrics
        return group

    def counter(self, name: str) -> Counter:
        """Return the counter of a name.

        Raises:
            ProgramError: if another kind of metric, or one of eventide's own, has the name; this holds for all metrics.
        """
        return self._of(name, Counter, Counter)

    def gauge(self, name: str, obj: Callable[[], float | str]) -> None:
        """Show the value that a function returns: a number or text. It is called at the end of each micro-batch.

        Each subtask shows its own; the last answer counts. A second gauge of one name replaces the first.

        >>> last = {"seen": 3}
        >>> MetricGroup().gauge("seen", lambda: last["seen"])
        """
        if not callable(obj):
            raise ProgramError(f"the gauge {name!r} needs a function without parameters, not {obj!r}")
        self._of(name, _Gauge, lambda: _Gauge(obj))._ask = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return the meter of a name; its rate covers the span up to now."""
        known = isinstance(time_span_in_seconds, Real) and not isinstance(time_span_in_seconds, bool)
        if not (known and time_span_in_seconds >= 1):
            raise ProgramError(f"the meter {name!r} needs a span of 1 second or more, not {time_span_in_seconds!r}")
        return self._of(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        """Return the distribution of a name."""
        return self._of(name, Distribution, Distribution)

    def metrics(self) -> Mapping[str, Metric]:
        """Return all metrics of this group, of groups within it, and of groups around it, by their full names."""
        return self._metrics

    def _of(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        whole = self._path + _checked(name)
        if whole in self._reserved:
            raise ProgramError(f"the metric {whole!r} is counted by eventide itself; give yours another name")
        metric = self._metrics.get(whole)
        if metric is None:
            metric = self._metrics[whole] = make()
        if not isinstance(metric, kind):
            theirs = type(metric).__name__.strip("_").lower()
            raise ProgramError(f"the metric {whole!r} is a {theirs} already; give the other one another name")
        return metric


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise ProgramError(f"metrics and groups have names of one or more letters, not {name!r}")
    return name


def _plain(value: object) -> Number:
    """Return the number as a plain Python number, even if it is one of NumPy.

    >>> _plain(True), _plain(2.5)
    (1, 2.5)
    """
    try:
        if hasattr(value, "__index__"):
            return int(value.__index__())
        if hasattr(value, "__float__"):
            return float(value)
    except TypeError:  # an array is not a number
        pass
    raise ProgramError(f"a metric shows numbers, and a gauge may show text, not {value!r:.200}")


def _finite(value: object) -> Number:
    """Return a plain Python number for sums, because numbers of NumPy wrap around."""
    number = _plain(value)
    if isinstance(number, float) and not isfinite(number):
        raise ProgramError(
            f"a metric that adds up takes finite numbers, not {number!r}; count non-finite values in a metric of "
            "their own"
        )
    return number


def merged(before: Reading, later: Reading) -> Reading:
    """Merge two readings of one metric.

    Events before the shorter of two spans are only counted. If two functions gave one name to different kinds of
    metrics, one of them is shown, as in Flink; the choice does not depend on the order of the readings.

    >>> merged(["shown", [[0, 5], [1, 6]]], ["shown", [[1, 4]]])
    ['shown', [[0, 5], [1, 4]]]
    """
    match before, later:
        case ["count", one], ["count", two]:
            return ["count", one + two]
        case ["rate", one, one_span_s, one_now_s, events], ["rate", two, two_span_s, two_now_s, more]:
            span_s, now_s = min(one_span_s, two_span_s), max(one_now_s, two_now_s)
            by_second = collections.Counter(dict(events))
            by_second.update(dict(more))
            return [
                "rate",
                one + two,
                span_s,
                now_s,
                _pairs({s: n for s, n in by_second.items() if s > now_s - span_s}),
            ]
        case ["shown", one], ["shown", two]:
            return ["shown", _pairs(dict(one) | dict(two))]
        case ["spread", one, total, low, high], ["spread", two, more_total, more_low, more_high]:
            if not (one and two):
                return before if one else later
            return ["spread", one + two, total + more_total, min(low, more_low), max(high, more_high)]
    return min(before, later, key=lambda reading: reading[0])


def value_of(reading: Reading) -> Any:
    """The value that a job shows for a reading.

    >>> value_of(["spread", 2, 5, 1, 4])
    {'count': 2, 'sum': 5, 'min': 1, 'max': 4, 'mean': 2.5}
    """
    match reading:
        case ["rate", count, span_s, _, by_second]:
            return {"count": count, "rate": sum(number for _, number in by_second) / span_s}
        case ["shown", by_subtask]:
            return dict(by_subtask)
        case ["spread", count, total, low, high]:
            return {"count": count, "sum": total, "min": low, "max": high, "mean": total / count if count else None}
    return reading[1]


def _pairs(values: Mapping[Any, Any]) -> list[list[Any]]:
    return [[key, values[key]] for key in sorted(values)]
