"""Spark agrees with the real Flink, too: a telling set of scenarios by default, all of them with --all-scenarios.

Many scenarios run as one job, each a source and stages of its own: that is much faster than a query for each, and it
shows that the stages of a job leave each other's frames alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.scenarios.checks import Record, assert_as_flink
from tests.scenarios.programs import Scenario, program, scenarios

from eventide.datastream import StreamExecutionEnvironment
from eventide.plan.compiler import compile_plan
from eventide.plan.settings import JobSettings
from eventide.runtime.events import Signal
from eventide.spark.compiler import METRICS, frames_of
from eventide.spark.frame_rows import frame_of
from eventide.spark.submit import settings_for_start

_TELLING = (
    "lateness: a watermark of end - 1 + lateness closes the window",
    "sliding: between the windows an element at or below the watermark is late, one above it vanishes",
    "session: with lateness a late element between two fired sessions fires them as one",
    "session: a count trigger adds up the counts of sessions that become one",
    "dynamic session: a shorter gap inside a longer session does not shorten it",
    "count window: fires with every third element of a key, the rest never comes out",
    "count window: a sliding one fires with every slide-th element and shows the last size",
    "global window: a purging count trigger starts over",
    "global window: without a trigger nothing comes out, not even at the end",
    "continuous trigger: a long step of the watermark fires each multiple passed",
    "count evictor: only the last two elements are shown, the others are gone",
    "count evictor after: everything is shown, then only the last two are kept",
    "time evictor: with 0 ms nothing is left, and the window fires empty",
    "reduce: sessions that become one add up",
    "idle: a split that comes back behind the watermark has late elements and holds it still",
    "idle: two of three splits idle",
    "idle: a source that is idle when its input ends sends no final watermark",
    "two stages: a first window that fires again after the second has fired is dropped there",
    "reduce-window-018-tumbling-event-time-trigger-lateness-4-splits-bounded-idle",
    "two-stage-020-10-10-lateness-4-splits-monotonous-idle",
)
_SIDE_BY_SIDE = 16


def _telling() -> list[Scenario]:
    by_name = {scenario.name: scenario for scenario in scenarios()}
    return [by_name[name] for name in _TELLING]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the test its groups of scenarios: the telling one, or all of them, so many to a query."""
    groups = [_telling()]
    if metafunc.config.getoption("--all-scenarios"):
        everything = scenarios()
        groups = [everything[start : start + _SIDE_BY_SIDE] for start in range(0, len(everything), _SIDE_BY_SIDE)]
    metafunc.parametrize("several", groups, ids=[f"from {group[0].name}" for group in groups])


@pytest.mark.spark
def test_spark_gives_what_flink_gave(env: StreamExecutionEnvironment, tmp_path: Path, several: list[Scenario]) -> None:
    for scenario, record in _run(env, several, tmp_path):
        assert_as_flink(scenario, record)


def _run(env: StreamExecutionEnvironment, several: list[Scenario], place: Path) -> list[tuple[Scenario, Record]]:
    """Run scenarios side by side in one query, and record what reaches each sink in each micro-batch."""
    records = [Record() for _ in several]
    takes = []
    for scenario, record in zip(several, records, strict=True):
        results, late = program(env, scenario)
        results.print()
        takes.append(record.add_outputs)
        if late is not None:
            late.print()
            takes.append(record.add_late)
    plan = compile_plan(env._sinks, 2, 128)
    env._sinks = []
    frames = frames_of(plan, JobSettings("scenarios"), env._host.spark, batch=False)
    take_of = {sink.number: (sink, take) for sink, take in zip(plan.sinks, takes, strict=True)}

    def record_batch(rows, batch_id: int) -> None:
        for frame in map(frame_of, rows.collect()):
            assert frame.signal is Signal.ELEMENTS
            sink, take = take_of[frame.stage]
            elements = sink.codec.decode(frame.content)
            take(batch_id, zip(elements.values, elements.timestamps, strict=True))

    output = frames.writeStream.foreachBatch(record_batch).trigger(availableNow=True)
    with settings_for_start(env._host.spark, plan.parallelism):
        query = output.option("checkpointLocation", str(place / "scenarios")).start()
    query.awaitTermination()
    stage_of = _first_stages(plan, several)
    for progress in sorted(query.recentProgress, key=lambda p: p.batchId):
        for text in progress.observedMetrics[METRICS]["counters"]:
            for stage, watermark in json.loads(text).get("watermarks", {}).items():
                if stage in stage_of:
                    records[stage_of[stage]].add_watermark(watermark)
    return list(zip(several, records, strict=True))


def _first_stages(plan, several: list[Scenario]) -> dict[str, int]:
    """Which scenario's operator a stage is; the second of two stages is not asked for its watermark."""
    names = iter(stage.name for stage in plan.stages)
    found = {}
    for index, scenario in enumerate(several):
        found[next(names)] = index
        if scenario.kind == "two_stage":
            next(names)
    return found
