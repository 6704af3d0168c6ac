"""Batches of columns as stretches to measure, in the order of arrival, with their times as milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide.advisor.disorder import Stretch
from eventide.common.words import PER_S, UNIT_NAMES, moment, other_unit_of
from eventide.connectors.file_system.format import points_in_time
from eventide.errors import DataError, ProgramError
from eventide.runtime.chain.timestamps import checked_column
from eventide.runtime.observation.histograms import Ints

_ONE = "all"
_AT_A_TIME = 1 << 20

Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
"""Unit of whole numbers: seconds, milliseconds, microseconds or nanoseconds since the epoch."""

_FURTHEST_MS = 1 << 51  # lengths between two times must be whole numbers of a float: the year 73,000


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Which columns say what.

    Args:
        time: the event time.
        split_by: the columns that tell splits apart; nothing: all elements are of one split.
        order_by: the order of arrival; if it holds times, they are those of arrival. None: rows are in that order.
        unit: the unit of numbers in ``time`` and ``order_by``; see :class:`TimeColumn`.
    """

    time: str
    split_by: tuple[str, ...] = ()
    order_by: str | None = None
    unit: Unit | None = None

    @property
    def names(self) -> list[str]:
        """The names of all columns, each once."""
        return list(dict.fromkeys([self.time, *self.split_by, *([] if self.order_by is None else [self.order_by])]))


class Stretches:
    """Makes stretches of record batches that have the columns.

    Attributes:
        order_is_time: whether the order of arrival is one of times, as far as has been seen; numbers are places in a
            log, say.
    """

    def __init__(self, columns: ColumnRoles) -> None:
        self.order_is_time = False
        self._columns = columns
        self._time = TimeColumn(columns.time, columns.unit)
        self._arrival = None if columns.order_by is None else TimeColumn(columns.order_by, columns.unit)

    def of(self, batch: pa.RecordBatch) -> Stretch:
        """The rows of a batch that have a time; ``clock`` is whatever ``order_by`` holds, as numbers.

        Raises:
            DataError: if a column does not say what it should; see :meth:`TimeColumn.times`.
        """
        times, nulls = batch.column(self._columns.time), 0
        if times.null_count:
            nulls = times.null_count
            batch = batch.filter(times.is_valid())
            times = batch.column(self._columns.time)
        names, places = self._splits(batch)
        return Stretch(self._time.times(times), names, places, self._order(batch), nulls)

    def _order(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        if self._arrival is None:
            return None
        order = batch.column(self._arrival.column)
        if order.null_count:
            raise DataError(
                f"the column {self._arrival.column!r} is null in {order.null_count:,} rows, so that it is not known "
                "when these arrived; order by a column that all rows have"
            )
        if pa.types.is_integer(order.type):
            found: npt.NDArray[np.int64] = order.cast(pa.int64()).to_numpy()
            return found
        self.order_is_time = True
        return self._arrival.times(order)

    def _splits(self, batch: pa.RecordBatch) -> tuple[list[str], npt.NDArray[np.int32]]:
        columns = [batch.column(name) for name in self._columns.split_by]
        if not columns:
            return [_ONE], np.zeros(len(batch), np.int32)
        texts = [pc.fill_null(column.cast(pa.string()), "null") for column in columns]
        whole = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, ", ")
        encoded = whole.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


def in_order(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """All elements by their clock, those of one time in the order in which they came.

    What is not in order already is sorted in memory, which takes some 50 bytes for each element.
    """
    gathered = list(stretches)
    if not gathered:
        return
    clock = np.concatenate([_clock(one) for one in gathered])
    order = None if np.all(clock[1:] >= clock[:-1]) else np.argsort(clock, kind="stable")
    nulls = sum(one.nulls for one in gathered)
    names, places = _together(gathered)
    times = np.concatenate([one.times for one in gathered])
    gathered.clear()
    for start in range(0, max(len(times), 1), _AT_A_TIME):
        these = slice(start, start + _AT_A_TIME) if order is None else order[start : start + _AT_A_TIME]
        yield Stretch(times[these], names, places[these], clock[these], 0 if start else nulls)


@dataclass(slots=True)
class TimeColumn:
    """The form in which one column holds times.

    Args:
        column: its name.
        unit: the unit of its numbers; None if the first of them shows it: milliseconds, and numbers
            that would be a date of these decades in another unit are an error.
    """

    column: str
    unit: Unit | None = None
    _is_checked: bool = False

    def __post_init__(self) -> None:
        if self.unit not in (*UNIT_NAMES, None):
            raise ProgramError(f"unit: expected one of {', '.join(map(repr, UNIT_NAMES))}, got {self.unit!r}")

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
        per_s = PER_S[self.unit or "ms"]
        try:
            numbers = pc.multiply_checked(numbers.cast(pa.int64()), max(PER_S["ms"] // per_s, 1))
        except pa.ArrowInvalid as error:
            raise DataError(f"the column {self.column!r} has times beyond the year 73,000: {error}") from error
        if self.unit is None and not self._is_checked and len(numbers):
            self._check_unit(numbers)
        if per_s <= PER_S["ms"]:
            return numbers
        return pa.array(np.floor_divide(numbers.to_numpy(), per_s // PER_S["ms"]))

    def _check_unit(self, numbers: pa.Array) -> None:
        middle = int(np.median(numbers.to_numpy()))
        unit = other_unit_of(middle)
        if unit is not None:
            raise DataError(
                f"the numbers of the column {self.column!r} look like {UNIT_NAMES[unit]}: {middle} is "
                f"{moment(middle * 1_000 // PER_S[unit])} in {UNIT_NAMES[unit]}, and "
                f"{_in_milliseconds_that_is(middle)} in milliseconds, which eventide counts. If they are "
                f"{UNIT_NAMES[unit]}, say so with unit={unit!r} (--unit {unit}), and convert them in the job too; "
                "unit='ms' takes them as they are"
            )
        self._is_checked = True


def _clock(stretch: Stretch) -> npt.NDArray[np.int64]:
    if stretch.clock is None:
        raise DataError("there is no order of arrival to sort by")
    return stretch.clock


def _together(stretches: Sequence[Stretch]) -> tuple[list[str], npt.NDArray[np.int32]]:
    numbers: dict[str, int] = {}
    places = []
    for one in stretches:
        places.append(np.array([numbers.setdefault(name, len(numbers)) for name in one.names], np.int32)[one.places])
    return list(numbers), np.concatenate(places)


def _in_milliseconds_that_is(number: int) -> str:
    text = moment(number)
    return "far beyond the year 9999" if text.endswith(" ms") else text
