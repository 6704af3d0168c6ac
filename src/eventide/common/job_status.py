"""JobStatus, at PyFlink's path."""

from eventide.common.job import JobStatus

__all__ = ["JobStatus"]
