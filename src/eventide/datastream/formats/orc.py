"""ORC files: read stripe by stripe in columns, and written by Spark."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.orc import *
from eventide.connectors.formats.orc import __all__ as __all__

hand_out_names(__name__)
