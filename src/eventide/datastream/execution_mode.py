"""How a program runs: on and on, or over bounded input once."""

from eventide._absent import hand_out_names
from eventide.plan.job import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]

hand_out_names(__name__)
