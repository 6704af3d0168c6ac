"""CSV: files, read by Arrow and written by Spark; and messages, each a line."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.formats.csv import *
from eventide.connectors.formats.csv import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
