"""A source over a Python collection: one split, in its order."""

from eventide.connectors.collection import *
from eventide.connectors.collection import __all__ as __all__
