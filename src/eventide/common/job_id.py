"""JobID, at PyFlink's path."""

from eventide.common.job import JobID

__all__ = ["JobID"]
