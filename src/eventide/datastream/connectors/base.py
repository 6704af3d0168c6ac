"""What all connectors have in common (PyFlink: ``pyflink.datastream.connectors.base``)."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.base import *
from eventide.connectors.base import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
