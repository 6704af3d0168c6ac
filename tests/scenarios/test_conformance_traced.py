"""Every scenario whose elements come as columns gives what Flink gave, with functions on columns and in Python.

The first function of each program runs on columns in every other micro-batch only; see `in_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial

import pytest
from tests.scenarios.all_programs import all_scenarios, any_program, batch_scenarios
from tests.scenarios.checks import Record, assert_as_flink, assert_as_flink_in_batch, watermarks_of_all_subtasks
from tests.scenarios.in_columns import beyond_ascii
from tests.scenarios.programs import FIRST, Scenario
from tests.scenarios.time_to_live_programs import time_to_live_program, time_to_live_scenarios

from eventide.common.ms import MAX_MS
from eventide.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.local.runner import BatchResult, LocalCheckpoint, LocalRunner
from eventide.plan.job import JobPlan
from eventide.runtime.metrics import BATCHES_IN_PYTHON, LATE_DROPPED

STREAMING = [*all_scenarios(), *time_to_live_scenarios()]
OF_EACH_PROGRAM = {"timestamps and watermarks", "element"}
OF_KIND = {
    "reduce_window": {"without times"},
    "text_window": {"with text"},
    "aggregate_window": {"with text"},
    "rolling": {"rolled", "shown"},
    **{kind: {"left", "right"} for kind in ("window_join", "co_group", "interval_join")},
}
"""The functions that run on columns beside those of each program, by the kind of the scenario."""
OF_FIRST = {
    "rolling": "columns, in one pass",
    **dict.fromkeys(
        ("window_join", "window_join2", "interval_join", "interval_join2"),
        "columns, rows go through the shuffle; the function on columns",
    ),
}
"""How the first operator of a kind works, in some scenarios, if its function is traced."""

in_both_ways = pytest.mark.parametrize("in_python", [False, True], ids=["columns", "python"])


@in_both_ways
@pytest.mark.parametrize("scenario", STREAMING, ids=lambda scenario: scenario.name)
def test_elements_that_come_as_columns_give_what_flink_gave(scenario: Scenario, in_python: bool) -> None:
    plan = _plan(scenario, in_python)
    _assert_functions_run(plan, scenario, in_python)
    _assert_as_flink(plan, scenario, _batches(plan, scenario), in_python)


@pytest.mark.parametrize("scenario", STREAMING[::10], ids=lambda scenario: scenario.name)
def test_restarts_between_batches_on_columns_and_in_python_change_nothing(scenario: Scenario) -> None:
    plan = _plan(scenario, in_python=False)
    _assert_as_flink(plan, scenario, _batches(plan, scenario, restarts=True), in_python=False)


@in_both_ways
@pytest.mark.parametrize("scenario", batch_scenarios(), ids=lambda scenario: scenario.name)
def test_elements_that_come_as_columns_give_what_flink_gave_in_batch(scenario: Scenario, in_python: bool) -> None:
    plan = _plan(scenario, in_python)
    _assert_functions_run(plan, scenario, in_python)
    (batch,) = _batches(plan, scenario)
    has_some = not in_python and beyond_ascii(scenario.script["batches"]) > 0
    assert (_batches_in_python(batch) > 0) == has_some
    assert watermarks_of_all_subtasks(batch) == [MAX_MS]
    assert not any(batch.elements.get(sink.number) for sink in plan.sinks[1:])
    assert_as_flink_in_batch(scenario, batch.elements.get(plan.sinks[0].number, []))


@pytest.mark.parametrize("kind", OF_FIRST)
def test_some_operators_of_a_kind_run_on_columns(kind: str) -> None:
    """So functions of operators, too, are compared in both ways."""
    traced = _first_scenario_whose_operator_is(OF_FIRST[kind], kind)
    assert OF_FIRST[kind] not in _speed_of_first(_plan(traced, in_python=True))


@pytest.mark.parametrize("kind", ["reduce_window", "two_stage"])
def test_some_windows_are_reduced_before_the_shuffle(kind: str) -> None:
    _first_scenario_whose_operator_is("reduced before the shuffle", kind)


def _first_scenario_whose_operator_is(speed: str, kind: str) -> Scenario:
    of_kind = (scenario for scenario in STREAMING if scenario.kind == kind)
    return next(scenario for scenario in of_kind if speed in _speed_of_first(_plan(scenario, in_python=False)))


def _plan(scenario: Scenario, in_python: bool) -> JobPlan:
    env = StreamExecutionEnvironment(LocalHost()).set_parallelism(2)
    env.get_config().set_functions_in_python(in_python)
    if scenario.in_batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    scenario = replace(scenario, in_columns=True)
    if scenario.kind == "ttl":
        time_to_live_program(env, scenario, scenario.script["op"]["ttl"]).print()
    else:
        for stream in any_program(env, scenario):
            if stream is not None:
                stream.print()
    return env.get_plan()


def _batches(plan: JobPlan, scenario: Scenario, *, restarts: bool = False) -> Iterator[BatchResult]:
    """Run a plan by the clock of its scenario, with ``restarts`` each micro-batch from a copy of the checkpoint."""
    clock = scenario.script.get("clock", [0])
    checkpoint = LocalCheckpoint()
    while True:
        number = checkpoint.batch
        runner = LocalRunner(plan, clock=partial(_now, clock, checkpoint), checkpoint=checkpoint)
        for batch in runner.batches():
            yield batch
            if restarts:
                break
        if checkpoint.batch == number or not restarts:
            return
        checkpoint = deepcopy(checkpoint)


def _now(clock: list[int], checkpoint: LocalCheckpoint) -> int:
    """The time of the next micro-batch."""
    return clock[min(checkpoint.batch, len(clock) - 1)]


def _assert_as_flink(plan: JobPlan, scenario: Scenario, batches: Iterator[BatchResult], in_python: bool) -> None:
    """Compare results with Flink's, and the number of batches whose elements a function was called with one by one."""
    record, fallen_back, dropped = Record(), 0, 0
    for batch in batches:
        fallen_back += _batches_in_python(batch)
        dropped += batch.progress.counted.get(FIRST, {}).get(LATE_DROPPED, 0)
        record.add_outputs(batch.batch, batch.elements.get(plan.sinks[0].number, []))
        for sink in plan.sinks[1:]:
            record.add_late(batch.batch, batch.elements.get(sink.number, []))
        record.watermarks += watermarks_of_all_subtasks(batch)
    assert fallen_back == (0 if in_python else beyond_ascii(scenario.script["batches"]))
    if scenario.is_reduced:
        assert dropped == len(scenario.expected["late"])
        record.late = dict(enumerate(scenario.by_batch("late")))
    assert_as_flink(scenario, record)


def _assert_functions_run(plan: JobPlan, scenario: Scenario, in_python: bool) -> None:
    """Check what ``explain()`` says of the functions of a program: which run on columns, or that all run in Python."""
    speeds: dict[str, set[str]] = {"on columns": set(), "in Python": set()}
    for head in (*plan.sources, *plan.operators):
        for node in head.root.all_nodes():
            if node.speed:
                (how,) = (how for how in speeds if node.speed.startswith(how))
                speeds[how].add(node.operator.name.partition("-")[0])
    traced = OF_EACH_PROGRAM | OF_KIND.get(scenario.kind, set())
    if in_python:
        assert speeds["on columns"] == set()
        assert traced <= speeds["in Python"]
    else:
        assert speeds["on columns"] == traced


def _batches_in_python(batch: BatchResult) -> int:
    """How many batches the first functions were called for with each element; no other function may be counted."""
    counted = {name: of[BATCHES_IN_PYTHON] for name, of in batch.progress.counted.items() if BATCHES_IN_PYTHON in of}
    assert counted.keys() <= {"element", "element-2"}
    return sum(counted.values())


def _speed_of_first(plan: JobPlan) -> str:
    return next(operator.speed for operator in plan.operators if operator.name == FIRST)
