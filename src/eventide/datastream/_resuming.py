"""Where a job begins that has no checkpoint yet: a savepoint of another."""

from __future__ import annotations

from typing import Any, Self

from eventide.errors import ProgramError
from eventide.plan.settings import Host, SavepointRestoreSettings


class Resuming:
    """The part of an environment that has its job go on where another one has stopped."""

    _host: Host

    def __init__(self) -> None:
        self._savepoint: str | None = None
        self._allow_non_restored_state = False
        self._placed: set[str] = set()

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

    def saved_position(self, source_name: str = "data frame") -> Any:
        """Where a DataFrame stood, in Spark's words, to be given to the reader of the one that takes its place.

        Spark itself begins a new query where the options of its readers say. So a program asks here, and says it there;
        a job with a DataFrame whose position was not asked for is refused. Once the job has a checkpoint of its own,
        Spark passes over such options, so the call may stay in the program, as :meth:`from_savepoint` may.

        Args:
            source_name: the name of the source, which is ``data frame``; of several, ``data frame-2`` and so on.

        Returns:
            What Spark's log has, as values of JSON: for Kafka, the offset by topic and partition, as the option
            ``startingOffsets`` takes them; for a data source of Python, what its reader gives as offsets. A list where
            the DataFrame reads from several places. None where there is no savepoint.

        Raises:
            ProgramError: if the savepoint has no such DataFrame.
            StateError: if there is no savepoint where :meth:`from_savepoint` says.
        """
        if self._savepoint is None:
            return None
        header = self._host.savepoint(self._savepoint).header
        found = {source.name: source.offsets for source in header.sources if source.kind == "DataFrame"}
        if source_name not in found:
            there = ", ".join(map(repr, found)) or "none"
            raise ProgramError(f"the savepoint has no DataFrame {source_name!r}; it has {there}")
        self._placed.add(source_name)
        offsets = found[source_name]
        return offsets[0] if len(offsets) == 1 else offsets

    def _beginning(self) -> SavepointRestoreSettings | None:
        """The savepoint that the job begins with, if there is one."""
        if self._savepoint is None:
            return None
        return SavepointRestoreSettings(self._savepoint, self._allow_non_restored_state, frozenset(self._placed))

    def _parallelism_before(self, checkpoint: str | None) -> int | None:
        """The parallelism of its checkpoint, wherever that was made, or of its savepoint; None if it begins anew."""
        recorded = None if checkpoint is None else self._host.recorded_parallelism(checkpoint)
        if recorded is None and self._savepoint is not None:
            parallelism: int | None = self._host.savepoint(self._savepoint).header.parallelism
            return parallelism
        return recorded
