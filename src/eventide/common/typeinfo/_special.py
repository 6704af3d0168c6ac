"""eventide's own types: pickled objects, bytes, and windows of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from eventide.common.time_window import TimeWindow
from eventide.common.typeinfo.base import TypeInformation, convert_each, instance_of, one_array, refuse, types_of
from eventide.errors import DataError, TypeMismatch
from eventide.pickling.pickles import dumps, loads

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PickledBytesTypeInfo(TypeInformation[Any]):
    """Any Python object, as opaque bytes: the type of elements for which none was declared."""

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

    A timestamp has microseconds, so windows beyond the years -290,307 to 294,246 do not fit.
    """

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        timestamp = pa.timestamp("us", tz="UTC")
        return pa.struct([pa.field("start", timestamp), pa.field("end", timestamp)])

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        import pyarrow as pa

        if not types_of(values) <= {TimeWindow}:
            convert_each(values, repr(self), instance_of(TimeWindow))
        try:
            bounds = [
                pa.array([None if w is None else getattr(w, bound) * 1000 for w in values], pa.int64())
                for bound in ("start", "end")
            ]
        except OverflowError:
            convert_each(values, repr(self), _time_window_in_range)
            raise
        arrow_type = self.arrow_type()
        columns = [column.view(arrow_type[0].type) for column in bounds]
        absent = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type), mask=absent)

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Return the windows; fractions of a millisecond, which eventide never writes, are dropped."""
        import pyarrow as pa

        array = one_array(array)
        try:
            columns = [c.cast(pa.timestamp("us", tz="UTC")).view(pa.int64()).to_pylist() for c in array.flatten()]
            starts, ends = columns
        except (AttributeError, ValueError, TypeError, NotImplementedError) as error:
            raise DataError(f"a column of Arrow type {array.type} cannot be read as {self!r}") from error
        present = array.is_valid().to_pylist()
        return [
            TimeWindow(start // 1000, end // 1000) if there else None
            for there, start, end in zip(present, starts, ends, strict=True)
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
    if not -(2**63) <= value.start * 1000 <= value.end * 1000 < 2**63:
        raise OverflowError(value)
    return value
