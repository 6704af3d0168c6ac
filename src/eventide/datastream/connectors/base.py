"""The shared names of all connectors (PyFlink: ``pyflink.datastream.connectors.base``)."""

from eventide._absent import hand_out_names
from eventide.api.source import Source
from eventide.connectors.sink import DeliveryGuarantee, Sink

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

hand_out_names(__name__)
