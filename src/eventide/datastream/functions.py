"""The functions that users write (PyFlink: ``pyflink.datastream.functions``)."""

from eventide._absent import hand_out_names
from eventide.api.functions import *
from eventide.api.functions import __all__ as __all__

hand_out_names(__name__)
