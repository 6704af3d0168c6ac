"""Where stages begin, and how event time reaches them: questions about the graph that several parts of a plan ask."""

from __future__ import annotations

from collections.abc import Iterator

from eventide.datastream._graph import (
    AssignTransformation,
    DataFrameTransformation,
    KeyTransformation,
    SourceTransformation,
    Transformation,
    WindowTransformation,
)

SOURCES = (SourceTransformation, DataFrameTransformation)


def begins_stage(node: Transformation) -> bool:
    """Whether a stage begins here: at windows, and at a generator of the user's that works on the splits of a source.

    Tasks of a source keep no state, so such a generator needs tasks of its own; behind a stage it works in its tasks.
    """
    if isinstance(node, WindowTransformation):
        return True
    supplied = isinstance(node, AssignTransformation) and node.strategy.is_supplied
    return supplied and any(isinstance(head, SOURCES) for head in _heads(node.inputs[0]))


def why_without_parallelism(node: Transformation) -> str | None:
    """Why a number of subtasks of its own makes no difference to an operator, and what does; None if it has one."""
    if isinstance(node, SOURCES):
        return (
            "which is a source: it is read in as many tasks as it has splits, up to the parallelism of the "
            "environment; call env.set_parallelism(...)"
        )
    if isinstance(node, WindowTransformation) and not isinstance(node.inputs[0], KeyTransformation):
        return None if node.parallelism == 1 else "whose windows have no key, so that one subtask has all; key_by first"
    if begins_stage(node):
        return None
    return (
        f"which runs in the tasks of {node.inputs[0].name!r}, without a shuffle between them; call set_parallelism on "
        "the window before it, or env.set_parallelism(...)"
    )


def _heads(node: Transformation) -> Iterator[Transformation]:
    """In whose tasks the elements of a stream are made: sources, and where stages begin."""
    if isinstance(node, (*SOURCES, WindowTransformation)):
        yield node
        return
    for head in (head for source in node.inputs for head in _heads(source)):
        at_source = isinstance(head, SOURCES)
        supplied = isinstance(node, AssignTransformation) and node.strategy.is_supplied
        yield node if at_source and supplied else head


def who_moves_time(node: Transformation) -> Transformation | None:
    """Who may let a watermark come between any two elements that reach a window: None if nobody does.

    A generator of the user's may, unless it promises not to, and a source with event time of its own.
    """
    if isinstance(node, AssignTransformation):
        return None if node.strategy.is_periodic else node
    if isinstance(node, SourceTransformation):
        return node if node.source.gives_timestamps() else None
    if isinstance(node, WindowTransformation | DataFrameTransformation):
        return None
    return next((found for source in node.inputs if (found := who_moves_time(source)) is not None), None)
