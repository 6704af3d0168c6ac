"""A source of consecutive numbers."""

from eventide._absent import hand_out_names
from eventide.connectors.sources import NumberSequenceSource

__all__ = ["NumberSequenceSource"]

hand_out_names(__name__)
