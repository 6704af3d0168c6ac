"""State that survives a restart: its descriptors and its interfaces (PyFlink: ``pyflink.datastream.state``)."""

from eventide._absent import hand_out_names
from eventide.api.state import *
from eventide.api.state import __all__ as __all__

hand_out_names(__name__)
