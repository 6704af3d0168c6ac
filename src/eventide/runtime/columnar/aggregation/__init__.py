"""Aggregates of columns, computed by Arrow and numpy: partial results that merge, and results made of them."""

from eventide.runtime.columnar.aggregation._accumulators import TIMESTAMP
from eventide.runtime.columnar.aggregation._aggregation import ROWS, Aggregation

__all__ = ["ROWS", "TIMESTAMP", "Aggregation"]
