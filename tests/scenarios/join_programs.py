"""Recorded scenarios of joins, as the eventide programs that a user would write for them."""

from __future__ import annotations

from typing import Any

from tests.scenarios.programs import FIRST, LATE, Scenario, assigner, streams

from eventide.common import Row, Types
from eventide.datastream import DataStream, StreamExecutionEnvironment
from eventide.datastream.functions import CoGroupFunction, JoinFunction, ProcessJoinFunction
from eventide.joins import left, right

_EVENT = Types.ROW_NAMED(["k", "id"], [Types.STRING(), Types.LONG()])


class _Pair(JoinFunction):
    def join(self, first, second):
        return {"k": first["k"], "l": first["id"], "r": second["id"]}


class _Groups(CoGroupFunction):
    def co_group(self, first, second):
        key = (first or second)[0]["k"]
        yield {"k": key, "l": [e["id"] for e in first], "r": [e["id"] for e in second]}


class _TimedPair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        in_time = ctx.get_left_timestamp() == left["ts"] and ctx.get_right_timestamp() == right["ts"]
        yield {"k": left["k"], "l": left["id"] if in_time else None, "r": right["id"]}


def _key(element: dict[str, Any]) -> str:
    return element["k"]


def _sides(env: StreamExecutionEnvironment, scenario: Scenario) -> list[DataStream]:
    """Two sources, or the elements of one, by the input that they are for."""
    one, *other = streams(env, scenario)
    if other:
        return [one, *other]
    return [one.filter(lambda e: e["in"] == 1).name("left"), one.filter(lambda e: e["in"] == 2).name("right")]


def join_program(env: StreamExecutionEnvironment, scenario: Scenario) -> tuple[DataStream, DataStream | None]:
    """The scenario's program: its results, and its late elements where there can be any."""
    op = scenario.script["op"]
    one, other = _sides(env, scenario)
    if op["kind"].startswith("interval_join"):
        join = one.key_by(_key).interval_join(other.key_by(_key)).between(op["lower"], op["upper"])
        join = join.side_output_left_late_data(LATE).side_output_right_late_data(LATE)
        results = join.process(_TimedPair()).name(FIRST)
        return results, results.get_side_output(LATE)
    pair = one.co_group(other) if op["kind"].startswith("co_group") else one.join(other)
    windows = pair.where(_key).equal_to(_key).window(assigner(op["assigner"]))
    windows = windows.allowed_lateness(scenario.script["allowed_lateness"])
    function = _Groups() if op["kind"].startswith("co_group") else _Pair()
    return windows.apply(function).name(FIRST), None


def column_join_program(
    env: StreamExecutionEnvironment, scenario: Scenario, *, keep_late: bool = True, function: Any = None
) -> tuple[DataStream, DataStream | None]:
    """The scenario's program on columns: it selects fields, or calls a function of two elements."""
    op = scenario.script["op"]
    first, second = (stream.map(lambda e: Row(k=e["k"], id=e["id"]), _EVENT) for stream in _sides(env, scenario))
    fields = left("k"), left("id").alias("l"), right("id").alias("r")
    if op["kind"].startswith("interval_join"):
        join = first.key_by("k").interval_join(second.key_by("k")).between(op["lower"], op["upper"])
        if keep_late:
            join = join.side_output_left_late_data(LATE).side_output_right_late_data(LATE)
        results = join.select(*fields) if function is None else join.process(lambda one, two, _: [function(one, two)])
        results = results.name(FIRST)
        return results, results.get_side_output(LATE) if keep_late else None
    windows = first.join(second).where("k").equal_to("k").window(assigner(op["assigner"]))
    windows = windows.allowed_lateness(scenario.script["allowed_lateness"])
    results = windows.select(*fields) if function is None else windows.apply(function)
    return results.name(FIRST), None


JOIN_KINDS = dict.fromkeys(
    (f"{kind}{more}" for kind in ("window_join", "co_group", "interval_join") for more in ("", "2")), join_program
)
