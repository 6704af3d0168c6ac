"""Batch execution agrees with the real Flink on every recorded scenario, on both hosts, on elements and on columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.scenarios.all_programs import any_program, batch_scenarios
from tests.scenarios.checks import assert_as_flink_in_batch, watermarks_of_all_subtasks
from tests.scenarios.column_programs import COLUMN_KINDS, as_recorded, column_program, is_on_columns
from tests.scenarios.join_programs import column_join_program
from tests.scenarios.programs import Scenario, scenarios

from eventide.common.ms import MAX_MS
from eventide.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.plan.job import JobSettings
from eventide.runtime.exchange.frames import Frame, Signal
from eventide.spark.query.compiler import frames_of
from eventide.spark.query.frame_rows import frame_of
from eventide.spark.session.make import settings_for_start

_JOINS = ("window_join", "interval_join")
_SIDE_BY_SIDE = 20
by_name = partial(pytest.mark.parametrize, "scenario", ids=lambda scenario: scenario.name)
on_several_subtasks = pytest.mark.parametrize("parallelism", [1, 3])
with_and_without_late = pytest.mark.parametrize("keep_late", [True, False], ids=["late rows kept", "late rows dropped"])


@on_several_subtasks
@by_name(batch_scenarios())
def test_the_twin_gives_what_flink_gave(scenario: Scenario, parallelism: int) -> None:
    host = LocalHost()
    results, late = any_program(_environment(host, parallelism), scenario)
    assert_as_flink_in_batch(scenario, _outputs(host, results, late))


@with_and_without_late
@on_several_subtasks
@by_name(scenarios(COLUMN_KINDS, in_batch=True))
def test_columns_give_what_flink_gave(scenario: Scenario, parallelism: int, keep_late: bool) -> None:
    host = LocalHost()
    results, late = column_program(_environment(host, parallelism), scenario, keep_late=keep_late)
    outputs = as_recorded(_outputs(host, results, late))
    assert_as_flink_in_batch(_as_aggregates_see(scenario), outputs, without=("wm",))


@with_and_without_late
@on_several_subtasks
@by_name(scenarios(_JOINS, in_batch=True))
def test_joins_on_columns_give_what_flink_gave(scenario: Scenario, parallelism: int, keep_late: bool) -> None:
    host = LocalHost()
    results, late = column_join_program(_environment(host, parallelism), scenario, keep_late=keep_late)
    assert is_on_columns(results)
    assert_as_flink_in_batch(scenario, as_recorded(_outputs(host, results, late)))


def test_many_of_these_windows_run_on_columns() -> None:
    """So the comparison above is not that of elements once more."""
    chosen = scenarios(COLUMN_KINDS, in_batch=True)
    fast = [s for s in chosen if is_on_columns(column_program(_environment(LocalHost(), 1), s)[0])]
    kinds = {s.script["op"]["assigner"]["type"] for s in fast}
    assert kinds == {"tumbling", "sliding", "session", "global", "count_tumbling", "count_sliding"}
    assert any("continuous trigger" in s.name for s in fast)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give Spark the scenarios with a rule for a name, or all of them, a number of them in each job."""
    if "several" in metafunc.fixturenames:
        all_of_them = metafunc.config.getoption("--all-scenarios")
        chosen = [s for s in batch_scenarios() if all_of_them or s.name.startswith("batch: ")]
        groups = [chosen[start : start + _SIDE_BY_SIDE] for start in range(0, len(chosen), _SIDE_BY_SIDE)]
        metafunc.parametrize("several", groups, ids=[f"from {group[0].name}" for group in groups])


@pytest.mark.spark
def test_spark_gives_what_flink_gave(env: StreamExecutionEnvironment, several: list[Scenario]) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    sinks: list[tuple[Scenario, bool]] = []
    for scenario in several:
        results, late = any_program(env, scenario)
        for stream in (results, late):
            if stream is not None:
                stream.print()
                sinks.append((scenario, stream is late))
    plan = env.get_plan()
    spark = SparkSession.getActiveSession()
    assert spark is not None
    with settings_for_start(spark, plan.parallelism):
        rows = frames_of(plan, JobSettings("scenarios"), spark)
        frames = [frame_of(row) for row in rows.where(rows["target"] > 0).collect()]
    assert {frame.signal for frame in frames} == {Signal.ELEMENTS}
    for (scenario, is_late), sink in zip(sinks, plan.sinks, strict=True):
        decoded = [(frame, sink.codec.decode(frame.content)) for frame in frames if frame.target == sink.number]
        decoded.sort(key=lambda one: (_sent(one[0]), one[1].first))
        outputs = [row for _, part in decoded for row in zip(part.values, part.timestamps, strict=True)]
        if is_late:
            assert outputs == [], scenario.name
        else:
            assert_as_flink_in_batch(scenario, outputs)


def _environment(host: LocalHost, parallelism: int) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(host).set_parallelism(parallelism).set_runtime_mode(RuntimeExecutionMode.BATCH)


def _outputs(host: LocalHost, results: DataStream, late: DataStream | None) -> list[tuple[Any, int | None]]:
    """The results of a program in one micro-batch; its only watermark is the end of input, and no element is late."""
    env = results.get_execution_environment()
    results.print()
    if late is not None:
        late.print()
    sinks = [sink.number for sink in env.get_plan().sinks]
    env.execute()
    (batch,) = host.last_run
    assert watermarks_of_all_subtasks(batch) == [MAX_MS]
    assert late is None or not batch.elements.get(sinks[-1])
    return batch.elements.get(sinks[0], [])


def _as_aggregates_see(scenario: Scenario) -> Scenario:
    """The scenario without firings of no elements, of which there is nothing to aggregate."""
    rows = zip(scenario.expected["outputs"], scenario.detail["output_ts"], strict=True)
    kept = [(output, timestamp) for output, timestamp in rows if output.get("ids") != []]
    outputs, times = [output for output, _ in kept], [timestamp for _, timestamp in kept]
    return replace(scenario, expected={**scenario.expected, "outputs": outputs}, detail={"output_ts": times})


def _sent(frame: Frame) -> tuple[int, str, int, int]:
    """Frames of one sender, in the order in which it sent them up to the number of their first element."""
    return frame.edge, frame.channel, frame.task, frame.point
