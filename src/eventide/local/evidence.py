"""Evidence on event time from the state of a local run."""

from __future__ import annotations

import json
from collections.abc import Iterator

from eventide.local.runner import LocalCheckpoint
from eventide.pickling.pickles import loads
from eventide.plan.description import describe
from eventide.plan.job import JobPlan
from eventide.runtime.state.operators import HEAD
from eventide.why import Evidence


def evidence(plan: JobPlan, checkpoint: LocalCheckpoint, asked_ms: int) -> Evidence:
    """Return the evidence after the last micro-batch.

    Args:
        plan: the job's.
        checkpoint: what its run has left.
        asked_ms: the time by the clock, in milliseconds.
    """
    heads = [(subtask, values[HEAD]) for (_, subtask), values in checkpoint.state.items() if HEAD in values]

    def read(operator: str, prefix: str) -> Iterator[tuple[int, str, bytes]]:
        for (_, subtask), values in checkpoint.state.items():
            for name, content in values.items():
                if name.startswith(f"{operator}/{prefix}"):
                    yield subtask, name.removeprefix(f"{operator}/"), content

    description = json.loads(json.dumps(describe(plan)))
    return Evidence.of(description, heads, asked_ms, checkpoint.batch, read=read, loads=loads)
