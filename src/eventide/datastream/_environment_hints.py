"""What PyFlink's environment may be told about how Flink is to run a job: taken, without effect on Spark."""

from __future__ import annotations

from typing import Self

from eventide.common._accepted import AcceptedSettings
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.slot_sharing_group import SlotSharingGroup
from eventide.datastream.state_backend import StateBackend


class EnvironmentHints:
    """Settings of checkpoints, chaining and slots; those that make no difference say so once."""

    def __init__(self) -> None:
        self._checkpoint_config = CheckpointConfig()
        self._accepted = AcceptedSettings()

    def get_checkpoint_interval(self) -> int:
        """What was set in the checkpoint's settings, in milliseconds; it makes no difference."""
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Exactly once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Exactly once."""
        return self._checkpoint_config.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """What was set in the checkpoint's settings; it makes no difference."""
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """What was set in the checkpoint's settings; it makes no difference."""
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Taken for PyFlink's sake: elements travel with their micro-batch."""
        return self._accept("set_buffer_timeout", timeout_millis, "elements travel with their micro-batch")

    def get_buffer_timeout(self) -> int:
        """What was set, in milliseconds."""
        return int(self._accepted.accepted("set_buffer_timeout", 100))

    def disable_operator_chaining(self) -> Self:
        """Taken for PyFlink's sake: functions run in the tasks of what they follow."""
        why = "a function runs in the tasks of what it follows, up to the next shuffle"
        return self._accept("disable_operator_chaining", True, why)

    def is_chaining_enabled(self) -> bool:
        """True."""
        return True

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """True: the number of key groups is one for the whole job."""
        return True

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Taken for PyFlink's sake: what a micro-batch stores are changes in any case."""
        return self._accept("enable_changelog_state_backend", enabled, "what is stored are changes in any case")

    def is_changelog_state_backend_enabled(self) -> bool:
        """True: what a micro-batch stores are changes."""
        return True

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Taken for older programs' sake: state lies in the state store of the Spark session.

        The directory that a backend of Flink 1 names is that of the checkpoint.
        """
        if directory := getattr(state_backend, "checkpoint_path", None):
            self._checkpoint_config.set_checkpoint_storage_dir(directory)
        return self._accept("set_state_backend", state_backend, "state lies in the state store of the Spark session")

    def get_state_backend(self) -> StateBackend | None:
        """What was set."""
        backend: StateBackend | None = self._accepted.accepted("set_state_backend", None)
        return backend

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Taken for PyFlink's sake: there are no savepoints."""
        return self._accept("set_default_savepoint_directory", directory, "there are no savepoints")

    def get_default_savepoint_directory(self) -> str | None:
        """What was set."""
        directory: str | None = self._accepted.accepted("set_default_savepoint_directory", None)
        return directory

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Taken for PyFlink's sake."""
        why = "Spark has no slots that could be shared"
        return self._accept("register_slot_sharing_group", slot_sharing_group, why)

    def close(self) -> None:
        """Taken for PyFlink's sake: the session stays, because others may use it."""

    def _accept(self, name: str, value: object, why: str) -> Self:
        self._accepted.accept(name, value, why)
        return self
