"""Simple types: numbers, decimals, text, booleans, dates and times; pickled objects, bytes and windows of time."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from eventide._absent import says_what_is_absent
from eventide.common.ms import MAX_MS, MIN_MS
from eventide.common.time import Instant
from eventide.common.type_variables import T_co
from eventide.common.typeinfo.base import (
    DoesNotFit,
    TypeInformation,
    convert_each,
    instance_of,
    one_array,
    read_as,
    refuse,
    types_of,
)
from eventide.common.windows import TimeWindow
from eventide.errors import DataError, ProgramError, TypeMismatch
from eventide.pickling.pickles import dumps, loads

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Times: TypeAlias = Sequence[int] | np.ndarray[Any, Any]

FLOAT_LIMIT = 3.4028235677973366e38
"""A number below this one, halfway between the largest 32-bit float and 2**128, rounds to a finite 32-bit float."""

_LIMITS = {
    "BIG_INT": "it has up to 38 digits; do not declare the type (numbers then stay as they are), or declare "
    "Types.STRING() and send its text",
    "BIG_DEC": "it has up to 20 digits before the point and 18 after it; Types.BIG_DEC(precision, scale) splits its "
    "38 in another way; do not declare the type (numbers then stay as they are), or declare "
    "Types.STRING() and send its text",
}
"""Where PyFlink has none, what a column of the type can hold, and what to do with more."""

MOST_DIGITS = 38
"""The greatest number of digits of a decimal in Spark, and of one of 128 bits in Arrow."""

_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days
_DAY_MICROS = 86_400_000_000
_MICROS = _FIRST_DAY * _DAY_MICROS, (_LAST_DAY + 1) * _DAY_MICROS - 1


@says_what_is_absent
@dataclass(frozen=True, eq=False)
class BasicTypeInfo(TypeInformation[T_co]):
    """A type of single values, known by its name in `Types`."""

    name: str

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, BasicTypeInfo) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return KINDS[self.name].arrow(pa)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the values as an Arrow array; see `TypeInformation.to_arrow`.

        Arrow would silently accept values that do not fit (1.5 as an int, bytes as text), so the Python types are
        checked first, all at once. Values are checked one by one only if that is not enough.
        """
        kind = KINDS[self.name]

        def converted(value: object) -> Any:
            return kind.convert(_without_numpy(value))

        are_direct = types_of(values) <= kind.direct
        cells = values if are_direct else convert_each(values, self.name, converted)
        try:
            return self._encode(cells)
        except (ValueError, TypeError, OverflowError):
            convert_each(values, self.name, lambda value: self._encode_one(converted(value)))
            raise

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        return KINDS[self.name].decode(read_as(self, array))

    @property
    def has_exponents(self) -> bool:
        return self.name == "BIG_DEC"

    def keeps(self, values: Sequence[Any]) -> bool:
        kind = KINDS[self.name]
        return self.name in _EXACT and types_of(values) <= kind.direct and kind.are_exact(values)

    def as_declared(self, values: list[Any]) -> list[Any]:
        if self.keeps(values) or (self.has_exponents and types_of(values) <= KINDS[self.name].direct):
            try:
                self._encode(values)  # refuses what is too large, and text that is none
            except (ValueError, TypeError, OverflowError):
                self.to_arrow(values)
                raise
            return values
        return self.from_arrow(self.to_arrow(values))

    def _encode_one(self, value: object) -> None:
        try:
            self._encode([value])
        except (ValueError, TypeError, OverflowError) as error:
            if self.name in _LIMITS:
                raise DoesNotFit(_LIMITS[self.name]) from error
            raise

    def _encode(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        if self.name == "INSTANT":
            return pa.array(values, pa.int64()).view(self.arrow_type())
        array = pa.array(values, self.arrow_type())
        if self.name == "SQL_TIMESTAMP" and not _lies_between(array.view(pa.int64()), *_MICROS):
            raise DoesNotFit("in UTC it lies before the year 1 or after the year 9999; declare Types.INSTANT()")
        return array

    def __repr__(self) -> str:
        return self.name


@says_what_is_absent
class DateTypeInfo(BasicTypeInfo[dt.date]):
    """The type of dates, which `Types.SQL_DATE` gives. PyFlink: ``DateTypeInfo``.

    >>> DateTypeInfo()
    SQL_DATE
    """

    def __init__(self) -> None:
        super().__init__("SQL_DATE")


@says_what_is_absent
class TimeTypeInfo(BasicTypeInfo[dt.time]):
    """The type of times of day, which `Types.SQL_TIME` gives. PyFlink: ``TimeTypeInfo``.

    >>> TimeTypeInfo()
    SQL_TIME
    """

    def __init__(self) -> None:
        super().__init__("SQL_TIME")


class TimestampTypeInfo(BasicTypeInfo[dt.datetime]):
    """The type of points in time as ``datetime``, which `Types.SQL_TIMESTAMP` gives. PyFlink: ``TimestampTypeInfo``.

    >>> TimestampTypeInfo()
    SQL_TIMESTAMP
    """

    def __init__(self) -> None:
        super().__init__("SQL_TIMESTAMP")


class SqlTimeTypeInfo:
    """Makes the types of dates and times, as `Types` does. PyFlink: ``SqlTimeTypeInfo``.

    >>> SqlTimeTypeInfo.DATE(), SqlTimeTypeInfo.TIME(), SqlTimeTypeInfo.TIMESTAMP()
    (SQL_DATE, SQL_TIME, SQL_TIMESTAMP)
    """

    DATE = DateTypeInfo
    TIME = TimeTypeInfo
    TIMESTAMP = TimestampTypeInfo


@dataclass(frozen=True)
class DecimalTypeInfo(TypeInformation[Decimal]):
    """A `Decimal` of `precision` digits, `scale` of them after the point: Spark's ``DecimalType``. Not in PyFlink.

    A value with fewer digits after the point is filled up with zeros; a value that would have to be rounded does not
    fit.

    Raises:
        ProgramError: There are no numbers of `precision` digits.

    >>> DecimalTypeInfo(10, 2).as_declared([Decimal("1.5"), None])
    [Decimal('1.50'), None]
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        sizes = (self.precision, self.scale)
        if not all(type(size) is int for size in sizes) or not 0 <= self.scale <= self.precision <= MOST_DIGITS:
            raise ProgramError(
                f"BIG_DEC: expected 1 to {MOST_DIGITS} digits, 0 to all of them after the point, got {sizes}"
            )
        if self.precision == 0:
            raise ProgramError("BIG_DEC: expected at least one digit, got none")

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.decimal128(self.precision, self.scale)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        if not types_of(values) <= {Decimal}:
            convert_each(values, repr(self), instance_of(Decimal))
        try:
            return self._encode(values)
        except (ValueError, TypeError, OverflowError):
            convert_each(values, repr(self), lambda value: self._encode([value]))
            raise

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Return the values, each with `scale` digits after the point."""
        return decimals_of(read_as(self, array))

    def keeps(self, values: Sequence[Any]) -> bool:
        exponent = -self.scale
        return types_of(values) <= {Decimal} and all(
            v is None or (v.as_tuple().exponent == exponent and (v or not v.is_signed()))  # Arrow has no -0.00
            for v in values
        )

    def _encode(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        return pa.array(values, self.arrow_type())

    def __repr__(self) -> str:
        return f"BIG_DEC({self.precision}, {self.scale})"


def _without_numpy(value: object) -> Any:
    """Return the Python value of a NumPy scalar, which a user's function may compute; return others unchanged."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else refuse(value)


def _double(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else refuse(value)


def _float(value: object) -> float:
    number = _double(value)
    return refuse(value) if math.isfinite(number) and abs(number) >= FLOAT_LIMIT else number


def _char(value: object) -> str:
    return value if isinstance(value, str) and len(value) == 1 else refuse(value)


def _date(value: object) -> dt.date:
    return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else refuse(value)


def _naive_time(value: object) -> dt.time:
    return value if isinstance(value, dt.time) and value.tzinfo is None else refuse(value)


def _instant_micros(value: object) -> int:
    if not isinstance(value, Instant):
        refuse(value)
    if value.nanos % 1000:
        raise DoesNotFit(f"it holds whole microseconds, not {value.nanos} nanoseconds; round the instant")
    return value.seconds * 1_000_000 + value.nanos // 1000


def decimals_of(array: pa.Array) -> list[Any]:
    """The values of a column of decimals; text on the way takes half of the time that Arrow's own conversion does.

    >>> import pyarrow as pa
    >>> decimals_of(pa.array([Decimal("0.50"), None, Decimal("0E-9")], pa.decimal128(28, 9)))
    [Decimal('0.500000000'), None, Decimal('0E-9')]
    """
    import pyarrow as pa

    texts = array.cast(pa.string()).to_numpy(zero_copy_only=False).tolist()
    return (
        [text if text is None else Decimal(text) for text in texts] if array.null_count else list(map(Decimal, texts))
    )


def _python_values(array: pa.Array) -> list[Any]:
    return list(array.to_pylist())


def _always(values: Sequence[Any]) -> bool:
    return True


def _are_naive(values: Sequence[Any]) -> bool:
    return all(value is None or (value.tzinfo is None and not value.fold) for value in values)


def _ints(array: pa.Array) -> list[Any]:
    return [None if value is None else int(value) for value in array.to_pylist()]


def _naive_datetimes(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    return _through_numpy(array.view(pa.timestamp("us")), pa.int64(), *_MICROS)


def _dates(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    return _through_numpy(array, pa.int32(), _FIRST_DAY, _LAST_DAY)


def _through_numpy(array: pa.Array, numbers: pa.DataType, first: int, last: int) -> list[Any]:
    """Return the dates or times of an array, made by numpy, which is twenty times as fast as Arrow.

    If one is before `first` or after `last`, which `datetime` cannot hold, Arrow raises its error.
    """
    if _lies_between(array.view(numbers), first, last):
        return list(array.to_numpy(zero_copy_only=False).tolist())
    return _python_values(array)


def _lies_between(numbers: pa.Array, first: int, last: int) -> bool:
    """Say whether all numbers of a possibly empty array lie between two."""
    import pyarrow.compute as pc

    bounds = pc.min_max(numbers).as_py()
    return bounds["min"] is None or first <= bounds["min"] <= bounds["max"] <= last


def _instants(array: pa.Array) -> list[Any]:
    import pyarrow as pa

    micros = array.view(pa.int64()).to_pylist()
    return [None if m is None else Instant(m // 1_000_000, m % 1_000_000 * 1000) for m in micros]


@dataclass(frozen=True)
class _BasicKind:
    """Definition of a basic type.

    Attributes:
        arrow: Gives the Arrow type, from the module pyarrow, which is imported only when it is needed.
        direct: The Python types that Arrow converts correctly.
        convert: Converts any other value to one for Arrow, or raises.
        decode: Returns the Python values of an array.
        are_exact: Says whether values of the `direct` types come back in the same form.
    """

    arrow: Callable[[Any], Any]
    direct: AbstractSet[type]
    convert: Callable[[Any], Any]
    decode: Callable[[Any], list[Any]] = _python_values
    are_exact: Callable[[Sequence[Any]], bool] = _always


KINDS = {
    "STRING": _BasicKind(lambda pa: pa.string(), {str}, instance_of(str)),
    "CHAR": _BasicKind(lambda pa: pa.string(), set(), _char),
    "BOOLEAN": _BasicKind(lambda pa: pa.bool_(), {bool}, instance_of(bool)),
    "BYTE": _BasicKind(lambda pa: pa.int8(), {int}, _integer),
    "SHORT": _BasicKind(lambda pa: pa.int16(), {int}, _integer),
    "INT": _BasicKind(lambda pa: pa.int32(), {int}, _integer),
    "LONG": _BasicKind(lambda pa: pa.int64(), {int}, _integer),
    "BIG_INT": _BasicKind(lambda pa: pa.decimal128(38, 0), {int}, _integer, _ints),
    "FLOAT": _BasicKind(lambda pa: pa.float32(), set(), _float),
    "DOUBLE": _BasicKind(lambda pa: pa.float64(), {float}, _double),
    "BIG_DEC": _BasicKind(lambda pa: pa.decimal128(38, 18), {Decimal}, instance_of(Decimal)),
    "SQL_DATE": _BasicKind(lambda pa: pa.date32(), {dt.date}, _date, _dates),
    "SQL_TIME": _BasicKind(lambda pa: pa.time64("us"), set(), _naive_time),
    "SQL_TIMESTAMP": _BasicKind(
        lambda pa: pa.timestamp("us", tz="UTC"), {dt.datetime}, instance_of(dt.datetime), _naive_datetimes, _are_naive
    ),
    "TIME_DELTA": _BasicKind(lambda pa: pa.duration("us"), {dt.timedelta}, instance_of(dt.timedelta)),
    "INSTANT": _BasicKind(lambda pa: pa.timestamp("us", tz="UTC"), set(), _instant_micros, _instants),
}

_EXACT = frozenset(KINDS) - {"FLOAT", "BIG_DEC"}
"""Types whose values of the `direct` Python types come back unchanged, with all their digits."""

BASIC_TYPES_BY_NAME = {type_info.name: type_info for type_info in (DateTypeInfo(), TimeTypeInfo(), TimestampTypeInfo())}
"""The basic types that have their own class, by name."""


@dataclass(frozen=True)
class PickledBytesTypeInfo(TypeInformation[Any]):
    """Any Python object, as opaque bytes: the type of elements without a declared type."""

    is_pickled: ClassVar[bool] = True

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.binary()

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Return the pickled values; a value that does not pickle is a `TypeMismatch`."""
        import pyarrow as pa

        return pa.array([None if value is None else _pickled(i, value) for i, value in enumerate(values)], pa.binary())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        column = one_array(array).to_pylist()
        return [None if data is None else loads(data) for data in column]

    def __repr__(self) -> str:
        return "PICKLED_BYTE_ARRAY"


@dataclass(frozen=True)
class BytesTypeInfo(TypeInformation[bytes]):
    """Raw bytes: ``Types.PRIMITIVE_ARRAY(Types.BYTE())``, which is Java's ``byte[]``."""

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.binary()

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        if not types_of(values) <= {bytes, bytearray}:
            values = convert_each(values, repr(self), _bytes)
        return pa.array(values, pa.binary())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        return list(one_array(array).to_pylist())

    def keeps(self, values: Sequence[Any]) -> bool:
        return types_of(values) <= {bytes}

    def __repr__(self) -> str:
        return "PRIMITIVE_ARRAY(BYTE)"


@dataclass(frozen=True)
class TimeWindowTypeInfo(TypeInformation[TimeWindow]):
    """A `TimeWindow` as a struct of the timestamps start and end, which Spark reads as such. Not in PyFlink.

    A timestamp has microseconds, so windows beyond the years -290,307 to 294,246 do not fit. An open bound, ``MIN_MS``
    or ``MAX_MS``, is the first or the last possible timestamp, which is not a whole millisecond.
    """

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        timestamp = pa.timestamp("us", tz="UTC")
        return pa.struct([pa.field("start", timestamp), pa.field("end", timestamp)])

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        if not types_of(values) <= {TimeWindow}:
            convert_each(values, repr(self), instance_of(TimeWindow))
        starts, ends = ([0 if w is None else getattr(w, bound) for w in values] for bound in ("start", "end"))
        return self.of_bounds(starts, ends, pa.array([value is None for value in values], pa.bool_()))

    def of_bounds(self, starts: Times, ends: Times, mask: pa.Array | None = None) -> pa.Array:
        """Return the column of windows between bounds in milliseconds, which may be arrays; null where `mask` is true.

        Raises:
            TypeMismatch: a bound does not fit into a timestamp.
        """
        import pyarrow as pa

        fields = list(self.arrow_type())
        try:
            columns = [pa.array(_in_us(bounds)).view(fields[0].type) for bounds in (starts, ends)]
        except OverflowError:
            convert_each(map(TimeWindow, map(int, starts), map(int, ends)), repr(self), _time_window_in_range)
            raise
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    def bounds_of(self, array: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the starts and the ends of a column of windows in milliseconds, with any number where it is null.

        Fractions of a millisecond, which eventide never writes, are dropped.

        Raises:
            DataError: it is a column of another type.
        """
        import pyarrow as pa

        try:
            starts, ends = [c.cast(pa.timestamp("us", tz="UTC")).view(pa.int64()) for c in array.flatten()]
        except (AttributeError, ValueError, TypeError, NotImplementedError) as error:
            raise DataError(f"a column of Arrow type {array.type} cannot be read as {self!r}") from error
        return _in_ms(starts.fill_null(0).to_numpy()), _in_ms(ends.fill_null(0).to_numpy())

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        array = one_array(array)
        starts, ends = self.bounds_of(array)
        return [
            TimeWindow(start, end) if there else None
            for there, start, end in zip(array.is_valid().to_pylist(), starts.tolist(), ends.tolist(), strict=True)
        ]

    def keeps(self, values: Sequence[Any]) -> bool:
        return types_of(values) <= {TimeWindow}

    def __repr__(self) -> str:
        return "TIME_WINDOW"


def _pickled(index: int, value: object) -> bytes:
    try:
        return dumps(value)
    except Exception as error:
        raise TypeMismatch(index, value, "an object that pickles") from error


def _bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray) else refuse(value)


def _time_window_in_range(value: TimeWindow) -> TimeWindow:
    _in_us([value.start, value.end])
    return value


def _in_us(times_ms: Times) -> np.ndarray[Any, Any]:
    """Return times in microseconds, in 64 bits; `MIN_MS` and `MAX_MS` stay the same numbers.

    Raises:
        OverflowError: a time does not fit into 64 bits.
    """
    import numpy as np

    times = np.asarray(times_ms, np.int64)
    is_open = (times == MIN_MS) | (times == MAX_MS)
    if ((np.abs(times) > MAX_MS // 1000) & ~is_open).any():
        raise OverflowError("outside the range of timestamps")
    return np.where(is_open, times, times * 1000)


def _in_ms(times_us: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the times in milliseconds; the inverse of `_in_us`."""
    import numpy as np

    return np.where((times_us == MIN_MS) | (times_us == MAX_MS), times_us, times_us // 1000)
