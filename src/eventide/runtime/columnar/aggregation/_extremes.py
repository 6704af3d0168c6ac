"""The smallest and the largest value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from eventide.runtime.columnar.aggregation._groups import Grouping, Later


@dataclass(frozen=True)
class Extreme:
    """The smallest or the largest value of a column; null without a value.

    NaN is larger than any number, while Arrow passes over it. In columns that have one, and only there, groups are
    asked too whether all of their values are NaN, or for the largest whether one is.
    """

    column: str
    type: pa.DataType
    function: Literal["min", "max"]

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One value."""
        return (self.type,)

    def partial(self, grouping: Grouping) -> Later:
        """Find the extreme of each group."""
        return self.merge(grouping, [self.column])

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Find the extreme of the extremes."""
        name, column = names[0], grouping.column(names[0])
        extreme = grouping.ask(name, column, self.function)
        if not has_nan(column):
            return lambda groups: [groups.answer(extreme)]
        # As integers, because Arrow 18 loses track of truth values with nulls in slices.
        is_nan = grouping.ask(f"{name} is NaN", pc.is_nan(column).cast(pa.int8()), self.function)
        nan = pa.scalar(math.nan, self.type)
        return lambda groups: [pc.if_else(pc.equal(groups.answer(is_nan), 1), nan, groups.answer(extreme))]


def has_nan(column: pa.ChunkedArray | pa.Array) -> bool:
    """Say whether there is a NaN in a column; a sum that is a number, the usual case, shows that there is none.

    >>> has_nan(pa.array([1.0, None])), has_nan(pa.array([1.0, math.nan])), has_nan(pa.array([math.inf, -math.inf]))
    (False, True, False)
    """
    if not pa.types.is_floating(column.type):
        return False
    total = pc.sum(column).as_py()
    return total is not None and math.isnan(total) and bool(pc.any(pc.is_nan(column)).as_py())
