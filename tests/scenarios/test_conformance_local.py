"""The twin agrees with the real Flink on every recorded scenario."""

from __future__ import annotations

import pytest

from eventide.common._ms import MIN_MS
from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost
from tests.scenarios.programs import Scenario, canonical, program, scenarios


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

    outputs: list[list[str]] = [[] for _ in range(scenario.batches + 1)]
    late_ids: list[list[str]] = [[] for _ in range(scenario.batches + 1)]
    watermarks: list[int] = []
    first_stage = "TumblingEventTimeWindows.aggregate" if scenario.kind == "two_stage" else None
    for batch in host.last_run:
        for number, rows in batch.elements.items():
            for value, timestamp in rows:
                if number == min(_sinks(scenario)):
                    outputs[batch.batch].append(canonical([value, timestamp]))
                else:
                    late_ids[batch.batch].append(canonical(value["id"]))
        reached = batch.watermarks.get(first_stage) if first_stage else next(iter(batch.watermarks.values()), MIN_MS)
        if reached is not None and reached > (watermarks[-1] if watermarks else MIN_MS):
            watermarks.append(reached)
    assert [sorted(batch) for batch in outputs] == scenario.by_batch("outputs")
    assert [sorted(batch) for batch in late_ids] == scenario.by_batch("late")
    assert watermarks == scenario.expected["watermarks"]


def _sinks(scenario: Scenario) -> list[int]:
    """The numbers of the sinks: results first, behind the window stages."""
    stages = 2 if scenario.kind == "two_stage" else 1
    return [stages + 1, stages + 2]
