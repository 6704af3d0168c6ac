"""The shared names of all connectors (PyFlink: ``pyflink.datastream.connectors.base``)."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.api.source import Source
from eventide.connectors.sink import DeliveryGuarantee, Sink

__all__ = ["DeliveryGuarantee", "Sink", "Source"]

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
