"""Quantiles, about: KLL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Later, offsets_of
from eventide.runtime.columnar.aggregation._lists import values_in_order
from eventide.runtime.columnar.aggregation._sketches import library, made_sketches, merged_sketches

_FUNCTION = "approx_quantiles"
_LARGEST_SIZE = 65_535


@dataclass(frozen=True)
class QuantileSketch:
    """A sketch of the numbers of a column, null without one; and how many NaN there are, which it does not take."""

    column: str
    size: int

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """A sketch and a whole number."""
        return (pa.binary(), pa.int64())

    def partial(self, grouping: Grouping) -> Later:
        """Make a sketch of the numbers of each group."""
        grouping.ask_rows()
        column = grouping.column(self.column)

        def sketches(groups: Groups) -> list[pa.Array]:
            values, ids = values_in_order(column, groups)
            doubles = values.cast(pa.float64(), safe=False).to_numpy()
            is_nan = np.isnan(doubles)
            numbers, nans = doubles[~is_nan], np.bincount(ids[is_nan], minlength=groups.size)
            datasketches = library(_FUNCTION)

            def make(start: int, end: int) -> bytes:
                sketch = datasketches.kll_doubles_sketch(self.size)
                sketch.update(numbers[start:end])
                data: bytes = sketch.serialize()
                return data

            offsets = offsets_of(np.bincount(ids[~is_nan], minlength=groups.size))
            return [made_sketches(offsets, make), pa.array(nans.astype(np.int64))]

        return sketches

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Merge the sketches of each group."""
        grouping.ask_rows()
        parts = grouping.column(names[0])
        nans = grouping.ask(names[1], grouping.column(names[1]), "sum")
        return lambda groups: [merged_sketches(parts, groups, self._merged), groups.answer(nans)]

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        kind = library(_FUNCTION).kll_doubles_sketch
        merged = kind(self.size)
        for part in parts:
            merged.merge(kind.deserialize(part))
        data: bytes = merged.serialize()
        return data


def size_for(rank_error: float) -> int:
    """Return the size of a sketch whose error of rank is at most this, with 99 % confidence.

    >>> size_for(0.005), size_for(0.25)
    (894, 12)
    """
    return min(_LARGEST_SIZE, math.ceil(math.pow(2.296 / rank_error, 1 / 0.9021)))


def quantiles(sketches: pa.Array, nans: pa.Array, probabilities: Sequence[float]) -> pa.Array:
    """Return the quantiles of each sketch with its NaNs, which are the largest values; null where there is neither."""
    kind = library(_FUNCTION).kll_doubles_sketch

    def found(data: bytes | None, nan_count: int) -> list[float] | None:
        if data is None:
            return [math.nan] * len(probabilities) if nan_count else None
        sketch = kind.deserialize(data)
        ranks = [probability * (sketch.n + nan_count) / sketch.n for probability in probabilities]
        values = sketch.get_quantiles([min(rank, 1.0) for rank in ranks], True)
        return [math.nan if rank > 1.0 else value for rank, value in zip(ranks, values, strict=True)]

    pairs = zip(sketches.to_pylist(), nans.to_pylist(), strict=True)
    return pa.array([found(data, nan_count) for data, nan_count in pairs], pa.list_(pa.float64()))
