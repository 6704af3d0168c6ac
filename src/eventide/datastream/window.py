"""Windows, and what belongs to them: assigners, triggers and evictors (PyFlink: ``pyflink.datastream.window``)."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.api.windows import *
from eventide.api.windows import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
