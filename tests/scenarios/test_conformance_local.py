"""The twin agrees with the real Flink on every recorded scenario."""

from __future__ import annotations

import pytest
from tests.scenarios.all_programs import all_scenarios, any_program
from tests.scenarios.checks import Record, assert_as_flink, watermarks_of_all_subtasks
from tests.scenarios.programs import Scenario

from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("scenario", all_scenarios(), ids=lambda scenario: scenario.name)
def test_the_twin_gives_what_flink_gave(scenario: Scenario, parallelism: int) -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(parallelism)
    results, late = any_program(env, scenario)
    results.print()
    if late is not None:
        late.print()
    sinks = [sink.number for sink in env.get_plan().sinks]
    env.execute()

    record = Record()
    for batch in host.last_run:
        record.add_outputs(batch.batch, batch.elements.get(sinks[0], []))
        record.add_late(batch.batch, batch.elements.get(sinks[-1], []) if late is not None else [])
        record.watermarks += watermarks_of_all_subtasks(batch)
    assert_as_flink(scenario, record)
