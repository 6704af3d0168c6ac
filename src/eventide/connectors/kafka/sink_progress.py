"""How far an exactly-once sink has got: what stands in Kafka beside its records, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.errors import StateError

_TEMPORARY = "temporary "


@dataclass(frozen=True, slots=True)
class Mark:
    """Mark of a transaction: the number of the first micro-batch that is not there, and the checkpoint's id.

    It is an offset of the sink's consumer group, with the checkpoint's id as its metadata.
    """

    next_batch: int
    checkpoint: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run of a job, as a sink sees it.

    Args:
        checkpoint: the id of the checkpoint.
        repeated: the number of the micro-batch that the run before began and did not finish; None if there is none.
        has_begun: whether a run on this checkpoint has left a mark before.
        savepoint: what the checkpoint before should have left, if the job began with a savepoint of it.
    """

    checkpoint: str
    repeated: int | None = None
    has_begun: bool = False
    savepoint: Mark | None = None

    @property
    def is_temporary(self) -> bool:
        """Whether no run will go on with the checkpoint."""
        return self.checkpoint.startswith(_TEMPORARY)


def temporary(name: str) -> str:
    """The id of a checkpoint that no run will go on with, so that its marks are in no job's way."""
    return f"{_TEMPORARY}{name}"


def first_batch_to_write(group: str, found: Sequence[Mark], run: Run, batch: int) -> int:
    """The number of the first micro-batch whose records are not in Kafka, seen from the first one of a run.

    Args:
        group: the sink's group, for messages.
        found: the marks that are in it.
        run: the run.
        batch: the number of its first micro-batch.

    Raises:
        StateError: if that cannot be known, or another job has the group.

    >>> first_batch_to_write("sink", [Mark(8, "mine")], Run("mine", repeated=7, has_begun=True), 7)
    8
    """
    own = [mark.next_batch for mark in found if mark.checkpoint == run.checkpoint]
    others = sorted({m.checkpoint for m in found} - {run.checkpoint})
    if not own:
        before = run.savepoint
        kept = [one for one in others if not one.startswith(_TEMPORARY) and not (before and one == before.checkpoint)]
        if kept and not run.is_temporary:
            raise StateError(
                f"the transactional id prefix {group!r} belongs to a job with another checkpoint ({kept[0]}), and this "
                f"one is {run.checkpoint}: give each sink a prefix of its own. If that job is given up, choose a new "
                f"prefix, or delete the consumer group {group}"
            )
        further = [m.next_batch for m in found if before and m.checkpoint == before.checkpoint]
        if before is not None and max(further, default=0) > before.next_batch:
            raise StateError(
                f"the consumer group {group!r} says that the job before has written all micro-batches before "
                f"{max(further)}, the savepoint is of those before {before.next_batch}: that job has gone on since, "
                "and what it wrote would be written again. Take the savepoint anew, or start with a new prefix"
            )
        if run.has_begun and run.repeated == batch:
            raise StateError(
                f"micro-batch {batch} is repeated, and Kafka no longer knows whether its records are there: the offset "
                f"of the consumer group {group} has expired (offsets.retention.minutes, seven days by default), or its "
                "topic or the group was deleted. Look into the topic; to write them, start with a new prefix"
            )
        return batch
    following = max(own)
    if following > batch + (run.repeated == batch):
        raise StateError(
            f"micro-batch {batch} comes next in the checkpoint, and the consumer group {group} says that those before "
            f"{following} have been written: the checkpoint is an older one than that of the last run. Go on with "
            "that, or start with a new prefix, which writes what has been written since once more"
        )
    return following
