"""Aggregates of columns, computed by Arrow and numpy: partial results that merge, and results made of them."""

from eventide.runtime.columnar.aggregation._aggregation import ROWS, Aggregation
from eventide.runtime.columnar.aggregation._by_time import TIMESTAMP

__all__ = ["ROWS", "TIMESTAMP", "Aggregation"]
