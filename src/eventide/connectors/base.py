"""Base classes of all connectors (PyFlink: ``pyflink.datastream.connectors.base``)."""

from __future__ import annotations

from enum import Enum

from eventide.api.source import Source
from eventide.connectors.sink import Sink

__all__ = ["DeliveryGuarantee", "Sink", "Source"]


class DeliveryGuarantee(Enum):
    """How often an element gets where a sink puts it, when a job fails in between.

    A :class:`~eventide.datastream.connectors.kafka.KafkaSink` asks for it. Files are written exactly once; of any other
    place, the sink says it.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
