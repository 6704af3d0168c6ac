"""JobExecutionResult, at PyFlink's path."""

from eventide.common.job import JobExecutionResult

__all__ = ["JobExecutionResult"]
