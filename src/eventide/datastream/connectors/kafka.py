"""Kafka as source and as sink (PyFlink: ``pyflink.datastream.connectors.kafka``), with the extra ``kafka``.

Names are imported when they are first used: a worker that writes does not load what reads.
"""

from typing import TYPE_CHECKING

from eventide._absent import hand_out_names
from eventide.connectors.kafka import __all__ as __all__

if TYPE_CHECKING:
    from eventide.connectors.kafka import *

hand_out_names(__name__, dict.fromkeys(__all__, "eventide.connectors.kafka"))
