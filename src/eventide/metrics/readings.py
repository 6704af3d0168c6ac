"""Readings of the metrics of functions, which are JSON values, and how two readings of one metric become one.

A reading says what is new in one subtask since its last reading. It is a list that begins with its kind:

* ``["count", number]``;
* ``["rate", count, span_s, now_s, by_second]``: all events, and pairs of a second and the events in it, for the
  ``span_s`` seconds up to ``now_s``;
* ``["shown", by_subtask]``: pairs of a subtask and the last answer of its gauge;
* ``["spread", count, total, lowest, highest]``; without values, lowest and highest are None.

All that is known of a metric is its readings merged into one, in the order of the micro-batches. Merging is
associative. It is commutative too, but for two gauges of one subtask, of which the later one counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

Reading: TypeAlias = list[Any]


def merged(before: Reading, later: Reading) -> Reading:
    """Two readings of one metric as one.

    Events before the shorter of two spans are counted only. Where two functions gave one name to different kinds of
    metrics, one of them is shown, as in Flink; the order of the readings does not decide which.

    >>> merged(["shown", [[0, 5], [1, 6]]], ["shown", [[1, 4]]])
    ['shown', [[0, 5], [1, 4]]]
    """
    match before, later:
        case ["count", one], ["count", two]:
            return ["count", one + two]
        case ["rate", one, one_span_s, one_now_s, events], ["rate", two, two_span_s, two_now_s, more]:
            span_s, now_s = min(one_span_s, two_span_s), max(one_now_s, two_now_s)
            by_second = Counter(dict(events))
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
