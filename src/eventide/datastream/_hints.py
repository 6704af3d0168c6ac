"""Settings of PyFlink's environment, streams and sinks about how Flink is to run a job: without effect on Spark.

State backends of Flink 1 are here too: they also name the place of checkpoints, which `set_state_backend` takes over.
"""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from typing import Self

from eventide.common.accepted import accept, always, what_was_set, without_effect
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.slot_sharing_group import SlotSharingGroup
from eventide.datastream.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend

_CHAINED = "a function runs in the tasks of what it follows, up to the next shuffle"
_NO_BUFFERS = "elements travel with their micro-batch"
_NO_SLOTS = "Spark has no slots that could be shared"
_CHANGES = "what is stored are changes in any case"


class EnvironmentHints:
    """Settings of checkpoints, chaining, buffers, slots and state backends."""

    _checkpoint_config: CheckpointConfig

    def get_checkpoint_interval(self) -> int:
        """Return what was set in the checkpoint's settings, in milliseconds; it makes no difference."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once."""
        return self._checkpoint_config.get_checkpointing_mode()

    get_checkpointing_consistency_mode = get_checkpointing_mode

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return what was set in the checkpoint's settings; it makes no difference."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return what was set in the checkpoint's settings; it makes no difference."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    @without_effect("set_buffer_timeout", _NO_BUFFERS)
    def set_buffer_timeout(self, timeout_millis: int) -> Self: ...
    @what_was_set("set_buffer_timeout", 100)
    def get_buffer_timeout(self) -> int: ...

    @without_effect("disable_operator_chaining", _CHAINED)
    def disable_operator_chaining(self) -> Self: ...
    @always(True, _CHAINED)
    def is_chaining_enabled(self) -> bool: ...
    @always(True, "the number of key groups is one for the whole job")
    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool: ...

    @without_effect("enable_changelog_state_backend", _CHANGES)
    def enable_changelog_state_backend(self, enabled: bool) -> Self: ...
    @always(True, _CHANGES)
    def is_changelog_state_backend_enabled(self) -> bool: ...

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Taken without effect, for older programs: state lies in the state store of the Spark session.

        The directory that a backend of Flink 1 names is that of the checkpoint.
        """
        if directory := getattr(state_backend, "checkpoint_path", None):
            self._checkpoint_config.set_checkpoint_storage_dir(directory)
        return accept(self, "set_state_backend", state_backend, "state lies in the state store of the Spark session")

    @what_was_set("set_state_backend", None)
    def get_state_backend(self) -> StateBackend | None: ...

    @without_effect("register_slot_sharing_group", _NO_SLOTS)
    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self: ...

    def close(self) -> None:
        """Do nothing: the session stays, because others may use it."""


class Hints:
    """Hints that streams and sinks have."""

    @without_effect("disable_chaining", _CHAINED)
    def disable_chaining(self) -> Self: ...
    @without_effect("slot_sharing_group", _NO_SLOTS)
    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self: ...
    @without_effect("set_uid_hash", "it is about Flink's checkpoints; call uid(...)")
    def set_uid_hash(self, uid_hash: str) -> Self: ...

    def set_description(self, description: str) -> Self:
        """Taken without effect: `name` is what is shown."""
        return self


class StreamHints(Hints):
    """Hints that streams alone have."""

    @without_effect("start_new_chain", _CHAINED)
    def start_new_chain(self) -> Self: ...
    @without_effect("set_buffer_timeout", _NO_BUFFERS)
    def set_buffer_timeout(self, timeout_millis: int) -> Self: ...
    @without_effect("set_max_parallelism of one operator", "call env.set_max_parallelism(...)")
    def set_max_parallelism(self, max_parallelism: int) -> Self: ...


class SinkHints(Hints):
    """Hints that sinks alone have."""

    @without_effect("set_parallelism of a sink", "elements are written in the tasks that made them")
    def set_parallelism(self, parallelism: int) -> Self: ...


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
