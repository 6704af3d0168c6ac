"""Identity of operators' state: its id, what it depends on, and whether a program fits a checkpoint."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from inspect import getattr_static
from types import MethodType
from typing import Any

from eventide.common.watermark_generators import SuppliedGenerator
from eventide.errors import ProgramError, StateError
from eventide.plan.graph import AssignTransformation, KeyTransformation, OperationTransformation, Transformation, heads
from eventide.runtime.chain.chain import ChainNode
from eventide.runtime.state.operators import (
    FORMAT,
    ID_LENGTH,
    WHERE_KNOWN,
    check_format,
    check_program,
    differences,
    numbered,
)
from eventide.runtime.tasks.operator import PlannedOperator
from eventide.runtime.tasks.task import TaskSpec

_MAY_CHANGE = ("max parallelism", "stored form", *WHERE_KNOWN)
"""Parts of an operator's identity that may change while its id stays the same."""


def operator_ids(nodes: Sequence[Transformation], operators: Mapping[int, PlannedOperator]) -> dict[int, str]:
    """The id of each node that keeps state, an operator or a user-defined generator, by its number.

    It is the node's uid. Without one, it follows from what the node does, from the names of its functions, and from the
    ids of its inputs. Nodes that are equal in all of these are numbered in the order in which they were made. So the id
    stays when sinks, stateless functions or operators of another kind are added, and when the node is renamed.

    Args:
        nodes: all of the program, in the order in which they were made.
        operators: how each operator runs, by its number.

    Raises:
        ProgramError: if two nodes of the program have one uid.
    """
    ids: dict[int, str] = {}
    numbers: Counter[str] = Counter()
    for node in nodes:
        if node.uid is not None:
            ids[node.number] = node.uid
        elif node.begins_task or (isinstance(node, AssignTransformation) and node.strategy.is_supplied):
            upstream = [[ids[head.number] for head in heads([source]) if head.number in ids] for source in node.inputs]
            signature = f"{_described(node, operators)} of {upstream}"
            first = hashlib.sha256(signature.encode()).hexdigest()[:ID_LENGTH]
            numbers[first] += 1
            ids[node.number] = numbered(first, numbers[first])
    twice = [one for one, times in Counter(ids.values()).items() if times > 1]
    if twice:
        raise ProgramError(f"two operators have the uid {twice[0]!r}; give each one of its own")
    return ids


def function_names(node: OperationTransformation, operator: PlannedOperator) -> str:
    """Names of the user's functions of an operator, key selectors first, for messages."""
    keys = [source.key for source in node.inputs if isinstance(source, KeyTransformation)]
    functions = [*(key.select for key in keys if not key.columns), *operator.spec.user_functions()]
    return ", ".join(map(name_of, functions)) or "none"


def name_of(function: object) -> str:
    """The name of a function, or of the class of a function object, where it is defined.

    >>> from functools import partial
    >>> name_of(len), name_of(partial(len)), name_of([].append)
    ('len', 'len', 'list.append')
    """
    if isinstance(function, partial):
        return name_of(function.func)
    wrapped = getattr_static(function, "__wrapped__", None)
    if wrapped is not None:
        return name_of(wrapped)
    if isinstance(function, MethodType):  # its own name tells where it was inherited from
        return f"{name_of(function.__self__)}.{function.__name__}"
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _described(node: Transformation, operators: Mapping[int, PlannedOperator]) -> str:
    """Describe a node in words that are equal in every process."""
    if isinstance(node, OperationTransformation):
        operator = operators[node.number]
        says = {what: text for what, text in operator.identity.items() if what not in _MAY_CHANGE}
        return f"{node.operation.kind} with {sorted(says.items())} by {function_names(node, operator)}"
    if isinstance(node, AssignTransformation) and isinstance(node.strategy.generator, SuppliedGenerator):
        generator = node.strategy.generator
        return f"watermarks of {generator.name or name_of(generator.supplier)}"
    return type(node).__name__


def generators_identity(root: ChainNode) -> dict[str, str]:
    """Which watermark generators learn in a task; whether what each has learnt fits it shows when it is made."""
    ids = sorted(operator.id for operator in root.assigners() if operator.strategy.is_supplied)
    return {"watermark generators": ", ".join(ids)} if ids else {}


def audience_of(tasks: Iterable[TaskSpec]) -> str:
    """A name for the tasks that wait for reports of sources and operators; a new way or channel makes it another."""
    ways = sorted((task.id, edge.name, *sorted(edge.channels)) for task in tasks for edge in task.edges)
    return hashlib.sha256(repr(ways).encode()).hexdigest()[:8]


def program_identity(
    sources: Iterable[Any],
    operators: Mapping[str, Mapping[str, str]],
    sinks: Iterable[Any],
    parallelism: int | None,
    max_parallelism: int,
) -> dict[str, Any]:
    """Return a program as a checkpoint remembers it, in JSON values: all that must fit, and its sinks, for viewers."""
    return {
        "format": FORMAT,
        "parallelism": parallelism,
        "max parallelism": max_parallelism,
        "sources": [
            {"name": source.name, "element type": str(source.type_info), **_kind_of(source)} for source in sources
        ],
        "operators": {operator: dict(identity) for operator, identity in operators.items()},
        "sinks": [{"name": sink.name, "uid": sink.uid} for sink in sinks],
    }


def _kind_of(source: object) -> dict[str, str]:
    """The kind of a source, whose positions another kind would not know; none for a class of the program's own.

    That may be renamed. Version 0.1.0 did not store it.
    """
    kind = type(getattr(source, "source", source))
    return {"kind": kind.__name__} if kind.__module__.startswith("eventide.") else {}


def changes_of_source(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Each property in which a source differs from what it was, in words; its kind counts where both are known.

    >>> changes_of_source({"name": "a", "kind": "FileSource"}, {"name": "a", "kind": "KafkaSource"})
    ["kind was 'FileSource' and is now 'KafkaSource'"]
    >>> changes_of_source({"name": "a"}, {"name": "a", "kind": "KafkaSource"})
    []
    """
    both = before.keys() & now.keys() | {"name", "element type"}
    return differences(*({what: text for what, text in one.items() if what in both} for one in (before, now)))


def dealt_out_into(key_groups: int, program: Mapping[str, Any]) -> dict[str, Any]:
    """Return a program as :func:`program_identity` has it with another max parallelism: its own, and its operators'.

    >>> program = {"max parallelism": 8, "operators": {"a": {"max parallelism": "8"}, "b": {}}}
    >>> dealt_out_into(16, program)
    {'max parallelism': 16, 'operators': {'a': {'max parallelism': '16'}, 'b': {}}}
    """
    what = "max parallelism"
    operators = {
        operator: {**identity, what: str(key_groups)} if what in identity else dict(identity)
        for operator, identity in program["operators"].items()
    }
    return {**program, what: key_groups, "operators": operators}


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
        changes += [f"source {number}: {change}" for change in changes_of_source(was, is_now)]
    depths = [max((int(o["level"]) for o in one["operators"].values()), default=0) for one in (found, program)]
    if depths[0] != depths[1]:
        changes.append(f"it had {depths[0]} stage(s) of operators and has {depths[1]}")
    if changes:
        raise StateError(
            f"the program does not fit the checkpoint {checkpoint}: {'; '.join(changes)}. Undo these changes; or take "
            "a savepoint of the checkpoint (eventide savepoint CHECKPOINT TARGET), which lets more change, and begin "
            "with it by env.from_savepoint(TARGET), with a new checkpoint location"
        )
    check_program(found["operators"], program["operators"])
