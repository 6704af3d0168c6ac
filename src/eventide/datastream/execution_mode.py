"""How a program runs: on and on, or over bounded input once."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.plan.execution_mode import *
from eventide.plan.execution_mode import __all__ as __all__

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
