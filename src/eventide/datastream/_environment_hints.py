"""Settings of PyFlink's environment about how Flink is to run a job: without effect on Spark."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from typing import Self

from eventide.common.accepted import accept, always, what_was_set, without_effect
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode
from eventide.datastream.slot_sharing_group import SlotSharingGroup
from eventide.datastream.state_backend import StateBackend

CHAINED = "a function runs in the tasks of what it follows, up to the next shuffle"
NO_BUFFERS = "elements travel with their micro-batch"
NO_SLOTS = "Spark has no slots that could be shared"
_CHANGES = "what is stored are changes in any case"


class EnvironmentHints:
    """Settings of checkpoints, chaining, buffers, slots and state backends."""

    def __init__(self) -> None:
        self._checkpoint_config = CheckpointConfig()

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

    @without_effect("set_buffer_timeout", NO_BUFFERS)
    def set_buffer_timeout(self, timeout_millis: int) -> Self: ...
    @what_was_set("set_buffer_timeout", 100)
    def get_buffer_timeout(self) -> int: ...

    @without_effect("disable_operator_chaining", CHAINED)
    def disable_operator_chaining(self) -> Self: ...
    @always(True, CHAINED)
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

    @without_effect("set_default_savepoint_directory", "each savepoint is given its own directory")
    def set_default_savepoint_directory(self, directory: str) -> Self: ...
    @what_was_set("set_default_savepoint_directory", None)
    def get_default_savepoint_directory(self) -> str | None: ...

    @without_effect("register_slot_sharing_group", NO_SLOTS)
    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self: ...

    def close(self) -> None:
        """Do nothing: the session stays, because others may use it."""
