"""State that expires is seen, kept and lost as in the real Flink."""

from __future__ import annotations

import pytest
from tests.scenarios.checks import Record, assert_as_flink, watermarks_of_all_subtasks
from tests.scenarios.programs import Scenario
from tests.scenarios.time_to_live_programs import time_to_live_program, time_to_live_scenarios

from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.local.runner import LocalRunner


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("scenario", time_to_live_scenarios(), ids=lambda scenario: scenario.name)
def test_the_twin_gives_what_flink_gave(scenario: Scenario, parallelism: int) -> None:
    env = StreamExecutionEnvironment(LocalHost()).set_parallelism(parallelism)
    time_to_live_program(env, scenario, scenario.script["op"]["ttl"]).print()
    plan = env.get_plan()
    clock = [*scenario.script["clock"], scenario.script["clock"][-1]]
    runner = LocalRunner(plan, clock=lambda: clock[min(runner.checkpoint.batch, len(clock) - 1)])

    record = Record()
    for batch in runner.batches():
        record.add_outputs(batch.batch, batch.elements.get(plan.sinks[0].number, []))
        record.watermarks += watermarks_of_all_subtasks(batch)
    assert_as_flink(scenario, record)
