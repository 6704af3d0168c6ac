"""Files as source and as sink (PyFlink: ``pyflink.datastream.connectors.file_system``)."""

from eventide._absent import hand_out_names
from eventide.connectors.file_system import *
from eventide.connectors.file_system import __all__ as __all__

hand_out_names(__name__)
