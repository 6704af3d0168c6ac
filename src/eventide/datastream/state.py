"""State that survives a restart: its descriptors and its interfaces (PyFlink: ``pyflink.datastream.state``)."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.api.state import *
from eventide.api.state import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
