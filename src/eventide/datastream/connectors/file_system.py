"""Files as source and as sink (PyFlink: ``pyflink.datastream.connectors.file_system``)."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.file_system import *
from eventide.connectors.file_system import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
