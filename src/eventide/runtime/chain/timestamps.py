"""Event time given to elements: one by one, or a column at once."""

from __future__ import annotations

import datetime
import operator as python_operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.time import Instant
from eventide.common.timestamp_assigner import (
    ExpressionAssigner,
    FunctionAssigner,
    RecordTimestampAssigner,
    SuppliedAssigner,
    TimestampAssigner,
    VectorizedTimestampAssigner,
)
from eventide.common.typeinfo import TypeInformation, Types
from eventide.common.watermark_strategy import NullTimestamps, WatermarkSpec
from eventide.errors import DEAD_LETTER_ADVICE, DataError, ProgramError
from eventide.runtime.chain.chained_operators import element_error
from eventide.runtime.chain.outputs import dead_letter
from eventide.runtime.elements.elements import Columns, Elements
from eventide.runtime.elements.ownership import only_looks, own
from eventide.runtime.invoke import calling, is_of_the_data
from eventide.runtime.tracing.admission import NotTraceable
from eventide.runtime.tracing.column_functions import fields_read, timestamps, traced_time
from eventide.runtime.tracing.kernels import Guard
from eventide.runtime.tracing.reasons import place_of, why_python

_ADVICE = "a timestamp assigner, or a source, must give milliseconds since the epoch as an int"
_WAYS_OUT = (
    "where some are missing, the strategy's with_null_timestamps(NullTimestamps.DROP), or with an OutputTag, lets the "
    "job go on without those elements"
)
_ASSIGNING = "when it looked for a timestamp"
_PER_MS = {"ns": 1_000_000, "us": 1_000, "ms": 1}


@dataclass(frozen=True, slots=True)
class AssignTimestamps:
    """Gives elements their event time; the watermarks of its strategy replace those that came before.

    Elements that come as columns stay columns where the strategy names a column, or is vectorised, or keeps the
    timestamps that they have. ``number`` tells the assigners of a program apart, ``id`` is what a generator of the
    user's is kept under: that stays when the program around it changes. ``place`` is where the strategy's column is in
    elements that are tuples. ``dead_letters`` is the side output of elements whose timestamp cannot be found.
    Flink: ``TimestampsAndWatermarksOperator``.
    """

    name: str
    number: int
    strategy: WatermarkSpec
    id: str = ""
    place: int | None = None
    dead_letters: str | None = None
    user_function: ClassVar[None] = None
    """A timestamp assigner is not opened."""

    @property
    def takes_columns(self) -> bool:
        """Whether the strategy finds timestamps without Python objects."""
        return self.strategy.is_columnar

    def on_columns(self, columns: Columns) -> Elements | None:
        """The elements with the timestamps that the trace of an assigner's function gives.

        Raises:
            Guard: if one of them is not a timestamp, or Python might give another one.
        """
        function = self._function()
        if function is None:
            return None
        try:
            return Elements(columns=columns).with_timestamps(checked_column(timestamps(function, columns)))
        except NotTraceable:
            return None
        except DataError as error:
            raise Guard("a timestamp that is missing or out of range") from error

    def why_in_python(self, type_info: TypeInformation) -> str | None:
        """The reason why the assigner runs in Python; None if it takes columns, or is traced."""
        if self.takes_columns:
            return None
        function = self._function()
        if function is None:
            supplied = self.strategy.timestamp_assigner
            place = place_of(supplied.supplier) if isinstance(supplied, SuppliedAssigner) else ""
            return f"its assigner is made when the job starts{place}"
        return why_python(lambda: traced_time(function, type_info), function, type_info)

    def fields_read(self, type_info: TypeInformation) -> frozenset[str] | None:
        """The fields of elements that the assigner's function reads; None if that is not known."""
        function = self._function()
        return None if function is None else fields_read(function, type_info, Types.LONG())

    def _function(self) -> Callable[[Any, int], Any] | None:
        """The function that finds a timestamp, if it is known and not vectorised."""
        assigner = self.strategy.timestamp_assigner
        if assigner is None or isinstance(assigner, SuppliedAssigner | VectorizedTimestampAssigner):
            return None
        return assigner.function if isinstance(assigner, FunctionAssigner) else assigner.extract_timestamp

    def with_assigner(self, assigner: TimestampAssigner) -> AssignTimestamps:
        """Return a copy that takes timestamps from the assigner of one split."""
        keeps = type(assigner) is RecordTimestampAssigner
        strategy = replace(self.strategy, timestamp_assigner=None if keeps else assigner, timestamp_column=None)
        return replace(self, strategy=strategy)

    def sort_out(self, batch: Elements) -> tuple[Elements, Elements | None, Elements | None]:
        """Extract and check each timestamp, and set the elements apart that have none.

        Returns:
            the elements with a timestamp; those without one, where the strategy lets them pass; and where dead letters
            are wanted, those of the elements whose timestamp cannot be found.

        Raises:
            DataError: for a timestamp that is missing, or is none, naming the element where it can be known.
        """
        keeps_null = self.strategy.null_timestamps is not NullTimestamps.FAIL
        if self.dead_letters is None:
            return *self._applied(batch, keeps_null=keeps_null), None
        letters = Elements()
        if batch.columns is None or not self.strategy.is_columnar:
            elements, timestamps = self._each_or_letter(batch, letters, keeps_null=keeps_null)
            return *self._timed(elements, timestamps, keeps_null=keeps_null), letters
        timed: list[Columns] = []
        without: list[Columns] = []
        self._sort_out_columns(batch.columns, keeps_null, (timed, without, letters))
        return _joined(timed) or Elements(), _joined(without), letters

    def _applied(self, batch: Elements, *, keeps_null: bool) -> tuple[Elements, Elements | None]:
        if batch.columns is None or not self.strategy.is_columnar:
            return self._one_by_one(batch, keeps_null)
        columns, without = batch.columns, None
        with calling(self.name, during="when timestamps were read from a column", advice=DEAD_LETTER_ADVICE):
            array = _without_nan(self._column(columns))
            if len(array) != len(columns):
                raise ProgramError(f"the timestamp assigner gave {len(array)} timestamps for {len(columns)} elements")
            if keeps_null and array.null_count:
                without = Elements(columns=columns.filtered(array.is_null()))
                batch, array = Elements(columns=columns.filtered(array.is_valid())), array.drop_null()
            return batch.with_timestamps(checked_column(array)), without

    def _sort_out_columns(
        self, columns: Columns, keeps_null: bool, found: tuple[list[Columns], list[Columns], Elements]
    ) -> None:
        """Add what :meth:`sort_out` gives for columns; where they fail, for each half of them, down to one element."""
        timed, without, letters = found
        try:
            good, null = self._applied(Elements(columns=columns), keeps_null=True)
        except Exception as error:
            if len(columns) == 1 or not is_of_the_data(error):
                self._add_letters(letters, Elements(columns=columns), error)
                return
            middle = len(columns) // 2
            for half in (columns.slice(0, middle), columns.slice(middle, len(columns))):
                self._sort_out_columns(half, keeps_null, found)
            return
        if good:
            timed.append(good.as_columns(columns.type_info))
        if null and keeps_null:
            without.append(null.as_columns(columns.type_info))
        elif null:
            self._add_letters(letters, null, no_timestamp_found(None))

    def _each_or_letter(
        self, elements: Elements, letters: Elements, *, keeps_null: bool
    ) -> tuple[Elements, list[int | None]]:
        """Find the timestamp of each element, or add its dead letter; give the elements that have none, and theirs."""
        extract = self._extractor()
        timestamps: list[Any] = []
        good: list[int] = []
        for place, (value, record, number) in enumerate(
            zip(elements.values, elements.timestamps, elements.sequence, strict=True)
        ):
            original = own(value)
            try:
                timestamp = extract(value, MIN_MS if record is None else record)
                is_let_through = keeps_null and _is_null(timestamp)
                timestamps.append(timestamp if is_let_through else checked_timestamp(timestamp))
                good.append(place)
            except Exception as error:
                self._add_letter(letters, error, original, record, number)
        return elements.at(good) if letters else elements, timestamps

    def _add_letters(self, letters: Elements, elements: Elements, error: Exception) -> None:
        for value, time_ms, number in zip(elements.values, elements.timestamps, elements.sequence, strict=True):
            self._add_letter(letters, error, value, time_ms, number)

    def _add_letter(self, letters: Elements, error: Exception, value: object, time_ms: int | None, number: int) -> None:
        letter = dead_letter(self.name, _ASSIGNING, error, element=value, timestamp=time_ms)
        letters.append(letter, time_ms, number)

    def _column(self, columns: Columns) -> pa.Array:
        assigner = self.strategy.timestamp_assigner
        if isinstance(assigner, VectorizedTimestampAssigner):
            return array_of(assigner.extract_timestamps(columns.fields()))
        if isinstance(self.strategy.timestamp_column, str):
            return array_of(columns.field(self.strategy.timestamp_column))
        return columns.timestamps_or_nulls()

    def _one_by_one(self, elements: Elements, keeps_null: bool) -> tuple[Elements, Elements | None]:
        assigner, timestamps = self.strategy.timestamp_assigner, list[Any]()
        if isinstance(assigner, ExpressionAssigner):
            try:
                return self._timed(elements, assigner.extract_each(elements.values), keeps_null=keeps_null)
            except DataError:
                pass  # one by one, the element shows that is to blame
        extract, values = self._extractor(), iter(elements.values)
        try:
            if elements.timestamps.count(None) == len(elements):
                timestamps = [extract(value, MIN_MS) for value in values]
            else:
                records = zip(values, elements.timestamps, strict=True)
                timestamps = [extract(value, MIN_MS if record is None else record) for value, record in records]
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return self._timed(elements, timestamps, keeps_null=keeps_null)

    def _timed(
        self, elements: Elements, timestamps: list[Any], *, keeps_null: bool
    ) -> tuple[Elements, Elements | None]:
        """Elements with the timestamps that were found for them, and apart from them those that have none."""
        without: Elements | None = None
        if keeps_null and (gone := [i for i, timestamp in enumerate(timestamps) if _is_null(timestamp)]):
            kept = sorted({*range(len(timestamps))}.difference(gone))
            without, elements = elements.at(gone), elements.at(kept)
            timestamps = [timestamps[i] for i in kept]
        column = _as_they_are(timestamps)
        if column is None:
            timestamps = self._checked_each(elements, timestamps)
            column = pa.array(timestamps, pa.int64())
        columns = None if elements.columns is None else replace(elements.columns, timestamps=column)
        return Elements(elements.values, timestamps, elements.sequence, columns=columns), without

    def _checked_each(self, elements: Elements, timestamps: list[Any]) -> list[Any]:
        values, checked = iter(elements.values), []
        try:
            for _, timestamp in zip(values, timestamps, strict=True):
                checked.append(checked_timestamp(timestamp))
        except Exception as error:
            raise element_error(self.name, error, elements, values) from error
        return checked

    def _extractor(self) -> Callable[[Any, int], Any]:
        assigner, column = self.strategy.timestamp_assigner, self.strategy.timestamp_column
        if isinstance(assigner, SuppliedAssigner):
            raise ProgramError(f"the timestamp assigner of {self.name!r} has not been made")
        if assigner is not None:
            extract: Callable[[Any, int], Any] = assigner.extract_timestamp
            if isinstance(assigner, FunctionAssigner):
                extract = assigner.function
            return extract if only_looks(extract) else lambda value, record: extract(own(value), record)
        if isinstance(column, str):
            place: object = column if self.place is None else self.place
            return lambda value, _: to_epoch_ms(value[place])
        return lambda _, record_timestamp: None if record_timestamp == MIN_MS else record_timestamp


def highest_timestamp(batch: Elements) -> int:
    """The highest timestamp of elements that all have one, in milliseconds."""
    if batch.columns is not None:
        return int(pc.max(batch.columns.timestamps).as_py())
    timestamps: list[Any] = batch.timestamps
    return int(max(timestamps))


def times_of(batch: Elements) -> Any:
    """The timestamps of elements that all have one, as an array of milliseconds."""
    if batch.columns is not None:
        return batch.columns.timestamps_or_nulls().to_numpy()
    return np.array(batch.timestamps, np.int64)


def _joined(parts: list[Columns]) -> Elements | None:
    return Elements(columns=Columns.joined(parts)) if parts else None


def to_epoch_ms(value: object) -> Any:
    """A point in time as milliseconds since the epoch (one without a zone is UTC); anything else as it is.

    >>> to_epoch_ms(datetime.datetime(1970, 1, 1, 0, 0, 1))
    1000
    """
    if isinstance(value, Instant):
        return value.to_epoch_milli()
    if not isinstance(value, datetime.datetime):
        return value
    aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return (aware - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)


def array_of(array: object) -> pa.Array:
    """Return the timestamps of a column, or of a vectorised assigner, as an array.

    Raises:
        DataError: if it is none.
    """
    if isinstance(array, pa.ChunkedArray):
        return array.combine_chunks()
    if not isinstance(array, pa.Array):
        raise DataError(f"a vectorised timestamp assigner must return an Arrow array, not a {type(array).__name__}")
    return array


def checked_column(array: pa.Array) -> pa.Array:
    """A column of timestamps as int64 milliseconds: whole numbers as they are, a date and time without a zone as UTC.

    As in PyFlink, a fraction of a millisecond is cut off, towards zero.

    Raises:
        DataError: if one is missing or out of range, or the column is of another type.

    >>> checked_column(pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)])).to_pylist()
    [1000]
    """
    if array.null_count:
        raise DataError(f"the timestamp is None in {array.null_count} of {len(array)} elements; {_ADVICE}; {_WAYS_OUT}")
    milliseconds = _milliseconds(array)
    lowest = pc.min(milliseconds).as_py()  # None if there are no rows
    if lowest == MIN_MS:
        raise DataError(f"the timestamp {lowest} is out of range ({MIN_MS + 1} to {MAX_MS}); {_ADVICE}")
    return milliseconds


def _milliseconds(array: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(array.type):
        count = array.view(pa.int64())
        if array.type.unit == "s":
            return pc.multiply_checked(count, 1000)
        divisor = _PER_MS[array.type.unit]
        return count if divisor == 1 else pa.array(np.floor_divide(count.to_numpy(), divisor))
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        try:
            return (array if pa.types.is_integer(array.type) else pc.trunc(array)).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"a timestamp is out of range: {error}; {_ADVICE}") from error
    raise DataError(f"the timestamps are of Arrow type {array.type}, not numbers or timestamps; {_ADVICE}")


def _without_nan(array: pa.Array) -> pa.Array:
    """Timestamps with nulls in place of NaN."""
    return pc.if_else(pc.is_nan(array), None, array) if pa.types.is_floating(array.type) else array


def _is_null(timestamp: object) -> bool:
    return timestamp is None or (isinstance(timestamp, float | np.floating) and bool(np.isnan(timestamp)))


def _as_they_are(timestamps: list[Any]) -> pa.Array | None:
    """Timestamps as a column; None if they are not all in order, and have to be looked at one by one."""
    if set(map(type, timestamps)) != {int}:
        return None
    try:
        array = np.fromiter(timestamps, np.int64, len(timestamps))
    except OverflowError:
        return None
    return pa.array(array) if array.min() > MIN_MS else None


def no_timestamp_found(timestamp: object) -> DataError:
    """Return the error for an element without a timestamp."""
    return DataError(f"the timestamp is {'None' if timestamp is None else 'NaN'}; {_ADVICE}; {_WAYS_OUT}")


def checked_timestamp(timestamp: object) -> int:
    """A timestamp as an int of milliseconds, whatever kind of integer or float it is.

    As in PyFlink, a fraction of a millisecond is cut off, towards zero.

    Raises:
        DataError: if it is missing, no number, or out of range.

    >>> checked_timestamp(np.int64(5)), checked_timestamp(5.9)
    (5, 5)
    """
    if _is_null(timestamp):
        raise no_timestamp_found(timestamp)
    if isinstance(timestamp, float | np.floating):
        if not MIN_MS <= timestamp < -MIN_MS:
            raise DataError(f"the timestamp {timestamp} is out of range ({MIN_MS + 1} to {MAX_MS}); {_ADVICE}")
        return checked_timestamp(int(timestamp))
    if isinstance(timestamp, bool) or not hasattr(timestamp, "__index__"):
        raise DataError(f"the timestamp {timestamp!r} is a {type(timestamp).__name__}, not a number; {_ADVICE}")
    number = python_operator.index(timestamp)
    if not MIN_MS < number <= MAX_MS:
        raise DataError(f"the timestamp {number} is out of range ({MIN_MS + 1} to {MAX_MS}); {_ADVICE}")
    return number
