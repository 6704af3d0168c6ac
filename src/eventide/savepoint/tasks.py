"""Small values in the state of tasks, under another parallelism: watermarks, generators, and what is remembered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from eventide.runtime.chain.watermarks import KeptGenerator, gathered, lowest
from eventide.runtime.eventtime.valve import ValveEdge
from eventide.runtime.metrics import add_up
from eventide.runtime.observation.event_time_log import (
    LATE,
    NUMBERS,
    REMEMBERED,
    Lateness,
    remembered,
    stored,
)
from eventide.runtime.state.declared import DECLARED, declared_together
from eventide.runtime.tasks.split_task import subtask_of_split
from eventide.runtime.tasks.task import TaskSpec

GATE, GENERATORS, SPLITS = "gate", "generators", "splits"
SAVED = (GATE, GENERATORS, SPLITS, DECLARED, *REMEMBERED, "alignment", "window state")
"""The small values that a savepoint has; the others say how the rest lies in a subtask."""

_EDGE = re.compile(r"(\d+:)([^:/]+)((?:[:/].*)?)", re.DOTALL)
"""The name of an edge, or what begins with it: the input, the id of what it comes from, and the rest."""

Saved: TypeAlias = Mapping[str, Mapping[int, bytes]]
"""The small values of an operator, by name and subtask."""


def of_subtask(task: TaskSpec, saved: Saved, subtask: int, ids: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Give the first values of a subtask of an operator, by name.

    ``ids`` are the ids of sources that have another one than in the savepoint, by that.
    """
    for name, contents in saved.items():
        by_subtask = contents
        if ids and name in (GATE, SPLITS):
            by_subtask = {of: renamed(content, ids) for of, content in contents.items()}
        content = _content(task, saved, name, by_subtask, subtask, ids)
        if content is not None:
            yield name, content


def renamed(content: bytes, ids: Mapping[str, str]) -> bytes:
    """A value in JSON in which sources have other ids, in the names of the edges that come from them.

    >>> renamed(b'{"0:1a": [4, {"1:2b/s": 5}], "s": "0:1abc"}', {"1a": "2b", "2b": "1a"})
    b'{"0:2b": [4, {"1:1a/s": 5}], "s": "0:1abc"}'
    """
    return json.dumps(_renamed(json.loads(content), ids)).encode()


def _renamed(value: object, ids: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {_renamed(name, ids): _renamed(of_it, ids) for name, of_it in value.items()}
    if isinstance(value, list):
        return [_renamed(part, ids) for part in value]
    if not isinstance(value, str):
        return value
    edge = _EDGE.fullmatch(value)
    return value if edge is None else f"{edge[1]}{ids.get(edge[2], edge[2])}{edge[3]}"


def _content(
    task: TaskSpec, saved: Saved, name: str, by_subtask: Mapping[int, bytes], subtask: int, ids: Mapping[str, str]
) -> bytes | None:
    if name in REMEMBERED and subtask > 0:
        return None  # the first subtask has that of all
    # All subtasks hear the same, so what they know of watermarks is equal.
    first = by_subtask[min(by_subtask)]
    if name == GATE:
        return json.dumps(with_channels(json.loads(first), task.edges)).encode()
    if name == SPLITS:
        return json.dumps(_splits([json.loads(one) for one in by_subtask.values()], task, subtask)).encode()
    if name == GENERATORS:
        return _generators(task, by_subtask, subtask, ids, of_splits=SPLITS in saved)
    if name == DECLARED:
        return declared_together(by_subtask.values())
    if name == LATE:
        return _late(_all_remembered(by_subtask))
    if name == NUMBERS:
        return _numbers(_all_remembered(by_subtask))
    return first


def with_channels(valve: Mapping[str, Any], edges: tuple[ValveEdge, ...]) -> dict[str, Any]:
    """A valve as it is stored, with the channels of a program in which operators may have other numbers of subtasks.

    Where an operator has, each of its subtasks begins as the one that counted and was lowest, or, if all were idle, as
    the one that was furthest: the watermark neither goes back, nor runs ahead of what they have sent.
    """
    channels, idleness = {**valve["channels"]}, {**valve["idleness"]}
    for edge in edges:
        number = str(edge.input)
        if edge.is_source or number not in channels:
            continue
        watermark, idle, members, removed, expected = channels[number]
        before = {name for name in expected if name.rpartition("/")[0] == edge.name}
        now = [f"{edge.name}/{channel}" for channel in edge.channels]
        if not before or before == {*now}:
            continue
        begins = _lowest([members[name] for name in sorted(before & members.keys())])
        others = {name: member for name, member in members.items() if name not in before}
        members = {**others, **dict.fromkeys(now, begins)}
        expected = sorted([*(name for name in expected if name not in before), *now])
        channels[number] = [watermark, idle, members, removed, expected]
        if edge.name in idleness:
            idleness[edge.name] = _heard_together(idleness[edge.name], edge.channels)
    same = {name: valve[name] for name in ("splits", "inputs", "idle sources") if name in valve}
    return {**same, "idleness": idleness, "channels": channels}


def _lowest(members: list[list[Any]]) -> list[Any]:
    """The member that new members begin as, given members as they are stored (watermark, idle, aligned, held)."""
    active = [member for member in members if not member[1]]
    counting = [member for member in active if member[2]] or active
    return min(counting) if counting else max(members)


def _heard_together(idleness: list[Any], channels: tuple[str, ...]) -> list[Any]:
    """The clocks of channels that were heard of when the last of others was."""
    last, silent, held, *times = idleness
    if not last:
        return idleness
    silent = [*channels] if {*silent} >= last.keys() else []
    return [
        dict.fromkeys(channels, max(last.values())),
        silent,
        [*channels] if {*held} >= last.keys() else [],
        *times,
    ]


def _splits(states: list[dict[str, Any]], task: TaskSpec, subtask: int) -> dict[str, list[Any]]:
    """The splits that a subtask has the generators of."""

    def is_mine(entry: list[Any]) -> bool:
        return subtask_of_split(entry[1], task.parallelism) == subtask

    found = {
        name: sorted(entry for state in states for entry in state[name] if is_mine(entry))
        for name in ("open", "ended", "expected")
    }
    return found | {"ended sources": sorted({edge for state in states for edge in state["ended sources"]})}


def _generators(
    task: TaskSpec, by_subtask: Mapping[int, bytes], subtask: int, ids: Mapping[str, str], *, of_splits: bool
) -> bytes | None:
    """The generators of a subtask's splits, or of its own channel."""
    if not of_splits and {*by_subtask} == {*range(task.parallelism)}:
        return by_subtask[subtask]

    def name_of(name: str) -> str:
        return json.dumps(_renamed(json.loads(name), ids)) if of_splits and ids else name

    def choose(name: str, found: list[KeptGenerator]) -> KeptGenerator | None:
        if not of_splits:
            return lowest(found)
        _, split, _ = json.loads(name)
        return found[0] if subtask_of_split(split, task.parallelism) == subtask else None

    return gathered((content for _, content in sorted(by_subtask.items())), choose, name_of)


def _all_remembered(by_subtask: Mapping[int, bytes]) -> list[Any]:
    """The memories of subtasks under a name, in their order."""
    found = (remembered(content) for _, content in sorted(by_subtask.items()))
    return [content for content in found if content is not None]


def _late(by_subtask: list[Any]) -> bytes:
    late = Lateness()
    for one in by_subtask:
        late.take(Lateness.of(one))
    return stored(late.snapshot())


def _numbers(by_subtask: list[Any]) -> bytes | None:
    """Add up the counts of all subtasks; gauges are reported again."""
    if not by_subtask:
        return None
    counters = add_up([one["counters"] for one in by_subtask])
    return stored({"name": by_subtask[0]["name"], "counters": counters, "held": {}})
