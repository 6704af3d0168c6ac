"""Sources that are read one after the other (PyFlink: ``pyflink.datastream.connectors.hybrid_source``)."""

from eventide._absent import hand_out_names
from eventide.connectors.sources import HybridSource, HybridSourceBuilder

__all__ = ["HybridSource", "HybridSourceBuilder"]

hand_out_names(__name__)
