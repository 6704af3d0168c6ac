"""JobStatus, at PyFlink's path."""

from eventide._absent import hand_out_names
from eventide.common.job import JobStatus

__all__ = ["JobStatus"]

hand_out_names(__name__)
