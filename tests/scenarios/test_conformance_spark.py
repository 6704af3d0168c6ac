"""Spark agrees with the real Flink, too: a telling set of scenarios by default, all of them with --all-scenarios.

Many scenarios run as one job, each a source and operators of its own: that is much faster than a query for each, and it
shows that the operators of a job leave each other's frames alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.scenarios.all_programs import any_program
from tests.scenarios.checks import Record, assert_as_flink
from tests.scenarios.column_programs import as_recorded, column_program, fires_late_ones_together, recorded_outputs
from tests.scenarios.on_spark import give_groups, recorded_watermarks, telling
from tests.scenarios.programs import Scenario
from tests.scenarios.time_to_live_programs import time_to_live_program, time_to_live_scenarios

from eventide.common import Row
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.plan.job import JobSettings
from eventide.runtime.exchange.frames import Signal
from eventide.spark.query.compiler import frames_of
from eventide.spark.query.frame_rows import frame_of
from eventide.spark.session.make import settings_for_start

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
Program = Callable[[StreamExecutionEnvironment, Scenario], tuple[DataStream, DataStream | None]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test its groups of scenarios."""
    give_groups(metafunc)


@pytest.mark.spark
def test_spark_gives_what_flink_gave(env: StreamExecutionEnvironment, tmp_path: Path, several: list[Scenario]) -> None:
    for scenario, record in _run(env, [(one, any_program) for one in several], tmp_path):
        assert_as_flink(scenario, record, scenario.watermarks_at_batch_ends())


@pytest.mark.spark
def test_spark_gives_what_flink_gave_on_columns_and_of_state_that_expires(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    """In one query: columns whose late rows are kept, others whose late rows are dropped, and state of functions."""
    kept = [(one, partial(column_program, keep_late=True)) for one in telling(_TELLING_FOR_COLUMNS)]
    dropped = [(one, partial(column_program, keep_late=False)) for one in telling(_TELLING_WITHOUT_LATE_ROWS)]
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
