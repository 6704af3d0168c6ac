"""Ways on which some elements leave a task split by split, and others of all splits together."""

from __future__ import annotations

from abc import ABC, abstractmethod

from eventide.runtime.exchange.partitioners import RecordWriter, StreamPartitioner


class DividingPartitioner(ABC):
    """Part of a partitioner by which some elements may leave split by split, and others of all splits together.

    Which ones do follows from the watermark that the receiver stood at before the micro-batch.
    """

    __slots__ = ()

    @abstractmethod
    def knowing(self, watermark_ms: int) -> StreamPartitioner:
        """Return a copy for a receiver that stands at a watermark."""


class DividingWriter(ABC):
    """Part of a writer of all splits of a task, where some elements leave split by split."""

    @abstractmethod
    def apart(self) -> RecordWriter:
        """Make a writer of one split, which hands the others on."""
