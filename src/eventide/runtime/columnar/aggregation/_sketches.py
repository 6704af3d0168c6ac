"""Sketches of the library datasketches, which answer about: distinct values, quantiles, frequent values."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from eventide.aggregates import check_sketches_are_installed
from eventide.runtime.columnar.aggregation._accumulators import ask_different, values_in_order, with_one_nan_and_zero
from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Ints, Later, offsets_of, sums


def library(function: str) -> Any:
    """Return the module datasketches.

    Raises:
        ProgramError: It is not installed where this runs.
    """
    check_sketches_are_installed(function)
    import datasketches

    return datasketches


def made_sketches(offsets: Ints, make: Callable[[int, int], bytes]) -> pa.Array:
    """Return a column of sketches, each of the values from one offset to the next; null where there is no value."""
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return pa.array([make(start, end) if start < end else None for start, end in bounds], pa.binary())


def merged_sketches(column: pa.ChunkedArray, groups: Groups, merge: Callable[[list[bytes]], bytes]) -> pa.Array:
    """Return a column of one sketch for each group; one that is alone in its group stays as it is."""
    parts = column.take(pa.array(groups.order)).to_pylist()
    merged: list[bytes | None] = []
    for start, end in zip(groups.offsets[:-1].tolist(), groups.offsets[1:].tolist(), strict=True):
        known = [part for part in parts[start:end] if part is not None]
        merged.append(merge(known) if len(known) > 1 else known[0] if known else None)
    return pa.array(merged, pa.binary())


Item = int | str
"""A value in a sketch: text of text, bytes and decimals, an integer of everything else."""


def to_items(values: pa.Array) -> list[Item]:
    """Return values, which have no null, one NaN and no -0.0, as items.

    The bits of a double, those of a negative one turned over, are an integer that has the order of the doubles.

    >>> to_items(pa.array([1.5, -2.0]))
    [4609434218613702656, -4611686018427387905]
    """
    kind = values.type
    if pa.types.is_floating(kind):
        values = pa.array(_turned(values.cast(pa.float64()).to_numpy().view(np.int64)))
    elif pa.types.is_binary(kind):
        return [value.decode("latin-1") for value in values.to_pylist()]
    elif pa.types.is_decimal(kind):
        values = values.cast(pa.string())
    elif pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif not pa.types.is_string(kind):
        values = values.cast(pa.int64())
    items: list[Item] = values.to_pylist()
    return items


def from_items(items: Sequence[Item | None], kind: pa.DataType) -> pa.Array:
    """Return items as values of a type; None is null.

    >>> from_items([4609434218613702656, None], pa.float64()).to_pylist()
    [1.5, None]
    """
    if pa.types.is_string(kind):
        return pa.array(items, kind)
    if pa.types.is_binary(kind):
        return pa.array([item.encode("latin-1") if isinstance(item, str) else None for item in items], kind)
    if pa.types.is_decimal(kind):
        return pa.array(items, pa.string()).cast(kind)
    numbers = pa.array(items, pa.int64())
    if pa.types.is_floating(kind):
        doubles = _turned(numbers.fill_null(0).to_numpy()).view(np.float64)
        return pa.array(doubles, mask=numbers.is_null().to_numpy(zero_copy_only=False)).cast(kind)
    return numbers.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else numbers.cast(kind)


def order_of(item: Item, kind: pa.DataType) -> Item | Decimal:
    """Return what an item is compared by; items of one type compare as their values do.

    >>> sorted(["10", "9"], key=lambda item: order_of(item, pa.decimal128(38, 0)))
    ['9', '10']
    """
    return Decimal(item) if pa.types.is_decimal(kind) else item


def _turned(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Turn all bits but the sign of negative numbers over; twice is as before."""
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


_DISTINCT = "approx_count_distinct"


class _Sketch(ABC):
    """One sketch for each group, and perhaps numbers beside it."""

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Merge the sketches of each group, and add the numbers."""
        grouping.ask_rows()
        parts, numbers = grouping.column(names[0]), sums(grouping, names[1:])
        return lambda groups: [merged_sketches(parts, groups, self._merged), *numbers(groups)]

    @abstractmethod
    def _merged(self, parts: Sequence[bytes]) -> bytes:
        """Several sketches as one."""


@dataclass(frozen=True)
class DistinctSketch(_Sketch):
    """A sketch of the different values of a column; null without a value.

    The library takes one value at a time, so that only the different ones of a group are given to it.
    """

    column: str
    log2_size: int
    types: ClassVar[tuple[pa.DataType, ...]] = (pa.binary(),)

    def partial(self, grouping: Grouping) -> Later:
        """Make a sketch of the values of each group."""
        question = ask_different(grouping, self.column)

        def sketches(groups: Groups) -> list[pa.Array]:
            different = groups.answer(question)
            items = to_items(different.flatten())
            datasketches = library(_DISTINCT)

            def make(start: int, end: int) -> bytes:
                sketch = datasketches.hll_sketch(self.log2_size, datasketches.HLL_4)
                for item in items[start:end]:
                    sketch.update(0 if item == "" else item)  # the library passes over empty text
                return bytes(sketch.serialize_compact())

            return [made_sketches(offsets_of(different.value_lengths().to_numpy()), make)]

        return sketches

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        datasketches = library(_DISTINCT)
        union = datasketches.hll_union(self.log2_size)
        for part in parts:
            union.update(datasketches.hll_sketch.deserialize(part))
        return bytes(union.get_result(datasketches.HLL_4).serialize_compact())


def log2_size_of_distinct(rsd: float) -> int:
    """Return the logarithm of the size of a sketch whose estimates have at most this relative standard deviation.

    >>> log2_size_of_distinct(0.05), log2_size_of_distinct(0.01)
    (9, 14)
    """
    return max(4, math.ceil(2 * math.log2(1.04 / rsd)))


def estimates(sketches: pa.Array) -> pa.Array:
    """Return the number of different values that each sketch has seen; 0 for null.

    A sketch that was never merged estimates by the order of what it has seen. Merged with itself it does not, so that
    the estimate depends on the values alone, and not on how they were cut into parts.
    """
    datasketches = library(_DISTINCT)

    def estimate(data: bytes) -> int:
        sketch = datasketches.hll_sketch.deserialize(data)
        union = datasketches.hll_union(sketch.lg_config_k)
        union.update(sketch)
        union.update(sketch)
        different: float = union.get_estimate()
        return round(different)

    return pa.array([0 if data is None else estimate(data) for data in sketches.to_pylist()], pa.int64())


_QUANTILES = "approx_quantiles"
_LARGEST_SIZE = 65_535


@dataclass(frozen=True)
class QuantileSketch(_Sketch):
    """A sketch of the numbers of a column, null without one; and how many NaN there are, which it does not take."""

    column: str
    size: int
    types: ClassVar[tuple[pa.DataType, ...]] = (pa.binary(), pa.int64())

    def partial(self, grouping: Grouping) -> Later:
        """Make a sketch of the numbers of each group."""
        grouping.ask_rows()
        column = grouping.column(self.column)

        def sketches(groups: Groups) -> list[pa.Array]:
            values, ids = values_in_order(column, groups)
            doubles = values.cast(pa.float64(), safe=False).to_numpy()
            is_nan = np.isnan(doubles)
            numbers, nans = doubles[~is_nan], np.bincount(ids[is_nan], minlength=groups.size)
            datasketches = library(_QUANTILES)

            def make(start: int, end: int) -> bytes:
                sketch = datasketches.kll_doubles_sketch(self.size)
                sketch.update(numbers[start:end])
                return bytes(sketch.serialize())

            offsets = offsets_of(np.bincount(ids[~is_nan], minlength=groups.size))
            return [made_sketches(offsets, make), pa.array(nans.astype(np.int64))]

        return sketches

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        kind = library(_QUANTILES).kll_doubles_sketch
        merged = kind(self.size)
        for part in parts:
            merged.merge(kind.deserialize(part))
        return bytes(merged.serialize())


def size_of_quantiles(rank_error: float) -> int:
    """Return the size of a sketch whose error of rank is at most this, with 99 % confidence.

    >>> size_of_quantiles(0.005), size_of_quantiles(0.25)
    (894, 12)
    """
    return min(_LARGEST_SIZE, math.ceil(math.pow(2.296 / rank_error, 1 / 0.9021)))


def quantiles(sketches: pa.Array, nans: pa.Array, probabilities: Sequence[float]) -> pa.Array:
    """Return the quantiles of each sketch with its NaNs, which are the largest values; null where there is neither."""
    kind = library(_QUANTILES).kll_doubles_sketch

    def found(data: bytes | None, nan_count: int) -> list[float] | None:
        if data is None:
            return [math.nan] * len(probabilities) if nan_count else None
        sketch = kind.deserialize(data)
        ranks = [probability * (sketch.n + nan_count) / sketch.n for probability in probabilities]
        values = sketch.get_quantiles([min(rank, 1.0) for rank in ranks], True)
        return [math.nan if rank > 1.0 else value for rank, value in zip(ranks, values, strict=True)]

    pairs = zip(sketches.to_pylist(), nans.to_pylist(), strict=True)
    return pa.array([found(data, nan_count) for data, nan_count in pairs], pa.list_(pa.float64()))


_TOP_K = "approx_top_k"


@dataclass(frozen=True)
class FrequencySketch(_Sketch):
    """A sketch of the frequent values of a column, null without a value; and how many nulls there are.

    The library takes one value at a time, so that only the different ones of a group are given to it, with counts.
    """

    column: str
    type: pa.DataType
    log2_size: int
    types: ClassVar[tuple[pa.DataType, ...]] = (pa.binary(), pa.int64())

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
                sketch = _SketchKind(self.type).new(self.log2_size)
                for item, count in zip(items[start:end], counts[start:end], strict=True):
                    sketch.update(item, count)
                return _SketchKind(self.type).dump(sketch)

            lengths = np.bincount(counted.column("group").to_numpy(), minlength=groups.size)
            return [made_sketches(offsets_of(lengths), make), pa.array(nulls.astype(np.int64))]

        return sketches

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        kind = _SketchKind(self.type)
        merged = kind.new(self.log2_size)
        for part in parts:
            merged.merge(kind.load(part))
        return kind.dump(merged)


def log2_size_of_frequent(max_items: int) -> int:
    """Return the logarithm of the size of a sketch that counts up to this many different values exactly.

    >>> log2_size_of_frequent(10_000), log2_size_of_frequent(1)
    (14, 3)
    """
    return max(3, math.ceil(math.log2(max_items / 0.75)))


def most_frequent(sketches: pa.Array, nulls: pa.Array, value_type: pa.DataType, k: int) -> pa.Array:
    """Return the `k` most frequent values of each sketch, and null if it is among them, with their counts.

    Equal counts are in the order of the values, null last.
    """
    kind = _SketchKind(value_type)
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
class _SketchKind:
    """The sketch for values of a type: the library has one of text, and one of objects, which are integers here."""

    type: pa.DataType

    @property
    def _is_text(self) -> bool:
        is_a = pa.types
        return any(test(self.type) for test in (is_a.is_string, is_a.is_binary, is_a.is_decimal))

    def new(self, log2_size: int) -> Any:
        datasketches = library(_TOP_K)
        kind = datasketches.frequent_strings_sketch if self._is_text else datasketches.frequent_items_sketch
        return kind(log2_size)

    def dump(self, sketch: Any) -> bytes:
        serde = () if self._is_text else (library(_TOP_K).PyLongsSerDe(),)
        return bytes(sketch.serialize(*serde))

    def load(self, data: bytes) -> Any:
        datasketches = library(_TOP_K)
        if self._is_text:
            return datasketches.frequent_strings_sketch.deserialize(data)
        return datasketches.frequent_items_sketch.deserialize(data, datasketches.PyLongsSerDe())

    def counts(self, data: bytes) -> list[tuple[Item | None, int]]:
        rule = library(_TOP_K).frequent_items_error_type.NO_FALSE_NEGATIVES
        return [(item, estimate) for item, estimate, _, _ in self.load(data).get_frequent_items(rule)]

    def place(self, counted: tuple[Item | None, int]) -> tuple[Any, ...]:
        item, count = counted
        return (-count, True, 0) if item is None else (-count, False, order_of(item, self.type))
