"""What a function does with time: ask for it, and have itself called at one."""

from eventide.api.functions.timer_service import *
from eventide.api.functions.timer_service import __all__ as __all__
