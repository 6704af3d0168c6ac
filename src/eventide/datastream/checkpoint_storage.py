"""Checkpoint storages of older programs: ``CheckpointConfig.set_checkpoint_storage`` takes one."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from eventide._absent import hand_out_names
from eventide._secrets import shown_without_secrets
from eventide.errors import ProgramError

__all__ = ["CheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]


class CheckpointStorage(ABC):
    """Place of checkpoints. Flink: ``CheckpointStorage``."""

    checkpoint_path: str | None

    def get_checkpoint_path(self) -> str | None:
        """The directory, if there is one; without a slash at its end, as in Flink."""
        if self.checkpoint_path is None:
            return None
        path = str(self.checkpoint_path)
        is_root = not urlsplit(path).path.strip("/")
        return path if is_root else path.rstrip("/")

    def get_savepoint_path(self) -> str | None:
        """None, because each savepoint is given its own directory."""
        return None


@shown_without_secrets
@dataclass(frozen=True)
class JobManagerCheckpointStorage(CheckpointStorage):
    """The memory of Flink's job manager. On Spark, a directory: the given one, or a temporary one."""

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    checkpoint_path: str | None = None
    max_state_size: int | None = None

    def get_max_state_size(self) -> int:
        """Return the given size in bytes; it has no effect."""
        return self.DEFAULT_MAX_STATE_SIZE if self.max_state_size is None else self.max_state_size


@shown_without_secrets
@dataclass(frozen=True)
class FileSystemCheckpointStorage(CheckpointStorage):
    """A directory: a path, or a URI such as ``s3a://…``, as Spark takes it. The sizes have no effect.

    Raises:
        ProgramError: if no directory is named.

    >>> FileSystemCheckpointStorage("s3a://orders/checkpoint").get_checkpoint_path()
    's3a://orders/checkpoint'
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    checkpoint_path: str | None = None
    file_state_size_threshold: int | None = None
    write_buffer_size: int = -1

    def __post_init__(self) -> None:
        if self.checkpoint_path is None:
            raise ProgramError("FileSystemCheckpointStorage needs the path of a directory")

    def get_min_file_size_threshold(self) -> int:
        """Return the given size in bytes; by default Flink's 20 kB."""
        return 20 * 1024 if self.file_state_size_threshold is None else self.file_state_size_threshold

    def get_write_buffer_size(self) -> int:
        """Return the given size in bytes; by default Flink's 4 kB."""
        return 4096 if self.write_buffer_size < 0 else self.write_buffer_size


hand_out_names(__name__)
