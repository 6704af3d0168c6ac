"""What an operator's state is kept under, what it depends on, and whether a program fits a checkpoint."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eventide.errors import ProgramError, StateError
from eventide.plan.graph import OperatorTransformation, Transformation, heads
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.identity import differences
from eventide.runtime.state.operators import FORMAT, check_format, check_program
from eventide.runtime.tasks.task import TaskSpec


def operator_ids(nodes: Sequence[Transformation]) -> dict[int, str]:
    """The id of each node that has tasks of its own, by its number.

    It is the node's uid. Without one, it follows from what the node does and from the ids of those it has its elements
    from; of several that are alike in that, from which of them was made first. So it stays when sinks, stateless
    functions or other operators are added, and when the node is renamed.

    Raises:
        ProgramError: if two nodes of the program have one uid.
    """
    uids = Counter(node.uid for node in nodes if node.uid is not None)
    twice = [uid for uid, times in uids.items() if times > 1]
    if twice:
        raise ProgramError(f"two operators have the uid {twice[0]!r}; give each one of its own")
    ids: dict[int, str] = {}
    alike: Counter[str] = Counter()
    for node in nodes:
        if not node.begins_task:
            continue
        if node.uid is not None:
            ids[node.number] = node.uid
            continue
        does = node.operation.kind if isinstance(node, OperatorTransformation) else type(node).__name__
        upstream = [[ids[head.number] for head in heads([source]) if head.number in ids] for source in node.inputs]
        signature = f"{does} of {upstream}"
        alike[signature] += 1
        digest = hashlib.sha256(f"{signature}, number {alike[signature]}".encode()).hexdigest()
        ids[node.number] = digest[:12]
    return ids


def generators_identity(root: ChainNode) -> dict[str, str]:
    """How many watermark generators learn in a task; whether what each has learnt fits it shows when it is made."""
    number = sum(step.strategy.is_supplied for step in root.assigners())
    return {"watermark generators": str(number)} if number else {}


def audience_of(tasks: Iterable[TaskSpec]) -> str:
    """A name for who waits for what sources and operators say; a new way, or a new channel, makes it another one."""
    ways = sorted((task.id, edge.name, *sorted(edge.channels)) for task in tasks for edge in task.edges)
    return hashlib.sha256(repr(ways).encode()).hexdigest()[:8]


def program_identity(
    sources: Iterable[Any],
    operators: Mapping[str, Mapping[str, str]],
    sinks: Iterable[Any],
    parallelism: int,
    max_parallelism: int,
) -> dict[str, Any]:
    """What a checkpoint remembers of a program, as JSON values: all that it must fit, and its sinks, for who looks."""
    return {
        "format": FORMAT,
        "parallelism": parallelism,
        "max parallelism": max_parallelism,
        "sources": [{"name": source.name, "element type": str(source.type_info)} for source in sources],
        "operators": {operator: dict(identity) for operator, identity in operators.items()},
        "sinks": [{"name": sink.name, "uid": sink.uid} for sink in sinks],
    }


def check_identity(checkpoint: str, found: Mapping[str, Any], program: Mapping[str, Any]) -> None:
    """Refuse a program that does not fit a checkpoint. Sinks and operators that are new in the program do.

    Raises:
        StateError: naming each difference.
    """
    check_format(found.get("format", "of an earlier version"))
    changes = [
        f"{what} was {found[what]} and is now {program[what]}"
        for what in ("parallelism", "max parallelism")
        if found[what] != program[what]
    ]
    before, now = found["sources"], program["sources"]
    if len(before) != len(now):
        changes.append(f"it had {len(before)} source(s) and has {len(now)}")
    for number, (was, is_now) in enumerate(zip(before, now, strict=False), start=1):
        changes += [f"source {number}: {change}" for change in differences(was, is_now)]
    depths = [max((int(o["level"]) for o in one["operators"].values()), default=0) for one in (found, program)]
    if depths[0] != depths[1]:
        changes.append(f"it had {depths[0]} level(s) of operators and has {depths[1]}")
    if changes:
        raise StateError(
            f"the program does not fit the checkpoint {checkpoint}: {'; '.join(changes)}. "
            "Start it with a new checkpoint location, or undo these changes"
        )
    check_program(found["operators"], program["operators"])
