"""JobClient, at PyFlink's path."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.common.job import JobClient

__all__ = ["JobClient"]


if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
