"""The checkpoint settings of a job, above all the directory."""

from __future__ import annotations

from typing import ClassVar, Self

from eventide._absent import hand_out_names
from eventide.common.accepted import always, sets, setting
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
_RETAINED = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION


class CheckpointConfig:
    """Settings of checkpointing. Flink: ``CheckpointConfig``.

    Every micro-batch is a checkpoint, exactly once; only its directory is chosen here. PyFlink's other settings are
    accepted, without effect.
    """

    DEFAULT_MODE: ClassVar[CheckpointingMode] = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT: ClassVar[int] = 600_000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS: ClassVar[int] = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS: ClassVar[int] = 1

    def __init__(self) -> None:
        self._directory: str | None = None

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> Self:
        """Set the directory of the checkpoint, as Spark takes it: a path, or a URI such as ``s3a://…``.

        A job that is started on the directory of an earlier run continues where that run stopped.
        """
        self._directory = str(checkpoint_path)
        return self

    def get_checkpoint_storage_dir(self) -> str | None:
        """The directory; with None, a temporary one is used, and a warning says so."""
        return self._directory

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> Self:
        """Set the checkpoint storage, as older programs do; a storage without a directory leaves it as it is."""
        path = storage.get_checkpoint_path()
        return self if path is None else self.set_checkpoint_storage_dir(path)

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """The directory as a checkpoint storage, for older programs; or None."""
        return None if self._directory is None else FileSystemCheckpointStorage(self._directory)

    is_checkpointing_enabled = always(True, _EVERY_BATCH)
    set_checkpointing_mode = sets(
        "checkpointing_mode", _EXACTLY_ONCE, "checkpointing_mode", default=CheckpointingMode.EXACTLY_ONCE
    )
    get_checkpointing_mode = always(CheckpointingMode.EXACTLY_ONCE, _EXACTLY_ONCE)
    set_checkpoint_interval, get_checkpoint_interval = setting(
        "checkpoint_interval", "checkpoint_interval", -1, _HOW_OFTEN
    )
    set_checkpoint_timeout, get_checkpoint_timeout = setting(
        "checkpoint_timeout", "checkpoint_timeout", DEFAULT_TIMEOUT, "a micro-batch takes as long as it takes"
    )
    set_min_pause_between_checkpoints, get_min_pause_between_checkpoints = setting(
        "min_pause_between_checkpoints", "min_pause_between_checkpoints", 0, _HOW_OFTEN
    )
    set_max_concurrent_checkpoints, get_max_concurrent_checkpoints = setting(
        "max_concurrent_checkpoints", "max_concurrent_checkpoints", 1, _ONE_BY_ONE
    )
    set_tolerable_checkpoint_failure_number, get_tolerable_checkpoint_failure_number = setting(
        "tolerable_checkpoint_failure_number", "tolerable_checkpoint_failure_number", 0, _ONE_BY_ONE
    )
    set_externalized_checkpoint_retention, enable_externalized_checkpoints = (
        sets("externalized_checkpoint_retention", _STAYS, parameter, default=_RETAINED)
        for parameter in ("retention_mode", "cleanup_mode")
    )
    set_externalized_checkpoint_cleanup = enable_externalized_checkpoints
    get_externalized_checkpoint_retention = always(_RETAINED, _STAYS)
    get_externalized_checkpoint_cleanup = get_externalized_checkpoint_retention
    is_externalized_checkpoints_enabled = always(True, _STAYS)
    set_prefer_checkpoint_for_recovery, is_prefer_checkpoint_for_recovery = setting(
        "prefer_checkpoint_for_recovery", "prefer_checkpoint_for_recovery", False, _EVERY_BATCH
    )
    enable_unaligned_checkpoints, is_unaligned_checkpoints_enabled = setting(
        "unaligned_checkpoints", "enabled", False, _NO_BARRIERS, value=True
    )
    disable_unaligned_checkpoints = sets("unaligned_checkpoints", "", value=False)
    set_force_unaligned_checkpoints, is_force_unaligned_checkpoints = setting(
        "force_unaligned_checkpoints", "force_unaligned_checkpoints", False, _NO_BARRIERS, value=True
    )
    set_aligned_checkpoint_timeout, get_aligned_checkpoint_timeout = setting(
        "aligned_checkpoint_timeout", "alignment_timeout", Duration.of_millis(0), _NO_BARRIERS
    )
    set_alignment_timeout, get_alignment_timeout = set_aligned_checkpoint_timeout, get_aligned_checkpoint_timeout

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> Self:
        """Set, without effect, whether checkpoint failures fail the job."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else 2**31 - 1)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether checkpoint failures fail the job, as it was set."""
        return self.get_tolerable_checkpoint_failure_number() == 0


hand_out_names(__name__)
