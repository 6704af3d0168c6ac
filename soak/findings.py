"""Findings of a run: each measure at the tenth minute, at the end, and what a simulated hour more would add."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

SETTLED = 10
"""From this minute on everything should be level; from the sixth of ten."""
_AROUND = 2
"""A value at a minute is the median of the minutes around it, this many on each side."""
_TELLING = 20
"""The number of minutes from which on a run tells something about an hour."""
SPEED = "speed"
"""The column that says how many hours of event time go by in an hour of the clock."""
_MB = 1.0
"""Growth of memory, or of the checkpoint, that is allowed in a simulated hour, in megabytes."""


@dataclass(frozen=True)
class Measure:
    """Something that must not grow.

    Attributes:
        name: its name on the page.
        column: where its values are.
        unit: of the values.
        most: how much more of it there may be at the end than at the minute from which it should be level: what a
            shorter run checks, of counts alone.
        most_an_hour: by how much it may rise in a simulated hour, as a run of an hour checks it.
    """

    name: str
    column: str
    unit: str = ""
    most: float | None = None
    most_an_hour: float | None = None


GROUPS: dict[str, tuple[Measure, ...]] = {
    "Memory": (
        Measure("driver, resident", "driver: MB", "MB", most_an_hour=_MB),
        Measure("JVM, resident", "jvm: MB", "MB"),
        Measure("of it, outside of the heap", "jvm: outside of the heap, MB", "MB"),
        Measure("JVM, heap after a collection", "jvm: heap after a collection, MB", "MB", most_an_hour=_MB),
        Measure("JVM, classes", "jvm: classes, MB", "MB"),
        Measure("Python workers, resident, together", "workers: MB", "MB", most_an_hour=_MB),
        Measure("their daemons", "daemons: MB", "MB", most_an_hour=_MB),
        Measure("planners of sources", "planners: MB", "MB", most_an_hour=_MB),
    ),
    "Processes, threads, open files": (
        Measure("Python workers", "workers: processes", most=2),
        Measure("their daemons", "daemons: processes", most=0),
        Measure("planners of sources", "planners: processes", most=0),
        Measure("threads of the driver", "driver: threads", most=4, most_an_hour=1),
        Measure("threads of the JVM", "jvm: threads", most=40, most_an_hour=1),
        Measure("open files of the driver", "driver: open files", most=8, most_an_hour=1),
        Measure("open files of the JVM", "jvm: open files", most=40, most_an_hour=1),
        Measure("sockets of the JVM", "jvm: sockets", most=10),
        Measure("open files of Python workers", "workers: open files", most=30, most_an_hour=1),
        Measure("open files of planners", "planners: open files", most=4, most_an_hour=1),
    ),
    "What the job holds": (
        Measure("splits", "splits", most=4),
        Measure("keys with state or timers", "numKeys", most=80),
        Measure("timers", "numTimers", most=150),
        Measure("open windows", "numOpenWindows", most=3),
        Measure("open sessions", "numOpenSessions", most=40),
        Measure("state, as Spark's store says", "state_bytes", "bytes"),
    ),
    "The checkpoint": (
        Measure("files", "checkpoint/all: files", most=400),
        Measure("of them, state", "checkpoint/state: files", most=300),
        Measure("of them, offsets", "checkpoint/offsets: files", most=10),
        Measure("of them, commits", "checkpoint/commits: files", most=10),
        Measure("of them, eventide's own", "checkpoint/eventide: files", most=0),
        Measure("of them, those of the Kafka sink", "checkpoint/eventide-sinks: files", most=0),
        Measure("size", "checkpoint/all: kB", "kB", most_an_hour=_MB * 1_000),
        Measure("offsets of a micro-batch", "offsets of a micro-batch, kB", "kB", most=2),
    ),
    "A micro-batch": (
        Measure("time", "took_ms", "ms"),
        Measure("of it, planning", "planning_ms", "ms"),
        Measure("of it, running", "running_ms", "ms"),
        Measure("of it, committing", "committing_ms", "ms"),
        Measure("CPU time of all processes", "CPU ms of a micro-batch", "ms"),
        Measure("elements of sources", "rows_in"),
        Measure("load of the machine", "load"),
    ),
    "What the job's page answers": (Measure("the last 1,000 micro-batches", "page, kB", "kB"),),
}


@dataclass(frozen=True)
class Finding:
    """A measure when it should be level, at the end, and its growth in a simulated hour; nan if that cannot be said."""

    measure: Measure
    settled: float
    end: float
    slope: float

    @property
    def grown(self) -> bool:
        """Whether there is more of it than there may be."""
        most, most_an_hour = self.measure.most, self.measure.most_an_hour
        has_risen = most_an_hour is not None and self.slope > most_an_hour
        return has_risen or (most is not None and self.end - self.settled > most)


def settled_minute(minutes: int) -> int:
    """The minute from which everything should be level, in a run of `minutes` minutes."""
    return min(SETTLED, minutes * 6 // 10)


def findings(table: pd.DataFrame) -> dict[str, list[Finding]]:
    """Return the findings in a table by minute, by group."""
    first, speed = settled_minute(len(table)), float(table[SPEED].iloc[0])
    return {
        group: [_found(measure, table[measure.column], first, speed) for measure in measures if measure.column in table]
        for group, measures in GROUPS.items()
    }


def _found(measure: Measure, values: pd.Series, first: int, speed: float) -> Finding:
    level = values[values.index >= first].dropna()
    at_first = values[(values.index >= first - _AROUND) & (values.index <= first + _AROUND)].median()
    at_end = values[values.index > values.index.max() - _AROUND * 2 - 1].median()
    return Finding(measure, float(at_first), float(at_end), _slope(level) / speed)


def _slope(level: pd.Series) -> float:
    """The growth in an hour of the clock: the median of that between any two minutes, which single ones do not move."""
    if len(level) < _TELLING:
        return float("nan")
    minutes, values = level.index.to_numpy(), level.to_numpy()
    earlier, later = np.triu_indices(len(level), 1)
    return float(np.median((values[later] - values[earlier]) / (minutes[later] - minutes[earlier]))) * 60
