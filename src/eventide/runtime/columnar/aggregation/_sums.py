"""Counts and sums: what Arrow adds up by itself, with an eye on overflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import DataError
from eventide.runtime.columnar.aggregation._groups import Grouping, Groups, Later

_DECIMAL = pa.decimal128(38, 0)
_WIDE_DIGITS = 76


@dataclass(frozen=True)
class RowCount:
    """How many rows there are."""

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One whole number."""
        return (pa.int64(),)

    def partial(self, grouping: Grouping) -> Later:
        """Count the rows of each group."""
        size = grouping.ask_size()
        return lambda groups: [groups.answer(size)]

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Add the counts."""
        total = grouping.ask(names[0], grouping.column(names[0]), "sum")
        return lambda groups: [groups.answer(total)]


@dataclass(frozen=True)
class ValueCount(RowCount):
    """How many values of a column are not null."""

    column: str

    def partial(self, grouping: Grouping) -> Later:
        """Count the values of each group."""
        question = ask_count(grouping, self.column)
        return lambda groups: [groups.answer(question)]


@dataclass(frozen=True)
class LongSum:
    """The sum of a column of integers as a 64-bit integer; null without a value.

    Arrow wraps around without a word. Where the largest value times the number of rows stays below 64 bits no sum can
    overflow, so that one look at the extremes is enough; otherwise sums are made with 38 digits.
    """

    column: str
    label: str = field(compare=False)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One whole number."""
        return (pa.int64(),)

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
            total = grouping.ask(name, column, "sum")
            return lambda groups: [groups.answer(total)]
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
            total = grouping.ask(f"{name} as {self.type}", column.cast(self.type), "sum")
            return lambda groups: [groups.answer(total)]
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

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """One double."""
        return (pa.float64(),)

    def partial(self, grouping: Grouping) -> Later:
        """Add the values of each group; those of integers as integers where they fit."""
        column = grouping.column(self.column)
        if pa.types.is_floating(column.type):
            return self.merge(grouping, [self.column])
        if long_sums_fit(column):
            exact = grouping.ask(self.column, column, "sum")
            return lambda groups: [groups.answer(exact).cast(pa.float64(), safe=False)]
        total = grouping.ask(f"{self.column} as double", column.cast(pa.float64(), safe=False), "sum")
        return lambda groups: [groups.answer(total)]

    def merge(self, grouping: Grouping, names: Sequence[str]) -> Later:
        """Add the sums."""
        total = grouping.ask(names[0], grouping.column(names[0]), "sum")
        return lambda groups: [groups.answer(total)]


def ask_count(grouping: Grouping, name: str) -> tuple[str, str]:
    """Have the values of a column counted that are not null; where none is null, these are the rows."""
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
