"""How many different values there are, about: HyperLogLog."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Later, offsets_of
from eventide.runtime.columnar.aggregation._items import to_items
from eventide.runtime.columnar.aggregation._lists import ask_different
from eventide.runtime.columnar.aggregation._sketches import library, made_sketches, merged_sketches

_FUNCTION = "approx_count_distinct"


@dataclass(frozen=True)
class DistinctSketch:
    """A sketch of the different values of a column; null without a value.

    The library takes one value at a time, so that only the different ones of a group are given to it.
    """

    column: str
    log2_size: int

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One sketch."""
        return (pa.binary(),)

    def partial(self, grouping: Grouping) -> Later:
        """Make a sketch of the values of each group."""
        question = ask_different(grouping, self.column)

        def sketches(groups: Groups) -> list[pa.Array]:
            different = groups.answer(question)
            items = to_items(different.flatten())
            datasketches = library(_FUNCTION)

            def make(start: int, end: int) -> bytes:
                sketch = datasketches.hll_sketch(self.log2_size, datasketches.HLL_4)
                for item in items[start:end]:
                    sketch.update(0 if item == "" else item)  # the library passes over empty text
                data: bytes = sketch.serialize_compact()
                return data

            return [made_sketches(offsets_of(different.value_lengths().to_numpy()), make)]

        return sketches

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Merge the sketches of each group."""
        grouping.ask_rows()
        parts = grouping.column(names[0])
        return lambda groups: [merged_sketches(parts, groups, self._merged)]

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        datasketches = library(_FUNCTION)
        union = datasketches.hll_union(self.log2_size)
        for part in parts:
            union.update(datasketches.hll_sketch.deserialize(part))
        data: bytes = union.get_result(datasketches.HLL_4).serialize_compact()
        return data


def log2_size_for(rsd: float) -> int:
    """Return the logarithm of the size of a sketch whose estimates have at most this relative standard deviation.

    >>> log2_size_for(0.05), log2_size_for(0.01)
    (9, 14)
    """
    return max(4, math.ceil(2 * math.log2(1.04 / rsd)))


def estimates(sketches: pa.Array) -> pa.Array:
    """Return the number of different values that each sketch has seen; 0 for null.

    A sketch that was never merged estimates by the order of what it has seen. Merged with itself it does not, so that
    the estimate depends on the values alone, and not on how they were cut into parts.
    """
    datasketches = library(_FUNCTION)

    def estimate(data: bytes) -> int:
        sketch = datasketches.hll_sketch.deserialize(data)
        union = datasketches.hll_union(sketch.lg_config_k)
        union.update(sketch)
        union.update(sketch)
        different: float = union.get_estimate()
        return round(different)

    return pa.array([0 if data is None else estimate(data) for data in sketches.to_pylist()], pa.int64())
