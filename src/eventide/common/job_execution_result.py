"""JobExecutionResult, at PyFlink's path."""

from eventide._absent import hand_out_names
from eventide.common.job import JobExecutionResult

__all__ = ["JobExecutionResult"]

hand_out_names(__name__)
