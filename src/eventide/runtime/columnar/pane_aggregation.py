"""Aggregation by key and pane: before the shuffle where that is allowed, after it otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.runtime.columnar.aggregation import TIMESTAMP, Aggregation
from eventide.runtime.columnar.layout import PANE, key_names
from eventide.runtime.columnar.panes import Panes


@dataclass(frozen=True, slots=True)
class PaneAggregation:
    """Puts rows into panes and aggregates each pane by key.

    Whether a window is late is a property of the window and not of its elements, so that lateness can be judged after
    the shuffle, for many elements at once.
    """

    panes: Panes
    keys: int
    aggregation: Aggregation

    def partial(self, rows: pa.Table) -> pa.Table:
        """One row for each key and pane, whatever the number of rows."""
        starts = self.panes.start_of(rows.column(TIMESTAMP).to_numpy())
        return self.aggregation.partial(rows.append_column(PANE, pa.array(starts)), [*key_names(self.keys), PANE])

    def merge(self, partials: pa.Table) -> pa.Table:
        """One row for each key and pane, of partial aggregates that may have several."""
        return self.aggregation.merge(partials, [*key_names(self.keys), PANE])
