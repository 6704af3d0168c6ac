"""What PyFlink's streams and sinks may be told about how Flink is to run them: taken, without effect on Spark."""

from __future__ import annotations

from typing import Self

from eventide.common._accepted import has_no_effect
from eventide.datastream.slot_sharing_group import SlotSharingGroup

_CHAINED = "a function runs in the tasks of what it follows, up to the next shuffle"


class Hints:
    """Hints on chaining, slots and buffers; each says that it makes no difference."""

    def disable_chaining(self) -> Self:
        """Taken for PyFlink's sake."""
        has_no_effect("disable_chaining", _CHAINED)
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Taken for PyFlink's sake."""
        has_no_effect("slot_sharing_group", "Spark has no slots that could be shared")
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Taken for PyFlink's sake: it is about Flink's own checkpoints."""
        has_no_effect("set_uid_hash", "it is about checkpoints of Flink's; call uid(...)")
        return self

    def set_description(self, description: str) -> Self:
        """Taken for PyFlink's sake: nobody shows it; `name` is what is shown."""
        return self


class StreamHints(Hints):
    """Those that streams alone have."""

    def start_new_chain(self) -> Self:
        """Taken for PyFlink's sake."""
        has_no_effect("start_new_chain", _CHAINED)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Taken for PyFlink's sake."""
        has_no_effect("set_buffer_timeout", "elements travel with their micro-batch")
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Taken for PyFlink's sake: the number of key groups is that of the environment."""
        has_no_effect("set_max_parallelism of one operator", "call env.set_max_parallelism(...)")
        return self
