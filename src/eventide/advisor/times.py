"""ColumnRoles of times as milliseconds since the epoch (UTC), or an error that says what they are instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.units import NAMES, PER_S, other_unit_of
from eventide.common.words import moment
from eventide.connectors.file_system.columns import points_in_time
from eventide.errors import DataError, ProgramError
from eventide.runtime.chain.timestamps import checked_column
from eventide.runtime.eventtime.histograms import Ints

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""Unit of whole numbers: seconds, milliseconds, microseconds or nanoseconds since the epoch."""

_FURTHEST_MS = 1 << 51  # lengths between two times must be whole numbers of a float: the year 73,000


@dataclass(slots=True)
class Clock:
    """How one column says times.

    Args:
        column: its name.
        unit: what its numbers count; None where that is to be seen from the first of them: milliseconds, and numbers
            that would be a date of these decades in another unit are an error.
    """

    column: str
    unit: Unit | None = None
    _is_checked: bool = False

    def __post_init__(self) -> None:
        if self.unit not in (*NAMES, None):
            raise ProgramError(f"unit: expected one of {', '.join(map(repr, NAMES))}, got {self.unit!r}")

    def times(self, values: pa.Array) -> Ints:
        """The values as milliseconds.

        Args:
            values: timestamps (those without a zone are UTC), text in ISO 8601 (the same), or whole numbers; no nulls.

        Raises:
            DataError: if they are something else, count another unit, or are out of range.
        """
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = self._points_in_time(values)
        if pa.types.is_integer(values.type):
            values = self._in_milliseconds(values)
        elif not pa.types.is_timestamp(values.type):
            raise DataError(
                f"the column {self.column!r} has the type {values.type}, and not times; it must have timestamps, text "
                "in ISO 8601, or whole numbers of milliseconds since the epoch"
            )
        found: Ints = checked_column(values).to_numpy()
        if len(found) and max(int(found.max()), -int(found.min())) > _FURTHEST_MS:
            raise DataError(f"the column {self.column!r} has times beyond the year 73,000, such as {found.max()} ms")
        return found

    def _points_in_time(self, texts: pa.Array) -> pa.Array:
        try:
            return points_in_time(texts, pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid as error:
            raise DataError(f"the column {self.column!r} has text that is not a time in ISO 8601: {error}") from error

    def _in_milliseconds(self, numbers: pa.Array) -> pa.Array:
        numbers = numbers.cast(pa.int64())
        if self.unit is None and not self._is_checked and len(numbers):
            self._check_unit(numbers)
        per_s = PER_S[self.unit or "ms"]
        if per_s < PER_S["ms"]:
            return pc.multiply_checked(numbers, PER_S["ms"] // per_s)
        return numbers if self.unit in {None, "ms"} else pa.array(np.floor_divide(numbers.to_numpy(), per_s // 1_000))

    def _check_unit(self, numbers: pa.Array) -> None:
        middle = int(np.median(numbers.to_numpy()))
        unit = other_unit_of(middle)
        if unit is not None:
            raise DataError(
                f"the numbers of the column {self.column!r} look like {NAMES[unit]}: {middle} is "
                f"{moment(middle * 1_000 // PER_S[unit])} in {NAMES[unit]}, and {_in_milliseconds_that_is(middle)} in "
                f"milliseconds, which eventide counts. If they are {NAMES[unit]}, say so with unit={unit!r} "
                f"(--unit {unit}), and convert them in the job too; unit='ms' takes them as they are"
            )
        self._is_checked = True


def _in_milliseconds_that_is(number: int) -> str:
    text = moment(number)
    return "far beyond the year 9999" if text.endswith(" ms") else text
