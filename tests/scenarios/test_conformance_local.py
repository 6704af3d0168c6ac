"""The twin agrees with the real Flink on every recorded scenario."""

from __future__ import annotations

import pytest
from tests.scenarios.checks import Record, assert_as_flink, watermarks_of_all_subtasks
from tests.scenarios.join_programs import JOIN_KINDS
from tests.scenarios.process_programs import PROCESS_KINDS
from tests.scenarios.programs import Scenario, program, scenarios

from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost

OTHER_KINDS = PROCESS_KINDS | JOIN_KINDS


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("scenario", [*scenarios(), *scenarios(OTHER_KINDS)], ids=lambda scenario: scenario.name)
def test_the_twin_gives_what_flink_gave(scenario: Scenario, parallelism: int) -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(parallelism)
    results, late = OTHER_KINDS.get(scenario.kind, program)(env, scenario)
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
