"""Where a job begins that has no checkpoint yet: a savepoint of another."""

from __future__ import annotations

from typing import Self

from eventide.errors import ProgramError
from eventide.plan.settings import Host


class Resuming:
    """The part of an environment that has its job go on where another one has stopped."""

    def __init__(self) -> None:
        self._savepoint: str | None = None
        self._allow_non_restored_state = False

    def from_savepoint(self, location: str, allow_non_restored_state: bool = False) -> Self:
        """Have the job begin with a savepoint: its state, and the positions of its sources.

        It counts where the job has no checkpoint yet. Once it has one, that counts, so the call may stay in the
        program; the savepoint must stay where it is as long as the checkpoint does. Parallelism and the depth of the
        program may be others than those of the job that was saved; the max parallelism may not. State is found by the
        ``uid`` of its operator, or by the id that follows from the program. Operators, sources and sinks that are new
        begin with nothing. Not in PyFlink, where ``flink run --fromSavepoint`` says it.

        Args:
            location: the directory that ``eventide savepoint`` has written, or its URI.
            allow_non_restored_state: whether what has no operator, or no source, in the program may be left behind; a
                job that would do so does not start else.

        Raises:
            ProgramError: if the location is no text.
        """
        if not isinstance(location, str) or not location:
            raise ProgramError(f"from_savepoint needs the directory of a savepoint, not {location!r}")
        self._savepoint = location
        self._allow_non_restored_state = allow_non_restored_state
        return self

    def _parallelism_before(self, host: Host, checkpoint: str | None) -> int | None:
        """The parallelism of its checkpoint, wherever that was made, or of its savepoint; None if it begins anew."""
        recorded = None if checkpoint is None else host.recorded_parallelism(checkpoint)
        if recorded is None and self._savepoint is not None:
            from eventide.savepoint import Savepoint

            return Savepoint(self._savepoint).header.parallelism
        return recorded
