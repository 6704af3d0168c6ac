"""The times and timers of a function."""

from eventide.api.functions.timer_service import *
from eventide.api.functions.timer_service import __all__ as __all__
