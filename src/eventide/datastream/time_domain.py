"""The two kinds of time that a timer can wait for."""

from eventide.api.functions.time_domain import *
from eventide.api.functions.time_domain import __all__ as __all__
