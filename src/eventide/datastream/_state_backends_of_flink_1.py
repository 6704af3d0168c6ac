"""State backends of Flink 1, which also name the place of checkpoints: `env.set_state_backend` takes it over."""

from __future__ import annotations

from eventide.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend


class MemoryStateBackend(HashMapStateBackend):
    """State in memory, and checkpoints in a directory if one is named. Flink 1: ``MemoryStateBackend``."""

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self.checkpoint_path = checkpoint_path


class FsStateBackend(HashMapStateBackend):
    """State in memory, and checkpoints in a directory. Flink 1: ``FsStateBackend``."""

    def __init__(
        self,
        checkpoint_directory_uri: str | None = None,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self.checkpoint_path = checkpoint_directory_uri


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """State in RocksDB, and checkpoints in a directory. Flink 1: ``RocksDBStateBackend``."""

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        self.checkpoint_path = checkpoint_data_uri or getattr(checkpoint_stream_backend, "checkpoint_path", None)
