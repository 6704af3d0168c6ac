"""Which run of a job owns its checkpoint, where the store does not tell: the last one that has begun.

A local disk and HDFS have a rename that fails where the target is there, so that of two runs only one writes down the
next micro-batch. Object stores have none. There each run leaves its name in a file when it begins, and looks at that
file every second, and before anything of a micro-batch appears in a file sink. The run that finds another name has been
succeeded, and stops.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from eventide.errors import StateError
from eventide.spark.failures import SUCCEEDED
from eventide.storage import Folder

_FOLDER = "eventide-owner"
_FILE = "owner"
_WITH_FAILING_RENAME = ("hdfs",)


@dataclass(frozen=True, slots=True)
class Ownership:
    """The claim of one run to a checkpoint; picklable.

    Args:
        location: the checkpoint.
        run: a name for the run, which no other has.
    """

    location: str
    run: str

    @staticmethod
    def needed_at(location: str) -> bool:
        """Whether a store lets two runs go on with one checkpoint.

        >>> [Ownership.needed_at(location) for location in ("/jobs/orders", "hdfs://node/jobs", "s3a://bucket/jobs")]
        [False, False, True]
        """
        scheme, separator, _ = location.partition("://")
        return bool(separator) and scheme not in _WITH_FAILING_RENAME

    def claim(self) -> Ownership:
        """Take the place of the run before."""
        self._folder().write(_FILE, json.dumps(self.run).encode())
        return self

    def check(self) -> None:
        """See whether the checkpoint is still this run's.

        Raises:
            StateError: if another run has begun since.
        """
        folder = self._folder()
        if _FILE not in folder.names() or folder.read(_FILE, json.loads) != self.run:
            raise StateError(SUCCEEDED)

    def _folder(self) -> Folder:
        return Folder(f"{self.location.rstrip('/')}/{_FOLDER}", "delete it, and start the job again")
