"""Windows, and what belongs to them: assigners, triggers and evictors (PyFlink: ``pyflink.datastream.window``)."""

from eventide._absent import hand_out_names
from eventide.api.windows import *
from eventide.api.windows import __all__ as __all__

hand_out_names(__name__)
