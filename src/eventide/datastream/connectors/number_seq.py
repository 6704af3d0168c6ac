"""A source of consecutive numbers."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.number_seq import *
from eventide.connectors.number_seq import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
