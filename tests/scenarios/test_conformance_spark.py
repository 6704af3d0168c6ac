"""Spark agrees with the real Flink, too: a telling set of scenarios by default, all of them with --all-scenarios.

Many scenarios run as one job, each a source and operators of its own: that is much faster than a query for each, and it
shows that the operators of a job leave each other's frames alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.scenarios.all_programs import all_scenarios, any_program
from tests.scenarios.checks import Record, assert_as_flink
from tests.scenarios.column_programs import as_recorded, column_program, fires_late_ones_together, recorded_outputs
from tests.scenarios.programs import FIRST, Scenario
from tests.scenarios.time_to_live_programs import time_to_live_program, time_to_live_scenarios

from eventide.common import Row
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.plan.job import JobPlan, JobSettings
from eventide.runtime.exchange.frames import Signal
from eventide.spark.progress import said_in
from eventide.spark.query.compiler import frames_of
from eventide.spark.query.frame_rows import frame_of
from eventide.spark.session.make import settings_for_start

_TELLING = (
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
_TELLING_FOR_COLUMNS = (
    "lateness: every late element fires its window again, at once and with all its contents",
    "sliding: between the windows an element at or below the watermark is late, one above it vanishes",
    "session: with lateness a late element between two fired sessions fires them as one",
    "session: a late element that joins a fired session to an open one waits for the new end",
    "count window: fires with every third element of a key, the rest never comes out",
    "continuous trigger: a long step of the watermark fires each multiple passed",
    "reduce: sessions that become one add up",
    "idle: two of three splits idle",
    "idle: a source that is idle when its input ends sends no final watermark",
    "two-stage-015-70-210-2-splits-bounded",
)
_TELLING_WITHOUT_LATE_ROWS = (
    "lateness: every late element fires its window again, at once and with all its contents",
    "sliding: between the windows an element at or below the watermark is late, one above it vanishes",
    "reduce: sessions that become one add up",
    "idle: two of three splits idle",
    "two-stage-015-70-210-2-splits-bounded",
)
"""Where late rows are not wanted, rows are aggregated before the shuffle: these show the difference."""
_TELLING_THAT_EXPIRE = (
    "ttl: an expired entry that may be seen is seen once, then it is cleaned up",
    "ttl: adding to an expired sum that may be seen goes on with it",
    "ttl: adding to an expired sum that is never seen starts over",
    "ttl: an expired value that may be seen is seen once, and that read does not keep it",
)
"""All that a micro-batch writes has expired in the next one."""
_SIDE_BY_SIDE = 17
Program = Callable[[StreamExecutionEnvironment, Scenario], tuple[DataStream, DataStream | None]]


def _telling(names: tuple[str, ...] = _TELLING) -> list[Scenario]:
    by_name = {scenario.name: scenario for scenario in all_scenarios()}
    return [by_name[name] for name in names]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its groups of scenarios, the telling ones or all of them, several of about one length to a query."""
    if "several" not in metafunc.fixturenames:
        return
    chosen = all_scenarios() if metafunc.config.getoption("--all-scenarios") else _telling()
    by_length = sorted(chosen, key=lambda scenario: scenario.batches)
    groups = [by_length[start : start + _SIDE_BY_SIDE] for start in range(0, len(by_length), _SIDE_BY_SIDE)]
    metafunc.parametrize("several", groups, ids=[f"from {group[0].name}" for group in groups])


@pytest.mark.spark
def test_spark_gives_what_flink_gave(env: StreamExecutionEnvironment, tmp_path: Path, several: list[Scenario]) -> None:
    for scenario, record in _run(env, [(one, any_program) for one in several], tmp_path):
        assert_as_flink(scenario, record, scenario.watermarks_at_batch_ends())


@pytest.mark.spark
def test_spark_gives_what_flink_gave_on_columns_and_of_state_that_expires(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """In one query: columns whose late rows are kept, others whose late rows are dropped, and state of functions."""
    kept = [(one, partial(column_program, keep_late=True)) for one in _telling(_TELLING_FOR_COLUMNS)]
    dropped = [(one, partial(column_program, keep_late=False)) for one in _telling(_TELLING_WITHOUT_LATE_ROWS)]
    of_state = {scenario.name: scenario for scenario in time_to_live_scenarios()}
    expiring = [(of_state[name], _expiring_program) for name in _TELLING_THAT_EXPIRE]
    found = _run(env, [*kept, *dropped, *expiring], tmp_path)
    for number, (scenario, record) in enumerate(found[: len(kept) + len(dropped)]):
        batches = range(scenario.batches + 1)
        expected = recorded_outputs(scenario, late_firings_as_one=fires_late_ones_together(scenario))
        assert [sorted(record.outputs.get(batch, [])) for batch in batches] == expected, scenario.name
        if number < len(kept):
            assert [sorted(record.late.get(b, [])) for b in batches] == scenario.by_batch("late"), scenario.name
        assert record.watermarks == scenario.expected["watermarks"], scenario.name
    for scenario, record in found[-len(expiring) :]:
        assert_as_flink(scenario, record, scenario.watermarks_at_batch_ends())


def _expiring_program(env: StreamExecutionEnvironment, scenario: Scenario) -> tuple[DataStream, None]:
    return time_to_live_program(env, scenario, ttl_ms=1), None  # micro-batches are further apart than that


def _run(
    env: StreamExecutionEnvironment, several: Sequence[tuple[Scenario, Program]], place: Path
) -> list[tuple[Scenario, Record]]:
    """Run scenarios side by side in one query, and record what reaches each sink in each micro-batch."""
    found = [(scenario, Record()) for scenario, _ in several]
    takes = []
    for (scenario, record), (_, program) in zip(found, several, strict=True):
        results, late = program(env, scenario)
        results.print()
        takes.append(record.add_outputs)
        if late is not None:
            late.print()
            takes.append(record.add_late)
    plan = env.get_plan()
    spark = SparkSession.getActiveSession()
    assert spark is not None
    frames = frames_of(plan, JobSettings("scenarios"), spark)
    take_of = {sink.number: (sink, take) for sink, take in zip(plan.sinks, takes, strict=True)}

    def record_batch(rows, batch_id: int) -> None:
        for frame in map(frame_of, rows.where(rows["target"] > 0).collect()):
            assert frame.signal is Signal.ELEMENTS
            sink, take = take_of[frame.target]
            elements = sink.codec.decode(frame.content)
            rows_with_times = list(zip(elements.values, elements.timestamps, strict=True))
            take(batch_id, as_recorded(rows_with_times) if isinstance(elements.values[0], Row) else rows_with_times)

    output = frames.writeStream.foreachBatch(record_batch).trigger(availableNow=True)
    with settings_for_start(spark, plan.parallelism, only_with_data=True):
        query = output.option("checkpointLocation", str(place / "scenarios")).start()
    query.awaitTermination()
    for index, watermark in recorded_watermarks(plan, query):
        found[index][1].add_watermark(watermark)
    return found


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
