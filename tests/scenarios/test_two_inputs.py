"""An operator with two inputs, on every recorded scenario with connected sources: its watermark is Flink's.

The operator here keeps, for each key, what came on each input; it shows the plan, the tasks and the gate for any number
of inputs, by themselves.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass

import pytest
from tests.scenarios.checks import watermarks_of_all_subtasks
from tests.scenarios.programs import DATA, FIRST, Scenario, sources

from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.local.host import LocalHost
from eventide.plan.graph import OperatorTransformation
from eventide.runtime.elements.codec import ElementCodec
from eventide.runtime.elements.elements import Elements, interleave
from eventide.runtime.exchange.outlets import ByKey
from eventide.runtime.tasks.operator import PlannedOperator

CONNECTED = ("connect_process", "broadcast", "interval_join2")


def connected() -> list[Scenario]:
    found = []
    for file in ("connect_process", "broadcast", "joins2", "rules"):
        for line in (DATA / f"{file}.jsonl").read_text().splitlines():
            record = json.loads(line)
            found.append(Scenario(record["name"], record["scenario"], record["expected"], record["detail"]))
    return [scenario for scenario in found if scenario.kind in CONNECTED and "sources" in scenario.script]


@dataclass(frozen=True)
class CountsByInput:
    """Gives, with each element, how many of its key have come on each input."""

    name: str = "counts"
    kind: str = "counts by input"
    endless: str | None = None
    needs_clock: bool = False
    needs_all: bool = False
    state_of_functions: None = None

    def planned(self, name, inputs, max_parallelism):
        outlets = tuple(
            ByKey(ElementCodec(i.value_type, i.key.type_info), i.key.select, max_parallelism) for i in inputs
        )
        return PlannedOperator(CountsByInput(name), outlets, "element by element", {}, (None,) * len(inputs))

    def open(self, backend, context):
        return _Living(backend)

    def user_functions(self):
        return []

    def describe(self):
        return [("inputs", "counted by key")]


class _Living:
    next_clock_ms = None

    def __init__(self, backend):
        self._backend = backend
        stored = backend.get("counts")
        self._counts = {} if stored is None else pickle.loads(stored)
        self._out = Elements()
        self.inputs = (lambda parts: self._take(0, parts), lambda parts: self._take(1, parts))

    def _take(self, number, parts):
        for key, _, timestamp in interleave(parts).rows():
            counts = self._counts.setdefault(key, [0, 0])
            counts[number] += 1
            self._out.append((key, *counts), timestamp, len(self._out))

    def reacts_to(self, watermark_ms):
        return True

    def advance(self, watermark_ms):
        pass

    def advance_clock(self, clock_ms):
        pass

    def timers_left(self):
        return 0

    def take_outputs(self):
        out, self._out = self._out, Elements()
        return {None: out} if out else {}

    def flush(self):
        self._backend.put("counts", pickle.dumps(self._counts))


def connect(one: DataStream, other: DataStream) -> DataStream:
    streams = (one._transformation, other._transformation)
    return DataStream(one.get_execution_environment(), OperatorTransformation(FIRST, streams, None, CountsByInput()))


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("scenario", connected(), ids=lambda scenario: scenario.name)
def test_the_watermark_of_two_inputs_is_that_of_flink(scenario: Scenario, parallelism: int) -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(parallelism)
    keyed = [env.from_source(s, how, name).key_by(lambda e: e["k"]) for name, s, how in sources(scenario.script)]
    connect(*keyed).print()
    (operator,) = [operator for operator in env.get_plan().operators if operator.name == FIRST]
    assert {edge.input for edge in operator.edges} == {0, 1}
    env.execute()
    passed = {batch.batch: watermarks_of_all_subtasks(batch) for batch in host.last_run}
    at_ends = {batch: watermarks[-1] for batch, watermarks in passed.items() if watermarks}
    expected = dict(zip(scenario.detail["watermark_batch"], scenario.expected["watermarks"], strict=True))
    assert at_ends == expected


def test_the_inputs_of_one_operator_share_their_keys_and_their_state() -> None:
    host = LocalHost()
    env = StreamExecutionEnvironment(host).set_parallelism(3)
    one, other = (env.from_collection([1, 2, 1]).key_by(lambda e: e), env.from_collection(["1", "2"]).key_by(int))
    connect(one, other).print()
    env.execute()
    ((_, rows),) = host.last_run[0].elements.items()
    last = {value[0]: value[1:] for value, _ in rows}
    assert last == {1: (2, 1), 2: (1, 1)}
