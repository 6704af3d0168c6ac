"""Hints of PyFlink's streams and sinks about how Flink is to run them: without effect on Spark."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from typing import Self

from eventide.common.accepted import without_effect
from eventide.datastream._environment_hints import CHAINED, NO_BUFFERS, NO_SLOTS
from eventide.datastream.slot_sharing_group import SlotSharingGroup


class Hints:
    """Hints that streams and sinks have."""

    @without_effect("disable_chaining", CHAINED)
    def disable_chaining(self) -> Self: ...
    @without_effect("slot_sharing_group", NO_SLOTS)
    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self: ...
    @without_effect("set_uid_hash", "it is about checkpoints of Flink's; call uid(...)")
    def set_uid_hash(self, uid_hash: str) -> Self: ...

    def set_description(self, description: str) -> Self:
        """Taken without effect: `name` is what is shown."""
        return self


class StreamHints(Hints):
    """Hints that streams alone have."""

    @without_effect("start_new_chain", CHAINED)
    def start_new_chain(self) -> Self: ...
    @without_effect("set_buffer_timeout", NO_BUFFERS)
    def set_buffer_timeout(self, timeout_millis: int) -> Self: ...
    @without_effect("set_max_parallelism of one operator", "call env.set_max_parallelism(...)")
    def set_max_parallelism(self, max_parallelism: int) -> Self: ...


class SinkHints(Hints):
    """Hints that sinks alone have."""

    @without_effect("set_parallelism of a sink", "elements are written in the tasks that made them")
    def set_parallelism(self, parallelism: int) -> Self: ...
