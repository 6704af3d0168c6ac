"""Plain counters with Flink's names, per operator."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

RECORDS_IN = "numRecordsIn"
RECORDS_OUT = "numRecordsOut"
LATE_DROPPED = "numLateRecordsDropped"
LATE_TO_SIDE_OUTPUT = "numLateRecordsToSideOutput"
WITHOUT_WINDOW = "numRecordsWithoutWindow"
WITHOUT_TIMESTAMP = "numRecordsWithoutTimestamp"
PARTS_LOST = "numPartsLost"
TIMERS_LEFT = "numTimersNotFired"

OperatorCounters: TypeAlias = dict[str, dict[str, int]]


def warning_of_timers(job_name: str, counters: OperatorCounters) -> str | None:
    """What to say at the end of a job that leaves timers of processing time behind; None if it leaves none."""
    left = {operator: c[TIMERS_LEFT] for operator, c in counters.items() if c.get(TIMERS_LEFT)}
    if not left:
        return None
    named = ", ".join(f"{operator!r} ({number})" for operator, number in left.items())
    return (
        f"the input of the job {job_name!r} ended before the time of {sum(left.values())} timer(s) of processing time "
        f"came, so what waited for them never comes out, as in Flink: {named}. Use windows of event time, which close "
        "when the input ends; or set_runtime_mode(RuntimeExecutionMode.BATCH), in which these timers fire at the end"
    )


class Metrics:
    """Counters of one task during one micro-batch.

    >>> metrics = Metrics()
    >>> metrics.count("window", LATE_DROPPED)
    >>> metrics.counters()
    {'window': {'numLateRecordsDropped': 1}}
    """

    def __init__(self) -> None:
        self._counters: Counter[tuple[str, str]] = Counter()

    def count(self, operator: str, counter: str, by: int = 1) -> None:
        """Add to a counter of an operator."""
        self._counters[operator, counter] += by

    def counters(self) -> OperatorCounters:
        """What was counted, by operator and counter."""
        return add_up([{operator: {name: n}} for (operator, name), n in self._counters.items() if n])


def add_up(parts: list[OperatorCounters]) -> OperatorCounters:
    """Add the counters of several tasks or micro-batches."""
    total: OperatorCounters = {}
    for part in parts:
        for operator, counters in part.items():
            into = total.setdefault(operator, {})
            for name, n in counters.items():
                into[name] = into.get(name, 0) + n
    return total
