"""What a stage's state depends on: kept in the checkpoint, and compared when a job comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eventide.datastream._graph import KeyTransformation, Transformation, WindowTransformation
from eventide.errors import StateError
from eventide.plan.speeds import PlannedOperator
from eventide.runtime.chain.chain import ChainNode, Edge
from eventide.runtime.identity import differences
from eventide.runtime.window.spec import WindowSpec

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def stage_identity(
    node: WindowTransformation,
    operator: PlannedOperator,
    edges: Sequence[tuple[Edge, Transformation]],
    max_parallelism: int,
) -> dict[str, str]:
    """All that must not change while a checkpoint is in use, in words that a message can show."""
    key = node.inputs[0] if isinstance(node.inputs[0], KeyTransformation) else None
    window: WindowSpec = node.build(node.name)
    return {
        "operator id": node.uid or "none given",
        "window": described(window.assigner),
        "trigger": described(window.trigger),
        "evictor": described(window.evictor),
        "allowed lateness": f"{window.lateness_ms} ms",
        "window contents": window.contents.describe(),
        "stored form": type(operator.spec).__name__,
        "element type": str(node.inputs[0].type_info),
        "key type": "no key" if key is None else str(key.key_type),
        "key columns": "none" if key is None else ", ".join(key.columns) or "none",
        "inputs": ", ".join(f"{head.uid or head.name}" for _, head in edges),
        "parallelism": str(edges[0][0].subtasks),
        "max parallelism": str(max_parallelism),
    }


def split_stage_identity(node: Transformation, edges: Sequence[tuple[Edge, Transformation]]) -> dict[str, str]:
    """The same for a stage of watermark generators."""
    return {
        "operator id": node.uid or "none given",
        "element type": str(node.inputs[0].type_info),
        "inputs": ", ".join(f"{head.uid or head.name}" for _, head in edges),
        "parallelism": str(edges[0][0].subtasks),
    }


def generators_identity(root: ChainNode) -> dict[str, str]:
    """How many watermark generators learn in a stage; that what each has learnt fits it shows when it is made."""
    number = sum(step.strategy.is_supplied for step in root.assigners())
    return {"watermark generators": str(number)} if number else {}


def described(value: Any) -> str:
    """A user's object in words that are the same in every process."""
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return type(value).__qualname__
    return _ADDRESS.sub("", repr(value))


def check_identity(
    checkpoint: str, found: Mapping[str, Mapping[str, str]], program: Mapping[str, Mapping[str, str]]
) -> None:
    """Refuse a program that does not fit a checkpoint.

    Raises:
        StateError: naming each difference.
    """
    changes: list[str] = []
    for stage in sorted({*found, *program}):
        if stage not in found:
            changes.append(f"{stage} is new in the program")
        elif stage not in program:
            changes.append(f"{stage} is missing in the program")
        else:
            changes += [f"{stage}: {change}" for change in differences(found[stage], program[stage])]
    if changes:
        raise StateError(
            f"the program does not fit the checkpoint {checkpoint}: " + "; ".join(changes) + ". "
            "Start it with a new checkpoint location, or undo these changes"
        )
