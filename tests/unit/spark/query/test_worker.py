"""The parts of programs that a worker has at hand: opened once for each start, and closed when they are not used."""

from types import SimpleNamespace

import pytest

from eventide.common import Types
from eventide.datastream import MapFunction
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.chain.chained_operators import Map
from eventide.runtime.pickles import dumps_program
from eventide.runtime.sources.task import ChainSpec
from eventide.spark.query import worker
from eventide.spark.query.worker import OpenedPrograms

CALLS = []


class Noted(MapFunction):
    def open(self, runtime_context):
        CALLS.append("open")

    def map(self, value):
        return value

    def close(self):
        CALLS.append("close")


@pytest.fixture
def opened():
    CALLS.clear()
    return OpenedPrograms(lambda source: ((source,), ()))


def payload(start):
    function = Noted()
    root = ChainNode(nodes=(ChainNode(Map("map", function.map, function)),))
    return dumps_program(ChainSpec("source", Types.PICKLED_BYTE_ARRAY(), root), "a source", start=start)


def test_functions_are_opened_once_for_each_subtask_and_start(opened):
    first, second = payload("first"), payload("second")
    assert opened.part(first, 0) is opened.part(first, 0)
    assert CALLS == ["open"]
    assert opened.part(first, 1) is not opened.part(second, 0)
    assert CALLS == ["open"] * 3


def test_what_was_not_used_for_long_is_closed(opened, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    opened.part(payload("first"), 0)
    clock[0] = 500.0
    opened.part(payload("second"), 0)
    assert "close" not in CALLS
    clock[0] = 1_000.0
    opened.part(payload("second"), 0)
    opened.part(payload("third"), 0)
    assert CALLS == ["open", "open", "close", "open"]


def test_subtasks_of_a_stage_share_a_part_without_functions():
    plain = dumps_program(ChainSpec("source", Types.PICKLED_BYTE_ARRAY(), ChainNode()), "a source")
    shared = OpenedPrograms(lambda source: ((source,), ()), may_share=True)
    assert shared.part(plain, 0) is shared.part(plain, 7)
    first = payload("first")
    assert shared.part(first, 0) is shared.part(first, 0)
    assert shared.part(first, 0) is not shared.part(first, 7)
