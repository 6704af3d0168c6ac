"""Scenarios whose elements come as columns give what Flink gave, with functions on columns and called one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from tests.scenarios import programs
from tests.scenarios.all_programs import all_scenarios, any_program
from tests.scenarios.checks import Record, assert_as_flink, watermarks_of_all_subtasks
from tests.scenarios.programs import Scenario

from eventide.api.source import IDLE
from eventide.common import Row, Types, Watermark, WatermarkGenerator
from eventide.datastream import ReduceFunction, StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.testing import ScriptedSource

ELEMENT = Types.ROW_NAMED(["id", "k", "s", "ts", "v", "wm"], [Types.LONG(), *[Types.STRING()] * 2, *[Types.LONG()] * 3])


class InColumns(ScriptedSource):
    """Plays a script whose elements are dicts as record batches: its elements are rows of one type."""

    def __init__(
        self, splits: list[str], batches: list[list[Any]], type_info: Any = None, bounded: bool = True
    ) -> None:
        super().__init__(splits, batches, ELEMENT, bounded)

    def read(self, split: str, start: int, end: int) -> Iterator[Any]:
        for is_mark, items in groupby(super().read(split, start, end), lambda item: item is IDLE):
            if is_mark:
                yield from items
            else:
                rows = [{name: element.get(name) for name in ELEMENT.field_names} for element in items]
                yield pa.RecordBatch.from_pylist(rows, pa.schema(ELEMENT.arrow_type()))


class MarkedInColumns(WatermarkGenerator):
    """An element may bring a watermark, which holds after it."""

    def on_event(self, event, event_timestamp, output):
        if event["wm"] is not None:
            output.emit_watermark(Watermark(event["wm"]))

    def on_periodic_emit(self, output):
        pass


class AddV(ReduceFunction):
    """The first element, with the sum of both."""

    def reduce(self, value1, value2):
        row = Row(**value1.as_dict())
        row["v"] = value1["v"] + value2["v"]
        return row


SCENARIOS = [one for one in all_scenarios() if one.kind in ("window", "union_window", "two_stage", "reduce_window")]


@pytest.mark.parametrize("in_python", [False, True], ids=["columns", "python"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_elements_that_come_as_columns_give_what_flink_gave(
    scenario: Scenario, in_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, replacement in {"ScriptedSource": InColumns, "_Marked": MarkedInColumns, "_AddV": AddV}.items():
        monkeypatch.setattr(programs, name, replacement)
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(2)
    env.get_config().set_functions_in_python(in_python)
    results, late = any_program(env, scenario)
    results.print()
    if late is not None:
        late.print()
    plan = env.get_plan()
    speeds = {node.speed for head in [*plan.sources, *plan.operators] for node in head.root.all_nodes() if node.speed}
    assert any(speed.startswith("in Python" if in_python else "on columns") for speed in speeds)
    sinks = [sink.number for sink in plan.sinks]
    env.execute()

    record = Record()
    for batch in host.last_run:
        record.add_outputs(batch.batch, batch.elements.get(sinks[0], []))
        late_ones = batch.elements.get(sinks[-1], []) if late is not None else []
        record.add_late(batch.batch, [({"id": element["id"]}, time) for element, time in late_ones])
        record.watermarks += watermarks_of_all_subtasks(batch)
    assert_as_flink(scenario, record)
