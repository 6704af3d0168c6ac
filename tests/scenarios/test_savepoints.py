"""A job that is cut anywhere, and goes on from a savepoint with other subtasks and one more operator is as in Flink."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios.all_programs import all_scenarios, any_program
from tests.scenarios.checks import Record, assert_as_flink, watermarks_of_all_subtasks
from tests.scenarios.programs import Scenario

from eventide.common import Types
from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost, begun_from, take_savepoint
from eventide.local.runner import LocalCheckpoint, LocalRunner
from eventide.plan.job import JobPlan


def _plan(scenario: Scenario, parallelism: int, *, has_another: bool = False) -> tuple[JobPlan, int, int | None]:
    """The plan of a scenario's program, and the places of its sinks: of the results, and of late elements."""
    env = StreamExecutionEnvironment(LocalHost()).set_parallelism(parallelism)
    results, late = any_program(env, scenario)
    results.print()
    if late is not None:
        late.print()
    if has_another:
        results.map(lambda result: 1, Types.INT()).key_by(lambda _: 0).sum(0).print()
    return env.get_plan(), 0, None if late is None else 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try every tenth scenario, or all of them with other numbers of subtasks too."""
    if "scenario" in metafunc.fixturenames:
        all_of_them = metafunc.config.getoption("--all-scenarios")
        chosen = all_scenarios() if all_of_them else all_scenarios()[::10]
        metafunc.parametrize("scenario", chosen, ids=lambda scenario: scenario.name)
        metafunc.parametrize(("before", "behind"), [(2, 3), (3, 1), (1, 2)] if all_of_them else [(2, 3)])


def test_it_goes_on_as_if_nothing_had_been(scenario: Scenario, before: int, behind: int, tmp_path: Path) -> None:
    record, begin, checkpoint = Record(), 0, LocalCheckpoint()
    while checkpoint is not None:
        plan, results, late = _plan(scenario, before, has_another=begin > 0)
        runner, checkpoint = LocalRunner(plan, checkpoint=checkpoint), None
        batches = runner.batches()
        for batch in batches:
            number = begin + batch.batch
            record.add_outputs(number, batch.elements.get(plan.sinks[results].number, []))
            record.add_late(number, [] if late is None else batch.elements.get(plan.sinks[late].number, []))
            record.watermarks += watermarks_of_all_subtasks(batch)
            if number < scenario.batches:
                batches.close()
                savepoint = take_savepoint(plan, runner.checkpoint, str(tmp_path / str(number)))
                begin, before, behind = number + 1, behind, before
                checkpoint = begun_from(savepoint, _plan(scenario, before, has_another=True)[0])
                break
    assert_as_flink(scenario, record)
