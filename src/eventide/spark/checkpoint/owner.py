"""Which run of a job owns its checkpoint: the last one that has begun.

Each run leaves its name in a file when it begins, and looks at that file every second, and before anything of a
micro-batch appears in a file sink. The run that finds another name has been succeeded, and stops.

On a local disk and in HDFS, Spark itself lets only one of two runs write down the next micro-batch, by a rename that
fails where the target is there. Object stores have none. And what a run writes into a directory of files before it
gets that far, the next run has to tell from its own in any store.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from eventide.errors import StateError
from eventide.spark.failures import ONE_RUN_ONLY, SUCCEEDED
from eventide.storage import Folder

_FOLDER = "eventide-owner"
_FILE = "owner"
_GONE = (
    "the checkpoint {location} does not say any more which run it belongs to: it has been deleted, or another run of "
    f"this job has begun with it; this run has stopped; {ONE_RUN_ONLY}"
)


@dataclass(frozen=True, slots=True)
class Ownership:
    """The claim of one run to a checkpoint; picklable.

    Args:
        location: the checkpoint.
        run: a name for the run, which no other has.
    """

    location: str
    run: str

    def claim(self) -> Ownership:
        """Take the place of the run before."""
        self._folder().write(_FILE, json.dumps(self.run).encode())
        return self

    def check(self) -> None:
        """See whether the checkpoint is still this run's.

        Raises:
            StateError: if another run has begun since, or the checkpoint has been deleted.
        """
        try:
            owner = self._folder().read(_FILE, json.loads)
        except FileNotFoundError as error:
            raise StateError(_GONE.format(location=self.location)) from error
        if owner != self.run:
            raise StateError(SUCCEEDED)

    def _folder(self) -> Folder:
        return Folder(f"{self.location.rstrip('/')}/{_FOLDER}", "delete it, and start the job again")
