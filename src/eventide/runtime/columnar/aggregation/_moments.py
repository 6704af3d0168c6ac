"""Count, mean and sum of squared differences from the mean: what variances are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Later
from eventide.runtime.columnar.aggregation._sums import ask_count


@dataclass(frozen=True)
class Moments:
    """The number of values, their mean, and the sum of the squares of their differences from it.

    Parts are merged with the formula of Chan, Golub and LeVeque, which subtracts means and never large sums of squares.
    """

    column: str

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """A whole number and two doubles, which are null without a value."""
        return (pa.int64(), pa.float64(), pa.float64())

    def partial(self, grouping: Grouping) -> Later:
        """Compute the moments of each group: Arrow does it in two passes, first the mean."""
        name, column = self.column, grouping.column(self.column)
        count = ask_count(grouping, name)
        if pa.types.is_decimal(column.type):
            name, column = f"{name} as double", column.cast(pa.float64())
        mean, variance = (grouping.ask(name, column, function) for function in ("mean", "variance"))

        def moments(groups: Groups) -> list[pa.Array]:
            n, of_population = groups.answer(count), groups.answer(variance)
            return [n, groups.answer(mean), pc.multiply(of_population, n.cast(pa.float64()))]

        return moments

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Merge the moments of parts, all parts of a group at once."""
        grouping.ask_rows()
        n, mean, squares = (grouping.column(name).fill_null(0).to_numpy() for name in names)

        def moments(groups: Groups) -> list[pa.Array]:
            of = groups.ids
            near = np.zeros(groups.size)  # one mean of each group: equal means must give exactly that
            near[of[n > 0]] = mean[n > 0]
            with np.errstate(all="ignore"):
                counts = np.bincount(of, n, groups.size)
                means = near + np.bincount(of, n / np.maximum(counts, 1)[of] * (mean - near[of]), groups.size)
                sums = np.bincount(of, squares + n * (mean - means[of]) ** 2, groups.size)
            empty = counts == 0
            return [pa.array(counts.astype(np.int64)), pa.array(means, mask=empty), pa.array(sums, mask=empty)]

        return moments
