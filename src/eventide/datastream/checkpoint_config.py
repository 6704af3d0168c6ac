"""Where a job keeps what it needs to come back."""

from __future__ import annotations

from typing import Self


class CheckpointConfig:
    """Settings of checkpointing. Flink: ``CheckpointConfig``.

    Every micro-batch is a checkpoint, exactly once; only the place is to be chosen.
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
