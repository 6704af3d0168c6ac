"""JobClient, at PyFlink's path."""

from eventide.common.job import JobClient

__all__ = ["JobClient"]
