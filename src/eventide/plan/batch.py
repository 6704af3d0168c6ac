"""Decides which programs run in batch execution."""

from __future__ import annotations

from collections.abc import Iterable

from eventide.errors import ProgramError
from eventide.plan.execution_mode import RuntimeExecutionMode
from eventide.plan.graph import DataFrameTransformation, InputTransformation, Transformation


def runs_in_batch(nodes: Iterable[Transformation], mode: RuntimeExecutionMode) -> bool:
    """Say whether a program of these nodes runs in batch execution, where all of its input comes before any watermark.

    It does where the mode says so, where the mode is AUTOMATIC and all input is bounded, and where it reads batch
    DataFrames alone.

    Raises:
        ProgramError: if the mode is BATCH, and a source never ends.
    """
    inputs = [node for node in nodes if isinstance(node, InputTransformation)]
    endless = [node.name for node in inputs if not node.is_bounded]
    if mode is RuntimeExecutionMode.BATCH and endless:
        raise ProgramError(
            f"batch mode needs bounded sources; {', '.join(map(repr, endless))} of this program never ends"
        )
    if mode is RuntimeExecutionMode.STREAMING:
        return not endless and all(isinstance(node, DataFrameTransformation) for node in inputs)
    return not endless
