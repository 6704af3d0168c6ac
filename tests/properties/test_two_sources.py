"""The watermark of an operator with two sources, of which each may fall idle and end, against a model of the rules.

The model knows nothing of readers, valves and frames: it works on a script of elements, idle splits and ends. It gives
the recorded watermarks of every scenario with two such sources.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scenarios.all_programs import all_scenarios, any_program
from tests.scenarios.checks import watermarks_of_all_subtasks
from tests.scenarios.programs import Scenario

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.datastream import StreamExecutionEnvironment
from eventide.local.host import LocalHost

OPERATORS: list[dict[str, Any]] = [
    {"kind": "union_window", "assigner": {"type": "tumbling", "size": 10}},
    {"kind": "connect_process", "timer": 5},
]
SPLITS = {"A": ["a"], "B": ["b", "c"]}
BOUND_MS = 2


class Source:
    """A source of the model, with the latest time and the watermark of each split, and which of them are idle."""

    def __init__(self, splits: list[str], bound_ms: int) -> None:
        self.latest_ms = dict.fromkeys(splits, MIN_MS)
        self.of_splits = dict.fromkeys(splits, MIN_MS)
        self.bound_ms = bound_ms
        self.silent: set[str] = set()
        self.watermark = MIN_MS
        self.is_idle = False
        self.has_ended = False

    def end_batch(self, times: dict[str, list[int]], fell_idle: set[str]) -> None:
        for split, times_ms in times.items():
            self.latest_ms[split] = max(self.latest_ms[split], *times_ms)
            if split not in fell_idle:  # the generator of one that is idle is not asked
                self.of_splits[split] = self.latest_ms[split] - self.bound_ms - 1
        self.silent = (self.silent - {*times}) | fell_idle
        counting = [ms for split, ms in self.of_splits.items() if split not in self.silent]
        if (combined := min(counting) if counting else max(self.of_splits.values())) > self.watermark:
            self.watermark, self.is_idle = combined, False
        self.is_idle |= not counting

    def end(self) -> None:
        self.has_ended = True
        if not self.is_idle:
            self.watermark = MAX_MS


def expected(script: dict[str, Any]) -> list[int]:
    """The watermarks of the operator, no more than one for each micro-batch and the end of the input."""
    sources = {one["name"]: Source(one["splits"], one["strategy"].get("bound", 0)) for one in script["sources"]}
    is_union = script["op"]["kind"] == "union_window"
    passed = [MIN_MS]

    def move_on() -> None:
        counting = [s.watermark for s in sources.values() if not s.is_idle]
        if is_union:  # a source that comes back with a lower watermark does not hold the others
            counting = [ms for ms in counting if ms >= passed[-1]]
        if all(s.is_idle for s in sources.values()):
            counting = [max(s.watermark for s in sources.values())]
        if counting and min(counting) > passed[-1]:
            passed.append(min(counting))

    for batch in script["batches"]:
        ending = {entry["source"] for entry in batch if entry.get("end")}
        for name, source in sources.items():
            if source.has_ended:
                continue
            mine = [entry for entry in batch if entry.get("s") in source.of_splits]
            last = {entry["s"]: entry for entry in mine}
            times = {split: [e["ts"] for e in mine if e["s"] == split and "ts" in e] for split in last}
            if name in ending:
                source.end()
            else:
                idle = {split for split, entry in last.items() if entry.get("idle")}
                source.end_batch({split: found for split, found in times.items() if found}, idle)
        move_on()
    if script["final_watermark"]:
        for source in sources.values():
            if not source.has_ended:
                source.end()
        move_on()
    return passed[1:]


def watermarks(scenario: Scenario, parallelism: int) -> list[int]:
    """The watermarks that the operator of a scenario's program passes."""
    host = LocalHost()
    results, _ = any_program(StreamExecutionEnvironment(host).set_parallelism(parallelism), scenario)
    results.print()
    results.get_execution_environment().execute()
    return [watermark for batch in host.last_run for watermark in watermarks_of_all_subtasks(batch)]


def _is_known(scenario: Scenario) -> bool:
    kinds = [operator["kind"] for operator in OPERATORS]
    return (
        scenario.kind in kinds and {*scenario.strategies} <= {"bounded", "monotonous"} and "sources" in scenario.script
    )


@pytest.mark.parametrize("scenario", [s for s in all_scenarios() if _is_known(s)], ids=lambda scenario: scenario.name)
def test_the_model_gives_what_flink_gave(scenario: Scenario) -> None:
    assert expected(scenario.script) == scenario.expected["watermarks"]


@st.composite
def scripts(draw: st.DrawFn) -> dict[str, Any]:
    """Scripts in the form of the recorded ones: elements, then the splits that fall idle or the sources that end."""
    batches: list[list[dict[str, Any]]] = []
    going = dict(SPLITS)
    for place in range(draw(st.integers(1, 6))):
        splits = [split for of_source in going.values() for split in of_source]
        events = draw(st.lists(st.tuples(st.sampled_from(splits), st.integers(0, 8)), max_size=4)) if splits else []
        batch: list[dict[str, Any]] = [
            {"s": split, "id": 10 * place + number, "k": "x", "ts": 5 * place + ms, "v": 1}
            for number, (split, ms) in enumerate(events)
        ]
        match draw(st.sampled_from(["", "", "idle", "end"])) if splits else "":
            case "idle":
                batch += [{"s": split, "idle": True} for split in draw(st.sets(st.sampled_from(splits), min_size=1))]
            case "end":
                name = draw(st.sampled_from(sorted(going)))
                del going[name]
                batch.append({"source": name, "end": True})
        batches.append(batch)
    strategy = {"kind": "bounded", "bound": BOUND_MS}
    return {
        "sources": [{"name": name, "splits": splits, "strategy": strategy} for name, splits in SPLITS.items()],
        "op": draw(st.sampled_from(OPERATORS)),
        "allowed_lateness": 0,
        "batches": batches,
        "final_watermark": draw(st.booleans()),
    }


@given(scripts(), st.sampled_from([1, 3]))
def test_the_operator_moves_once_at_the_end_of_each_micro_batch(script: dict[str, Any], parallelism: int) -> None:
    assert watermarks(Scenario("two sources", script, {}, {}), parallelism) == expected(script)
