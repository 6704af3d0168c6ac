"""Where results go: descriptions that a host carries out."""

from eventide.connectors.sink import *
from eventide.connectors.sink import __all__ as __all__
