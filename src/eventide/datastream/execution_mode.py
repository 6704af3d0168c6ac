"""Execution modes of a program: streaming, or batch over bounded input."""

from eventide._absent import hand_out_names
from eventide.plan.job import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]

hand_out_names(__name__)
