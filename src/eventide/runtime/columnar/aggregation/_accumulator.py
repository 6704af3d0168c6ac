"""Accumulators of a group for an aggregate: some columns, made of rows and merged with others of their kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from eventide.runtime.columnar.aggregation._groups import Grouping, Later

if TYPE_CHECKING:
    import pyarrow as pa


class Accumulator(Protocol):
    """Columns of partial results: the smallest that can be merged with others and still give the result.

    Accumulators are values: aggregates whose accumulators are equal share their columns.
    """

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns."""

    def partial(self, grouping: Grouping) -> Later:
        """Ask of a table of rows what is needed; return what makes the columns of the answers."""

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Ask the same of a table of partial results, whose columns of this accumulator have these names."""
