"""The functions that users write (PyFlink: ``pyflink.datastream.functions``)."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.api.functions import *
from eventide.api.functions import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
