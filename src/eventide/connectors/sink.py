"""Descriptions of sinks, which a host carries out, and their delivery guarantees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic

from eventide._secrets import without_secrets
from eventide.common.type_variables import T_contra


class Sink(Generic[T_contra]):
    """Base of all sinks, for ``DataStream.sink_to``; its parameter is the type of the elements that it takes."""


@dataclass(frozen=True)
class PrintSink(Sink[object]):
    """Prints each element on the driver, after ``identifier> `` if there is one."""

    identifier: str | None = None

    def line(self, value: object) -> str:
        """The line for one element.

        >>> PrintSink("flights").line(("JFK", 3))
        "flights> ('JFK', 3)"
        """
        return str(value) if self.identifier is None else f"{self.identifier}> {value}"


@dataclass(frozen=True)
class CollectSink(Sink[object]):
    """Passes each element to the program, for ``execute_and_collect``."""


@dataclass(frozen=True)
class DataFrameSink(Sink[object]):
    """Calls ``function(data_frame, batch_id)`` on the driver for every micro-batch, as Spark's ``foreachBatch``.

    A micro-batch that is repeated after a failure has the same id and the same rows.
    """

    function: Callable[[Any, int], object]


@dataclass(frozen=True)
class FormatSink(Sink[object]):
    """Writes with any format that Spark's ``writeStream`` knows: ``parquet``, ``json``, ``csv``, ``kafka`` and more.

    Files are written exactly once, as by :class:`FileSink`, and so are tables of ``delta`` and ``iceberg``. All others
    have the guarantee of Spark's sink, if it is the only sink of the job; beside other sinks, a repeated micro-batch is
    written again.

    Args:
        format: The name of the format.
        options: Options of Spark's writer, ``path`` among them; for an Iceberg table, it may be its name in a catalog.
            Other options may contain passwords, so the description of a job shows them without their values.
        partition_by: Fields whose values name subdirectories, ``day=2026-05-01/hour=9``; files hold the other fields.

    >>> FormatSink("parquet", {"path": "out", "compression": "zstd"}, ("day",))
    FormatSink(format='parquet', options={'path': 'out', 'compression': ...}, partition_by=('day',))
    """

    format: str
    options: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()

    def __repr__(self) -> str:
        options = ", ".join(
            f"{name!r}: {without_secrets(repr(value)) if name == 'path' else '...'}"
            for name, value in self.options.items()
        )
        return f"FormatSink(format={self.format!r}, options={{{options}}}, partition_by={self.partition_by!r})"


class DeliveryGuarantee(Enum):
    """How often a sink writes an element if a job fails in between.

    It is a setting of :class:`~eventide.datastream.connectors.kafka.KafkaSink`. Files are written exactly once; other
    sinks document their guarantee.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
