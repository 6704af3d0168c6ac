"""The twin agrees with the real Flink on every recorded scenario."""

from __future__ import annotations

import pytest
from tests.scenarios.checks import Record, assert_as_flink
from tests.scenarios.programs import Scenario, program, scenarios

from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_the_twin_gives_what_flink_gave(scenario: Scenario, parallelism: int) -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(parallelism)
    results, late = program(env, scenario)
    results.print()
    if late is not None:
        late.print()
    env.execute()

    record = Record()
    # Sinks are numbered behind the stages, in the order in which they were made.
    stages = (2 if scenario.kind == "two_stage" else 1) + scenario.has_split_stage
    results_sink = 1 + stages
    for batch in host.last_run:
        record.add_outputs(batch.batch, batch.elements.get(results_sink, []))
        record.add_late(batch.batch, batch.elements.get(results_sink + 1, []))
        for stage, watermarks in batch.passed.items():
            if "process" not in stage or scenario.kind == "window":
                record.watermarks += watermarks
    assert_as_flink(scenario, record)
