"""Aggregates of columns agree with the real Flink on every recorded scenario, on columns and element by element."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scenarios.all_programs import all_scenarios
from tests.scenarios.checks import Record, assert_as_flink, watermarks_of_all_subtasks
from tests.scenarios.column_programs import (
    COLUMN_KINDS,
    as_recorded,
    column_program,
    fires_late_ones_together,
    last_of_each_window,
    recorded_outputs,
)
from tests.scenarios.join_programs import column_join_program
from tests.scenarios.programs import FIRST, Scenario, scenarios

from eventide.common import Row
from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.runtime.metrics import LATE_DROPPED


@pytest.mark.parametrize("keep_late", [True, False], ids=["late rows kept", "late rows dropped"])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("scenario", scenarios(COLUMN_KINDS), ids=lambda scenario: scenario.name)
def test_columns_give_what_flink_gave(scenario: Scenario, parallelism: int, keep_late: bool) -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(parallelism)
    results, late = column_program(env, scenario, keep_late=keep_late)
    results.print()
    if late is not None:
        late.print()
    plan = env.get_plan()
    sinks = [sink.number for sink in plan.sinks]
    on_columns = next(o.speed for o in plan.operators if o.name == FIRST).startswith("columns")
    dropped = env.execute().metrics.get(FIRST, {}).get(LATE_DROPPED, 0)

    record = Record()
    for batch in host.last_run:
        record.add_outputs(batch.batch, as_recorded(batch.elements.get(sinks[0], [])))
        record.add_late(batch.batch, as_recorded(batch.elements.get(sinks[-1], []) if late is not None else []))
        record.watermarks += watermarks_of_all_subtasks(batch)
    as_one = on_columns and fires_late_ones_together(scenario)
    expected = recorded_outputs(scenario, late_firings_as_one=as_one)
    if expected is not None:
        given = [sorted(record.outputs.get(batch, [])) for batch in range(scenario.batches + 1)]
        if as_one:
            given, expected = last_of_each_window(scenario, given), last_of_each_window(scenario, expected)
        assert given == expected
    assert record.watermarks == scenario.expected["watermarks"]
    if late is not None:
        assert [sorted(record.late.get(batch, [])) for batch in range(scenario.batches + 1)] == scenario.by_batch(
            "late"
        )
    else:
        assert dropped == len(scenario.expected["late"])


_JOINS = ("window_join", "interval_join")


def pair(one, two):
    """Fields of two elements, as a trace has them."""
    return Row(k=one.k, l=one.id, r=two.id)


def pair_of_python(one, two):
    """Fields of two elements, in a way that no trace knows."""
    return Row(k=f"{one.k}", l=one.id, r=two.id)


@pytest.mark.parametrize("keep_late", [True, False], ids=["late rows kept", "late rows dropped"])
@pytest.mark.parametrize(
    "scenario", [s for s in all_scenarios() if s.kind.startswith(_JOINS)], ids=lambda scenario: scenario.name
)
@pytest.mark.parametrize(("parallelism", "function"), [(1, None), (3, None), (3, pair), (3, pair_of_python)])
def test_joins_on_columns_give_what_flink_gave(
    scenario: Scenario, parallelism: int, keep_late: bool, function: Any
) -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(parallelism)
    results, late = column_join_program(env, scenario, keep_late=keep_late, function=function)
    results.print()
    if late is not None:
        late.print()
    plan = env.get_plan()
    sinks = [sink.number for sink in plan.sinks]
    on_columns = next(o.speed for o in plan.operators if o.name == FIRST).startswith("columns")
    is_interval, op = scenario.kind.startswith("interval_join"), scenario.script["op"]
    needs_elements = "punctuated" in scenario.strategies if is_interval else op["assigner"]["type"] == "session"
    if function is not None and not is_interval:
        overlaps = op["assigner"]["type"] == "sliding" and op["assigner"]["size"] > op["assigner"]["slide"]
        needs_elements |= overlaps or scenario.script["allowed_lateness"] > 0
    assert on_columns != needs_elements
    dropped = env.execute().metrics.get(FIRST, {}).get(LATE_DROPPED, 0)

    record = Record()
    for batch in host.last_run:
        record.add_outputs(batch.batch, as_recorded(batch.elements.get(sinks[0], [])))
        record.add_late(batch.batch, as_recorded(batch.elements.get(sinks[-1], []) if late is not None else []))
        record.watermarks += watermarks_of_all_subtasks(batch)
    if late is None:
        record.late = dict(enumerate(scenario.by_batch("late")))
        if scenario.kind.startswith("interval_join"):  # Flink says nothing of what a window join drops
            assert dropped == len(scenario.expected["late"])
    if on_columns and scenario.script["allowed_lateness"]:
        # Where a window fires several times in a micro-batch, columns give the last firing, which has all pairs.
        given = [sorted({*record.outputs.get(batch, [])}) for batch in range(scenario.batches + 1)]
        assert given == [sorted({*batch}) for batch in scenario.by_batch("outputs")]
        assert record.watermarks == scenario.expected["watermarks"]
    else:
        assert_as_flink(scenario, record)
