"""The one base class of sources: splits, positions, and reading from one position to another."""

from eventide.api.source import *
from eventide.api.source import __all__ as __all__
