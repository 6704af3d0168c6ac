"""JSON: files with an object in each line, read by Arrow and written by Spark; and messages, each an object."""

from eventide._absent import hand_out_names
from eventide.connectors.formats.json import *
from eventide.connectors.formats.json import __all__ as __all__

hand_out_names(__name__)
