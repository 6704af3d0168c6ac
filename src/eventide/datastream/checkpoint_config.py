"""Where a job keeps what it needs to come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from eventide._absent import finder_of_names
from eventide.common._accepted import AcceptedSettings
from eventide.common.time import Duration
from eventide.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention

_EVERY_BATCH = (
    "every micro-batch is a checkpoint; how often there is one, get_config().set_auto_watermark_interval(...) says"
)
_ONE_BY_ONE = "every micro-batch is a checkpoint, one after the other, and one that fails ends the job"
_NO_BARRIERS = "a micro-batch has no barriers that could be aligned"


class CheckpointConfig(AcceptedSettings):
    """Settings of checkpointing. Flink: ``CheckpointConfig``.

    Every micro-batch is a checkpoint, exactly once; only the place is to be chosen. The other settings of PyFlink's are
    taken, and make no difference.
    """

    def __init__(self) -> None:
        super().__init__()
        self._directory: str | None = None

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> Self:
        """Set the directory of the checkpoint, as Spark takes it: a path, or a URI such as ``s3a://…``.

        A job that is started on the directory of an earlier run goes on where that one stopped.
        """
        self._directory = str(checkpoint_path)
        return self

    def get_checkpoint_storage_dir(self) -> str | None:
        """The directory, or None: then a temporary one is used, and a warning says so."""
        return self._directory

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> Self:
        """Set the directory of the checkpoint, as older programs say it; one that names none leaves it as it is."""
        path = storage.get_checkpoint_path()
        return self if path is None else self.set_checkpoint_storage_dir(path)

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """The directory as older programs ask for it, or None."""
        return None if self._directory is None else FileSystemCheckpointStorage(self._directory)

    def is_checkpointing_enabled(self) -> bool:
        """True: every micro-batch is a checkpoint."""
        return True

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once."""
        return CheckpointingMode.EXACTLY_ONCE

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> Self:
        """Taken for PyFlink's sake; at least once would be no cheaper here."""
        if checkpointing_mode is CheckpointingMode.EXACTLY_ONCE:
            return self
        return self.accept("checkpointing_mode", checkpointing_mode, "every job is exactly once, at no further cost")

    def get_checkpoint_interval(self) -> int:
        """What was set, in milliseconds."""
        return int(self.accepted("checkpoint_interval", -1))

    def set_checkpoint_interval(self, checkpoint_interval: int) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("checkpoint_interval", checkpoint_interval, _EVERY_BATCH)

    def get_checkpoint_timeout(self) -> int:
        """What was set, in milliseconds."""
        return int(self.accepted("checkpoint_timeout", 600_000))

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("checkpoint_timeout", checkpoint_timeout, "a micro-batch takes as long as it takes")

    def get_min_pause_between_checkpoints(self) -> int:
        """What was set, in milliseconds."""
        return int(self.accepted("min_pause_between_checkpoints", 0))

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("min_pause_between_checkpoints", min_pause_between_checkpoints, _EVERY_BATCH)

    def get_max_concurrent_checkpoints(self) -> int:
        """What was set."""
        return int(self.accepted("max_concurrent_checkpoints", 1))

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("max_concurrent_checkpoints", max_concurrent_checkpoints, _ONE_BY_ONE)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether no failure is tolerated."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> Self:
        """Taken for PyFlink's sake."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """What was set."""
        return int(self.accepted("tolerable_checkpoint_failure_number", 0))

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("tolerable_checkpoint_failure_number", tolerable_checkpoint_failure_number, _ONE_BY_ONE)

    def set_externalized_checkpoint_retention(self, retention_mode: ExternalizedCheckpointRetention) -> Self:
        """Taken for PyFlink's sake: a checkpoint that was given a place stays there."""
        if retention_mode is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION:
            return self
        return self.accept("externalized_checkpoint_retention", retention_mode, "a checkpoint stays where it is")

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointRetention) -> Self:
        """Flink 1's name of :meth:`set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def set_externalized_checkpoint_cleanup(self, cleanup_mode: ExternalizedCheckpointRetention) -> Self:
        """Flink 1's newer name of :meth:`set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def is_externalized_checkpoints_enabled(self) -> bool:
        """True: a checkpoint is where the program puts it."""
        return True

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """A checkpoint stays when its job is cancelled."""
        return ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointRetention:
        """Flink 1's name of :meth:`get_externalized_checkpoint_retention`."""
        return self.get_externalized_checkpoint_retention()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """What was set."""
        return bool(self.accepted("unaligned_checkpoints", False))

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("unaligned_checkpoints", enabled, _NO_BARRIERS)

    def disable_unaligned_checkpoints(self) -> Self:
        """Taken for PyFlink's sake."""
        return self.keep("unaligned_checkpoints", False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("aligned_checkpoint_timeout", alignment_timeout, _NO_BARRIERS)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """What was set."""
        timeout: Duration = self.accepted("aligned_checkpoint_timeout", Duration.of_millis(0))
        return timeout

    def set_alignment_timeout(self, alignment_timeout: Duration) -> Self:
        """PyFlink's older name of :meth:`set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """PyFlink's older name of :meth:`get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> Self:
        """Taken for PyFlink's sake."""
        return self.accept("force_unaligned_checkpoints", force_unaligned_checkpoints, _NO_BARRIERS)

    def is_force_unaligned_checkpoints(self) -> bool:
        """What was set."""
        return bool(self.accepted("force_unaligned_checkpoints", False))


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
