"""JobClient, at PyFlink's path."""

from eventide._absent import hand_out_names
from eventide.common.job import JobClient

__all__ = ["JobClient"]

hand_out_names(__name__)
