"""Savepoints of local runs, and evidence on event time: both are made of a checkpoint in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

from eventide import __version__
from eventide.local.runner import LocalCheckpoint, OpenedParts
from eventide.pickling.pickles import bring, loads
from eventide.plan.description import describe
from eventide.plan.job import JobPlan
from eventide.runtime.sources.offsets import restored
from eventide.runtime.state.operators import HEAD
from eventide.savepoint import Header, SavedSource, Savepoint, StateWriter
from eventide.why import Evidence


def take_savepoint(plan: JobPlan, checkpoint: LocalCheckpoint, location: str) -> Savepoint:
    """Write a savepoint of a local run that stands between two micro-batches.

    Args:
        plan: the job's.
        checkpoint: what its run has left.
        location: a new directory.

    Raises:
        StateError: if there is something at the location.
    """
    writer = StateWriter(location, plan.max_parallelism)
    writer.begin()
    small = [
        row
        for (stage, subtask), values in sorted(checkpoint.state.items())
        if values
        for row in writer.write(f"{stage}-{subtask}", subtask, values)
    ]
    sources = tuple(
        SavedSource(source.name, "of eventide", str(source.type_info), checkpoint.offsets.get(source.name, {}))
        for source in plan.sources
    )
    described = json.loads(json.dumps(describe(plan)))
    versions = {"eventide": __version__}
    header = Header("local", checkpoint.batch - 1, plan.parallelism, plan.identity(), described, sources, versions)
    writer.finish(header, small)
    return Savepoint(location)


def begun_from(savepoint: Savepoint, plan: JobPlan) -> LocalCheckpoint:
    """Where a run of a plan begins with a savepoint."""
    bring(OpenedParts([], plan.stages, plan.registered_types).classes)
    checkpoint = LocalCheckpoint()
    checkpoint.offsets = {
        source.name: restored(offsets)
        for source in plan.sources
        if (offsets := savepoint.offsets_of(source.name)) is not None
    }
    checkpoint.restore = savepoint.restore
    return checkpoint


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
