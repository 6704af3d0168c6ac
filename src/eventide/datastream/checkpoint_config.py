"""Where a job keeps what it needs to come back."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from typing import Self

from eventide._absent import hand_out_names
from eventide.common.accepted import accept, always, what_was_set, without_effect
from eventide.common.time import Duration
from eventide.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention

_EVERY_BATCH = "every micro-batch is a checkpoint"
_HOW_OFTEN = f"{_EVERY_BATCH}; how often there is one, get_config().set_auto_watermark_interval(...) says"
_ONE_BY_ONE = f"{_EVERY_BATCH}, one after the other, and one that fails ends the job"
_NO_BARRIERS = "a micro-batch has no barriers that could be aligned"
_EXACTLY_ONCE = "every job is exactly once, at no further cost"
_STAYS = "a checkpoint stays where it is"


class CheckpointConfig:
    """Settings of checkpointing. Flink: ``CheckpointConfig``.

    Every micro-batch is a checkpoint, exactly once; only the place is to be chosen. PyFlink's other settings are
    taken, and make no difference.
    """

    def __init__(self) -> None:
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

    @always(True, _EVERY_BATCH)
    def is_checkpointing_enabled(self) -> bool: ...

    @always(CheckpointingMode.EXACTLY_ONCE, _EXACTLY_ONCE)
    def get_checkpointing_mode(self) -> CheckpointingMode: ...

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> Self:
        """Taken without effect; at least once would be no cheaper here."""
        if checkpointing_mode is CheckpointingMode.EXACTLY_ONCE:
            return self
        return accept(self, "checkpointing_mode", checkpointing_mode, _EXACTLY_ONCE)

    @without_effect("checkpoint_interval", _HOW_OFTEN)
    def set_checkpoint_interval(self, checkpoint_interval: int) -> Self: ...
    @what_was_set("checkpoint_interval", -1)
    def get_checkpoint_interval(self) -> int: ...

    @without_effect("checkpoint_timeout", "a micro-batch takes as long as it takes")
    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> Self: ...
    @what_was_set("checkpoint_timeout", 600_000)
    def get_checkpoint_timeout(self) -> int: ...

    @without_effect("min_pause_between_checkpoints", _HOW_OFTEN)
    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> Self: ...
    @what_was_set("min_pause_between_checkpoints", 0)
    def get_min_pause_between_checkpoints(self) -> int: ...

    @without_effect("max_concurrent_checkpoints", _ONE_BY_ONE)
    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> Self: ...
    @what_was_set("max_concurrent_checkpoints", 1)
    def get_max_concurrent_checkpoints(self) -> int: ...

    @without_effect("tolerable_checkpoint_failure_number", _ONE_BY_ONE)
    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> Self: ...
    @what_was_set("tolerable_checkpoint_failure_number", 0)
    def get_tolerable_checkpoint_failure_number(self) -> int: ...

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> Self:
        """Set, without effect, that no failure is tolerated, or that any number is."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether no failure is tolerated, as it was set."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_externalized_checkpoint_retention(self, retention_mode: ExternalizedCheckpointRetention) -> Self:
        """Taken without effect: a checkpoint that was given a place stays there."""
        if retention_mode is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION:
            return self
        return accept(self, "externalized_checkpoint_retention", retention_mode, _STAYS)

    @always(ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION, _STAYS)
    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention: ...
    @always(True, _STAYS)
    def is_externalized_checkpoints_enabled(self) -> bool: ...

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointRetention) -> Self:
        """Flink 1's name of :meth:`set_externalized_checkpoint_retention`."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    set_externalized_checkpoint_cleanup = enable_externalized_checkpoints
    get_externalized_checkpoint_cleanup = get_externalized_checkpoint_retention

    @without_effect("unaligned_checkpoints", _NO_BARRIERS)
    def enable_unaligned_checkpoints(self, enabled: bool = True) -> Self: ...
    @without_effect("unaligned_checkpoints", value=False)
    def disable_unaligned_checkpoints(self) -> Self: ...
    @what_was_set("unaligned_checkpoints", False)
    def is_unaligned_checkpoints_enabled(self) -> bool: ...

    @without_effect("force_unaligned_checkpoints", _NO_BARRIERS)
    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> Self: ...
    @what_was_set("force_unaligned_checkpoints", False)
    def is_force_unaligned_checkpoints(self) -> bool: ...

    @without_effect("aligned_checkpoint_timeout", _NO_BARRIERS)
    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> Self: ...
    @what_was_set("aligned_checkpoint_timeout", Duration.of_millis(0))
    def get_aligned_checkpoint_timeout(self) -> Duration: ...

    set_alignment_timeout = set_aligned_checkpoint_timeout
    get_alignment_timeout = get_aligned_checkpoint_timeout


hand_out_names(__name__)
