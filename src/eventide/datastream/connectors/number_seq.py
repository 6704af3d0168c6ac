"""A source of consecutive numbers."""

from typing import TYPE_CHECKING

from eventide._absent import finder_of_names
from eventide.connectors.sources import NumberSequenceSource

__all__ = ["NumberSequenceSource"]

if not TYPE_CHECKING:
    __getattr__ = finder_of_names(__name__)
