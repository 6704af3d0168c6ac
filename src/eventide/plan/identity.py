"""What a stage's state depends on: kept in the checkpoint, and compared when a job comes back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from eventide.datastream._graph import Transformation, WindowTransformation
from eventide.errors import StateError
from eventide.runtime.chain import Edge
from eventide.runtime.identity import differences
from eventide.runtime.window.operator import WindowSpec

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def stage_identity(
    node: WindowTransformation,
    operator: WindowSpec,
    edges: Sequence[tuple[Edge, Transformation]],
    max_parallelism: int,
) -> dict[str, str]:
    """All that must not change while a checkpoint is in use, in words that a message can show."""
    edge = edges[0][0]
    return {
        "operator id": node.uid or "none given",
        "window": described(operator.assigner),
        "trigger": described(operator.trigger),
        "evictor": described(operator.evictor),
        "allowed lateness": f"{operator.lateness_ms} ms",
        "window contents": type(operator.contents).__name__,
        "element type": str(edge.codec.value_type),
        "key type": "no key" if edge.key_selector is None else str(edge.codec.key_type),
        "inputs": ", ".join(f"{head.uid or head.name}" for _, head in edges),
        "parallelism": str(edge.subtasks),
        "max parallelism": str(max_parallelism),
    }


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
