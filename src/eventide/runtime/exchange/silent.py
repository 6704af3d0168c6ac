"""Edges on which no elements leave: the task after them only has to know where event time stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eventide.errors import DataError
from eventide.runtime.elements.columns import Batch
from eventide.runtime.exchange.partitioners import Codec, Payload


@dataclass(frozen=True, slots=True)
class ReportsAlone:
    """The partitioner of such an edge. Flink: the way of ``ReportedWatermarkEvent``."""

    mixes_splits: bool = False
    max_parallelism: int = 1

    @property
    def codec(self) -> Codec:
        """A codec that refuses: there is nothing to read."""
        return _NoElements()

    def describe(self) -> str:
        """How elements travel, for ``explain``."""
        return "watermarks alone"

    def user_functions(self) -> list[tuple[str, Any]]:
        """None."""
        return []

    def open(self, producer: str, slot: int, subtasks: int) -> NoRecordWriter:
        """A writer that stays empty."""
        return NoRecordWriter()


class NoRecordWriter:
    """Lets elements go where others take them."""

    size = 0

    def add(self, batch: Batch) -> None:
        """Take nothing."""

    def take(self) -> Iterator[tuple[int, bytes]]:
        """Give nothing."""
        return iter(())


class _NoElements:
    def decode(self, data: bytes) -> Payload:
        raise DataError("elements have come on an edge that carries only watermarks")
