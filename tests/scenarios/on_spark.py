"""Scenarios in groups for Spark, a telling few or all of them, and what is recorded of them there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql.streaming.query import StreamingQuery
from tests.scenarios.all_programs import all_scenarios
from tests.scenarios.programs import FIRST, Scenario

from eventide.plan.job import JobPlan
from eventide.spark.progress import said_in

TELLING = (
    "lateness: a watermark of end - 1 + lateness closes the window",
    "sliding: between the windows an element at or below the watermark is late, one above it vanishes",
    "session: with lateness a late element between two fired sessions fires them as one",
    "dynamic session: a shorter gap inside a longer session does not shorten it",
    "count window: a sliding one fires with every slide-th element and shows the last size",
    "global window: a purging count trigger starts over",
    "continuous trigger: a long step of the watermark fires each multiple passed",
    "count evictor after: everything is shown, then only the last two are kept",
    "reduce: sessions that become one add up",
    "watermark: punctuated, an element's own watermark comes right behind it",
    "splits: a split that never spoke holds the watermark back until the end",
    "idle: a split that comes back behind the watermark has late elements and holds it still",
    "idle: when all splits are idle the watermark goes to the highest of them",
    "idle: a source that is idle when its input ends sends no final watermark",
    "end: the last elements of an idle source give no watermark, the other source goes on alone",
    "end: punctuated, an idle source that gives a watermark in its last batch is the end of time when the other falls "
    "idle",
    "two stages: a first window that fires again after the second has fired is dropped there",
    "window-035-sliding-4-splits-punctuated-idle-open-end",
    "reduce-window-018-tumbling-event-time-trigger-lateness-4-splits-bounded-idle",
    "two-stage-020-10-10-lateness-4-splits-monotonous-idle",
    "timer: timers fire in order of time over all keys",
    "debounce: each element moves the timer on",
    "timers before windows: punctuated, in the middle of a batch",
    "timers before windows: what a timer gives is in time for the window that the same watermark fires",
    "connect: an idle input that comes back behind the watermark holds it still",
    "connect: one input ended and the other idle is the end of time, what comes behind is late",
    "broadcast: a timer sees the value of the moment it fires",
    "broadcast: the values stay when the broadcast side has ended",
    "interval join: an element below the watermark is late, one at the watermark is not",
    "interval join of two sources: elements wait while one source is behind",
    "window join of two sources: a source that comes back behind the watermark does not hold it",
    "co-group of two sources: sessions reach across both",
    "triggers-text-window-006-session-purging-count-trigger-lateness-bounded",
)
_SIDE_BY_SIDE = 17


def telling(names: tuple[str, ...] = TELLING) -> list[Scenario]:
    """The scenarios of some names."""
    by_name = {scenario.name: scenario for scenario in all_scenarios()}
    return [by_name[name] for name in names]


def give_groups(metafunc: pytest.Metafunc) -> None:
    """Give a test its groups of scenarios, the telling ones or all of them, several of about one length to a query."""
    if "several" not in metafunc.fixturenames:
        return
    chosen = all_scenarios() if metafunc.config.getoption("--all-scenarios") else telling()
    by_length = sorted(chosen, key=lambda scenario: scenario.batches)
    groups = [by_length[start : start + _SIDE_BY_SIDE] for start in range(0, len(by_length), _SIDE_BY_SIDE)]
    metafunc.parametrize("several", groups, ids=[f"from {group[0].name}" for group in groups])


def recorded_watermarks(plan: JobPlan, query: StreamingQuery) -> Iterator[tuple[int, int]]:
    """The watermarks that the first operator of each scenario had, micro-batch by micro-batch, with its number."""
    firsts = [operator.name for operator in plan.operators if operator.name.split("-")[0] == FIRST]
    # Operators of one name are numbered in the order in which they were made.
    index_of = {name: int(name.partition("-")[2] or 1) - 1 for name in firsts}
    for progress in sorted(query.recentProgress, key=lambda p: p.batchId):
        for said in said_in(progress) or []:
            for name, watermark in said.get("watermarks", {}).items():
                if name in index_of:
                    yield index_of[name], watermark
