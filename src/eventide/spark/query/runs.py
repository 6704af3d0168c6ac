"""Which run of a job planned a micro-batch: timeouts start anew in the first micro-batch that a run has planned.

A run that takes what is there has no name, because it ends with its data. Between two such runs a split counts as
silent. Otherwise its timeout would start anew with each run, and the split would never be idle.

A micro-batch that was planned and not finished is repeated by the next run, and must give what it gave. So the planner
of that micro-batch counts, and not the run that repeats it. A small file below the checkpoint says which that was.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass

from eventide.common.accepted import level_of_the_program
from eventide.errors import ProgramError, StateError

_FOLDER = "eventide-runs"
_FILE = "runs"


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs that have planned the micro-batches of the present run; picklable.

    ``repeated_ms`` is the time by the clock of the micro-batch that an ``earlier`` run planned and did not finish,
    if there is one. A run is None if it has no name, or if it was one of an older version.

    >>> runs = Runs("second", "first", repeated_ms=1_000)
    >>> runs.planner_of(1_000), runs.planner_of(1_200)
    ('first', 'second')
    """

    present: str | None
    earlier: str | None = None
    repeated_ms: int | None = None

    def planner_of(self, clock_ms: int) -> str | None:
        """Return the run that planned the micro-batch of a time by the clock, in milliseconds; None without a name."""
        return self.earlier if clock_ms == self.repeated_ms else self.present


def begun(location: str, run: str | None) -> Runs | None:
    """Write down that a run begins, and return which runs have planned its micro-batches.

    Args:
        location: the job's checkpoint.
        run: a name for the run; None if its timeouts go on from those of the run before.

    Returns:
        None, with a warning, if the checkpoint cannot be opened, read or written, or has an unknown form: runs are not
        told apart.
    """
    try:
        return _begun(location, run)
    except (ProgramError, StateError, OSError, ValueError) as error:
        warnings.warn(
            f"the time between two runs of the job counts as silence of its sources: {error}",
            stacklevel=level_of_the_program(),
        )
        return None


def _begun(location: str, run: str | None) -> Runs:
    from eventide.spark.checkpoint.files import CheckpointFiles
    from eventide.storage.folder import Folder  # Spark loads this module with each stateful processor

    files, folder = CheckpointFiles(location), Folder(f"{location.rstrip('/')}/{_FOLDER}")
    planned = max(files.planned(), default=-1)
    known: list[tuple[str | None, int]] = json.loads(folder.read(_FILE)) if _FILE in folder.names() else []
    planners = [(name, after) for name, after in known if after < planned][-1:]
    folder.write(_FILE, json.dumps([*planners, (run, planned)]).encode())
    if planned <= max(files.committed(), default=-1):
        return Runs(run)
    return Runs(run, planners[0][0] if planners else None, files.plan_of(planned).at_ms)
