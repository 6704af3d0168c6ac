"""Which operators can have dead letters, and the advice to ask for them in errors about keys and types."""

from __future__ import annotations

from eventide.api.dead_letters import advice_to_call_it_on
from eventide.plan.graph import (
    AssignTransformation,
    FunctionTransformation,
    KeyTransformation,
    OperationTransformation,
    SourceTransformation,
    Transformation,
)
from eventide.runtime.joins.windowed import KeyOfSide
from eventide.runtime.process.redistribution import Redistribution


def why_nothing_is_bad(node: Transformation) -> str | None:
    """The reason why an operator has no dead letters; None if it can have some."""
    match node:
        case KeyTransformation():
            return f"its keys are the fields {', '.join(node.key.columns)}" if node.key.columns else None
        case OperationTransformation():
            if isinstance(node.operation, Redistribution):
                return "it hands elements on as they are; call it on the stream before"
            if not hasattr(node.operation, "dead_letters"):
                return "functions beside a broadcast stream, and joins that select fields, have no dead letters"
            return None
        case FunctionTransformation() | AssignTransformation() | SourceTransformation():
            return None
    return "it is neither a source nor a function, a window or a key; call it on what these give"


def advice_on_key(node: Transformation) -> str:
    """The advice for a job that stops because an element from a node has no key; empty if there is none."""
    if not isinstance(node, KeyTransformation) or why_nothing_is_bad(node) is not None:
        return ""
    if isinstance(node.key.select, KeyOfSide):
        return advice_to_call_it_on("the stream that key_by with the same function gives, before it is joined")
    return advice_to_call_it_on("the stream that key_by gives")


def advice_on_type(node: Transformation, name: str) -> str:
    """The advice for a job that stops because an element from a node is not of its declared type."""
    return advice_to_call_it_on(f"the stream that {name!r} gives") if why_nothing_is_bad(node) is None else ""
