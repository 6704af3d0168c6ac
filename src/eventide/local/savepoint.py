"""Savepoints of local runs: what one leaves, and where another begins."""

from __future__ import annotations

import json

from eventide import __version__
from eventide.local.opened import OpenedParts
from eventide.local.runner import LocalCheckpoint
from eventide.pickling.pickles import bring
from eventide.plan.description import describe
from eventide.plan.job import JobPlan
from eventide.runtime.sources.offsets import restored
from eventide.savepoint import Header, SavedSource, Savepoint, StateWriter


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
