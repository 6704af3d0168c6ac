"""CSV: files, read by Arrow and written by Spark; and messages, each a line."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.csv import *
from eventide.connectors.formats.csv import __all__ as __all__

hand_out_names(__name__)
