"""Accumulators without sketches: counts, sums, moments, extremes, values by time, and lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import DataError
from eventide.runtime.columnar.aggregation._groups import (
    Grouping,
    Groups,
    Later,
    answers,
    lists_by_group,
    offsets_of,
    sums,
)

_DECIMAL = pa.decimal128(38, 0)
_WIDE_DIGITS = 76


@dataclass(frozen=True)
class RowCount:
    """How many rows there are."""

    types: ClassVar[tuple[pa.DataType, ...]] = (pa.int64(),)

    def partial(self, grouping: Grouping) -> Later:
        """Count the rows of each group."""
        return answers(grouping.ask_size())

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Add the counts."""
        return sums(grouping, names)


@dataclass(frozen=True)
class ValueCount(RowCount):
    """How many values of a column are not null."""

    column: str

    def partial(self, grouping: Grouping) -> Later:
        """Count the values of each group."""
        return answers(ask_count(grouping, self.column))


@dataclass(frozen=True)
class LongSum:
    """The sum of a column of integers as a 64-bit integer; null without a value.

    Arrow wraps around without a word. Where the largest value times the number of rows stays below 64 bits no sum can
    overflow, so that one look at the extremes is enough; otherwise sums are made with 38 digits.
    """

    column: str
    label: str = field(compare=False)
    types: ClassVar[tuple[pa.DataType, ...]] = (pa.int64(),)

    def partial(self, grouping: Grouping) -> Later:
        """Add the values of each group."""
        return self.merge(grouping, [self.column])

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Add the sums.

        Raises:
            DataError: A sum does not fit 64 bits; raised when the groups are known.
        """
        name, column = names[0], grouping.column(names[0])
        if long_sums_fit(column):
            return sums(grouping, names)
        wide = grouping.ask(f"{name} as decimal", column.cast(_DECIMAL), "sum")
        return lambda groups: [_narrowed(groups, wide, pa.int64(), self.column, self.label)]


@dataclass(frozen=True)
class DecimalSum:
    """The sum of a column of decimals, with as many digits after the point as they have; null without a value.

    As for integers: a look at the extremes, and 76 digits only where 38 might not be enough.
    """

    column: str
    type: pa.DataType
    label: str = field(compare=False)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One decimal."""
        return (self.type,)

    def partial(self, grouping: Grouping) -> Later:
        """Add the values of each group."""
        return self.merge(grouping, [self.column])

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Add the sums.

        Raises:
            DataError: A sum does not fit 38 digits; raised when the groups are known.
        """
        name, column = names[0], grouping.column(names[0])
        if self._sums_fit(column):
            return answers(grouping.ask(f"{name} as {self.type}", column.cast(self.type), "sum"))
        wide_type = pa.decimal256(_WIDE_DIGITS, self.type.scale)
        wide = grouping.ask(f"{name} as decimal", column.cast(wide_type), "sum")
        return lambda groups: [_narrowed(groups, wide, self.type, self.column, self.label)]

    def _sums_fit(self, column: pa.ChunkedArray) -> bool:
        digits = self.type.precision - self.type.scale
        largest = float(_largest(column))
        return bool(largest * len(column) < 0.9 * 10.0**digits)


@dataclass(frozen=True)
class DoubleSum:
    """The sum of a column of numbers as a double; null without a value. It has no overflow but infinity."""

    column: str
    types: ClassVar[tuple[pa.DataType, ...]] = (pa.float64(),)

    def partial(self, grouping: Grouping) -> Later:
        """Add the values of each group; those of integers as integers where they fit."""
        column = grouping.column(self.column)
        if pa.types.is_floating(column.type):
            return sums(grouping, [self.column])
        if long_sums_fit(column):
            exact = grouping.ask(self.column, column, "sum")
            return lambda groups: [groups.answer(exact).cast(pa.float64(), safe=False)]
        return answers(grouping.ask(f"{self.column} as double", column.cast(pa.float64(), safe=False), "sum"))

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Add the sums."""
        return sums(grouping, names)


def ask_count(grouping: Grouping, name: str) -> tuple[str, str]:
    """Ask for the number of values of a column that are not null; without nulls, that is the number of rows."""
    column = grouping.column(name)
    return grouping.ask(name, column, "count") if column.null_count else grouping.ask_size()


def long_sums_fit(column: pa.ChunkedArray) -> bool:
    """Say whether no sum of values of a column of integers can leave 64 bits.

    >>> long_sums_fit(pa.chunked_array([[2**62, 0]])), long_sums_fit(pa.chunked_array([[2**61, -1, None]]))
    (False, True)
    """
    return bool(column.type.bit_width < 64 or _largest(column) * len(column) < 2**63)


def _largest(column: pa.ChunkedArray) -> Any:
    """Return the largest magnitude in a column of numbers; 0 if it has no values."""
    extremes = pc.min_max(column).as_py()
    return 0 if extremes["max"] is None else max(-extremes["min"], extremes["max"])


def _narrowed(groups: Groups, wide: tuple[str, str], narrow: pa.DataType, column: str, label: str) -> pa.Array:
    """Return sums in the type that they are to have.

    Raises:
        DataError: One of them does not fit; the message names the aggregate, the column, the group and the sum.
    """
    totals = groups.answer(wide)
    try:
        return totals.cast(narrow)
    except pa.ArrowInvalid as error:
        group, total = next((i, t.as_py()) for i, t in enumerate(totals) if not _fits(t, narrow))
        kind = "LONG" if pa.types.is_integer(narrow) else f"decimal({narrow.precision}, {narrow.scale})"
        message = (
            f"{label}: the sum of column {column!r} in the group {groups.describe(group)} is {total}, which does not "
            f"fit {kind}; convert the column to a wider type, such as DOUBLE, in a map before the window"
        )
        raise DataError(message) from error


def _fits(total: pa.Scalar, narrow: pa.DataType) -> bool:
    try:
        total.cast(narrow)
    except pa.ArrowInvalid:
        return False
    return True


@dataclass(frozen=True)
class Moments:
    """The number of values, their mean, and the sum of the squares of their differences from it; null without a value.

    Parts are merged with the formula of Chan, Golub and LeVeque, which subtracts means and never large sums of squares.
    """

    column: str
    types: ClassVar[tuple[pa.DataType, ...]] = (pa.int64(), pa.float64(), pa.float64())

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
            return answers(extreme)
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


TIMESTAMP = "__timestamp"


@dataclass(frozen=True)
class ValueByTime:
    """The value of the row with the smallest or the largest time, and that time.

    Among equal times the smallest is that of the row that came first, the largest that of the row that came last.
    Where nulls are passed over and there is nothing else, value and time are null.
    """

    column: str
    type: pa.DataType
    function: Literal["min", "max"]
    ignore_nulls: bool

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The value, and its time in milliseconds."""
        return (self.type, pa.int64())

    def partial(self, grouping: Grouping) -> Later:
        """Find the row of each group."""
        values, times = grouping.column(self.column), grouping.column(TIMESTAMP)
        if self.ignore_nulls and values.null_count:
            known = pc.if_else(pc.is_valid(values), times, pa.scalar(None, pa.int64()))
            return self._found(grouping, f"time of {self.column}", values, known)
        return self._found(grouping, TIMESTAMP, values, times)

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Find the row among those of the parts."""
        values, times = (grouping.column(name) for name in names)
        return self._found(grouping, names[1], values, times)

    def _found(self, grouping: Grouping, name: str, values: pa.ChunkedArray, times: pa.ChunkedArray) -> Later:
        grouping.ask_rows()
        wanted = grouping.ask(name, times, self.function)

        def columns(groups: Groups) -> list[pa.Array]:
            time = groups.answer(wanted)
            hits = times.fill_null(0).to_numpy() == time.fill_null(0).to_numpy()[groups.ids]
            if times.null_count:
                hits &= times.is_valid().to_numpy()
            rows = np.flatnonzero(hits)
            if self.function == "min":
                rows = rows[::-1]  # of equal indices numpy keeps the last that is assigned
            place = np.full(groups.size, -1)
            place[groups.ids[rows]] = rows
            return [values.take(pa.array(place, mask=place < 0)).combine_chunks(), time]

        return columns


@dataclass(frozen=True)
class ValueList:
    """The values of a column that are not null, in the order of their arrival."""

    column: str
    type: pa.DataType

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One list, which is empty without a value."""
        return (pa.list_(self.type),)

    def partial(self, grouping: Grouping) -> Later:
        """List the values of each group."""
        grouping.ask_rows()
        values = grouping.column(self.column)

        def lists(groups: Groups) -> list[pa.Array]:
            ordered, ids = values_in_order(values, groups)
            return [lists_by_group(ids, ordered, groups.size)]

        return lists

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Put the lists of each group one after the other."""
        grouping.ask_rows()
        parts = grouping.column(names[0])

        def lists(groups: Groups) -> list[pa.Array]:
            elements, ids = elements_in_order(parts, groups)
            return [lists_by_group(ids, elements, groups.size)]

        return lists


@dataclass(frozen=True)
class ValueSet:
    """The different values of a column that are not null, in any order."""

    column: str
    type: pa.DataType

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One list, which is empty without a value."""
        return (pa.list_(self.type),)

    def partial(self, grouping: Grouping) -> Later:
        """Find the different values of each group."""
        return answers(ask_different(grouping, self.column))

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Put the sets of each group together."""
        grouping.ask_rows()
        parts = grouping.column(names[0])

        def sets(groups: Groups) -> list[pa.Array]:
            elements, ids = elements_in_order(parts, groups)
            pairs = pa.Table.from_arrays([pa.array(ids), elements], ["group", "value"])
            different = pairs.group_by(["group", "value"], use_threads=False).aggregate([])
            values = different.column("value").combine_chunks()
            return [lists_by_group(different.column("group").to_numpy(), values, groups.size)]

        return sets


def ask_different(grouping: Grouping, name: str) -> tuple[str, str]:
    """Ask for the distinct values of each group, without nulls."""
    values = with_one_nan_and_zero(grouping.column(name))
    return grouping.ask(f"{name} with one NaN and zero", values, "distinct", pc.CountOptions(mode="only_valid"))


def with_one_nan_and_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in which values have equal bits if they are equal to Spark: one NaN, and 0.0 for -0.0.

    >>> with_one_nan_and_zero(pa.chunked_array([[-0.0, 2.5, None]])).to_pylist()
    [0.0, 2.5, None]
    """
    if not pa.types.is_floating(column.type):
        return column
    column = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column) if has_nan(column) else column


def values_in_order(column: pa.ChunkedArray, groups: Groups) -> tuple[pa.Array, np.ndarray]:
    """Return the values that are not null, group by group, and the number of the group of each."""
    ordered, ids = column.take(pa.array(groups.order)).combine_chunks(), groups.ids_in_order
    if not ordered.null_count:
        return ordered, ids
    known = ordered.is_valid()
    return ordered.filter(known), ids[known.to_numpy(zero_copy_only=False)]


def elements_in_order(column: pa.ChunkedArray, groups: Groups) -> tuple[pa.Array, np.ndarray]:
    """Return the elements of a column of lists, group by group, and the number of the group of each.

    Arrow's own way of taking lists costs 200 ns an element, that by the places of the elements a tenth.
    """
    lists = column.combine_chunks()
    starts, lengths = (numbers.to_numpy()[groups.order] for numbers in (lists.offsets[:-1], lists.value_lengths()))
    shifts = np.repeat(starts - offsets_of(lengths)[:-1], lengths)
    places = np.arange(len(shifts), dtype=np.int32) + shifts
    return lists.values.take(pa.array(places)), np.repeat(groups.ids_in_order, lengths)
