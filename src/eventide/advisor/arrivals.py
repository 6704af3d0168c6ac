"""Batches of columns as stretches to measure: in the order in which they come, or by a column of that order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide.advisor.meter import Stretch
from eventide.advisor.times import Clock, Unit
from eventide.errors import DataError

_ONE = "all"
_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Which columns say what.

    Args:
        time: the event time.
        split_by: what elements of one split have in common; nothing: all are of one split.
        order_by: the order of arrival; if it holds times, they are those of arrival. None: rows are in that order.
        unit: what numbers of ``time`` and ``order_by`` count; see :class:`Clock`.
    """

    time: str
    split_by: tuple[str, ...] = ()
    order_by: str | None = None
    unit: Unit | None = None

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
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
        self._time = Clock(columns.time, columns.unit)
        self._arrival = None if columns.order_by is None else Clock(columns.order_by, columns.unit)

    def of(self, batch: pa.RecordBatch) -> Stretch:
        """The rows of a batch that have a time; ``clock`` is whatever ``order_by`` holds, as numbers.

        Raises:
            DataError: if a column does not say what it should; see :meth:`Clock.times`.
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
