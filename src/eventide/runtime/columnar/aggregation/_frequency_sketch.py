"""The most frequent values, about: the frequent items sketch of Misra and Gries, as Anderson and others have it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Later, offsets_of
from eventide.runtime.columnar.aggregation._items import Item, from_items, order_of, to_items
from eventide.runtime.columnar.aggregation._lists import values_in_order, with_one_nan_and_zero
from eventide.runtime.columnar.aggregation._sketches import library, made_sketches, merged_sketches

_FUNCTION = "approx_top_k"


@dataclass(frozen=True)
class FrequencySketch:
    """A sketch of the frequent values of a column, null without a value; and how many nulls there are.

    The library takes one value at a time, so that only the different ones of a group are given to it, with counts.
    """

    column: str
    type: pa.DataType
    log2_size: int

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """A sketch and a whole number."""
        return (pa.binary(), pa.int64())

    def partial(self, grouping: Grouping) -> Later:
        """Make a sketch of the values of each group."""
        grouping.ask_rows()
        column = with_one_nan_and_zero(grouping.column(self.column))

        def sketches(groups: Groups) -> list[pa.Array]:
            values, ids = values_in_order(column, groups)
            nulls = groups.lengths - np.bincount(ids, minlength=groups.size)
            pairs = pa.Table.from_arrays([pa.array(ids), values], ["group", "value"])
            counted = pairs.group_by(["group", "value"], use_threads=False).aggregate([([], "count_all")])
            counted = counted.take(pa.array(np.argsort(counted.column("group").to_numpy(), kind="stable")))
            items = to_items(counted.column("value").combine_chunks())
            counts = counted.column("count_all").to_pylist()

            def make(start: int, end: int) -> bytes:
                sketch = _Kind(self.type).new(self.log2_size)
                for item, count in zip(items[start:end], counts[start:end], strict=True):
                    sketch.update(item, count)
                return _Kind(self.type).dump(sketch)

            lengths = np.bincount(counted.column("group").to_numpy(), minlength=groups.size)
            return [made_sketches(offsets_of(lengths), make), pa.array(nulls.astype(np.int64))]

        return sketches

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Merge the sketches of each group."""
        grouping.ask_rows()
        parts = grouping.column(names[0])
        nulls = grouping.ask(names[1], grouping.column(names[1]), "sum")
        return lambda groups: [merged_sketches(parts, groups, self._merged), groups.answer(nulls)]

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        kind = _Kind(self.type)
        merged = kind.new(self.log2_size)
        for part in parts:
            merged.merge(kind.load(part))
        return kind.dump(merged)


def log2_size_for(max_items: int) -> int:
    """Return the logarithm of the size of a sketch that counts `max_items` different values exactly.

    >>> log2_size_for(10_000), log2_size_for(1)
    (14, 3)
    """
    return max(3, math.ceil(math.log2(max_items / 0.75)))


def most_frequent(sketches: pa.Array, nulls: pa.Array, value_type: pa.DataType, k: int) -> pa.Array:
    """Return the `k` most frequent values of each sketch, and null if it is among them, with their counts.

    Equal counts are in the order of the values, null last.
    """
    kind = _Kind(value_type)
    found: list[list[tuple[Item | None, int]]] = []
    for data, null_count in zip(sketches.to_pylist(), nulls.to_pylist(), strict=True):
        counts: list[tuple[Item | None, int]] = [] if data is None else kind.counts(data)
        if null_count:
            counts.append((None, null_count))
        least = min(heapq.nlargest(k, (n for _, n in counts)), default=0)
        found.append(sorted((c for c in counts if c[1] >= least), key=kind.place)[:k])
    rows = [row for top in found for row in top]
    columns = [from_items([item for item, _ in rows], value_type), pa.array([n for _, n in rows], pa.int64())]
    elements = pa.StructArray.from_arrays(columns, ["value", "count"])
    return pa.ListArray.from_arrays(pa.array(offsets_of(np.array([len(top) for top in found], np.int32))), elements)


@dataclass(frozen=True)
class _Kind:
    """The sketch for values of a type: the library has one of text, and one of objects, which are integers here."""

    type: pa.DataType

    @property
    def _is_text(self) -> bool:
        is_a = pa.types
        return any(test(self.type) for test in (is_a.is_string, is_a.is_binary, is_a.is_decimal))

    def new(self, log2_size: int) -> Any:
        datasketches = library(_FUNCTION)
        kind = datasketches.frequent_strings_sketch if self._is_text else datasketches.frequent_items_sketch
        return kind(log2_size)

    def dump(self, sketch: Any) -> bytes:
        serde = () if self._is_text else (library(_FUNCTION).PyLongsSerDe(),)
        data: bytes = sketch.serialize(*serde)
        return data

    def load(self, data: bytes) -> Any:
        datasketches = library(_FUNCTION)
        if self._is_text:
            return datasketches.frequent_strings_sketch.deserialize(data)
        return datasketches.frequent_items_sketch.deserialize(data, datasketches.PyLongsSerDe())

    def counts(self, data: bytes) -> list[tuple[Item | None, int]]:
        rule = library(_FUNCTION).frequent_items_error_type.NO_FALSE_NEGATIVES
        return [(item, estimate) for item, estimate, _, _ in self.load(data).get_frequent_items(rule)]

    def place(self, counted: tuple[Item | None, int]) -> tuple[Any, ...]:
        item, count = counted
        return (-count, True, 0) if item is None else (-count, False, order_of(item, self.type))
