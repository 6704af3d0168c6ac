"""What PyFlink's environment may be told about how Flink is to run a job: taken, without effect on Spark."""

from __future__ import annotations

from typing import Any, Self

from eventide.common._accepted import AcceptedSettings
from eventide.datastream.checkpoint_config import CheckpointConfig
from eventide.datastream.checkpointing_mode import CheckpointingMode


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
        self._accepted.accept("set_buffer_timeout", timeout_millis, "elements travel with their micro-batch")
        return self

    def get_buffer_timeout(self) -> int:
        """What was set, in milliseconds."""
        return int(self._accepted.accepted("set_buffer_timeout", 100))

    def disable_operator_chaining(self) -> Self:
        """Taken for PyFlink's sake: functions run in the tasks of what they follow."""
        why = "a function runs in the tasks of what it follows, up to the next shuffle"
        self._accepted.accept("disable_operator_chaining", True, why)
        return self

    def is_chaining_enabled(self) -> bool:
        """True."""
        return True

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """True: the number of key groups is one for the whole job."""
        return True

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Taken for PyFlink's sake: what a micro-batch stores are changes in any case."""
        self._accepted.accept("enable_changelog_state_backend", enabled, "what is stored are changes in any case")
        return self

    def is_changelog_state_backend_enabled(self) -> bool:
        """True: what a micro-batch stores are changes."""
        return True

    def register_slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        """Taken for PyFlink's sake."""
        why = "Spark has no slots that could be shared"
        self._accepted.accept("register_slot_sharing_group", slot_sharing_group, why)
        return self

    def close(self) -> None:
        """Taken for PyFlink's sake: the session stays, because others may use it."""
