"""How a program runs: on and on, or over bounded input once."""

from eventide._absent import hand_out_names
from eventide.plan.execution_mode import *
from eventide.plan.execution_mode import __all__ as __all__

hand_out_names(__name__)
