"""JSON: files with an object in each line, read by Arrow and written by Spark; and messages, each an object."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.formats.json import *
from eventide.connectors.formats.json import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
