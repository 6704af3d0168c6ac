"""Columns of a file: as the declared type has them, and where a time lies in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.api.source import Unreadable
from eventide.common.ms import clamp_ms
from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TypeInformation, type_info_from_arrow
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData

    from eventide.connectors.file_system.files import File

T = TypeVar("T", bound=Any)

_ZONE = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"  # a date alone ends like a zone

_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_MS_PER_S = 1_000
_AT_HAND = 4


def type_of_columns(schema: pa.Schema, file: File) -> TypeInformation:
    """The type of a file's rows: a row with the names of its columns. A column of nothing but nulls is text.

    Raises:
        ProgramError: if a column has an Arrow type for which there is no type.
    """
    import pyarrow as pa

    known = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in schema]
    try:
        return type_info_from_arrow(pa.schema(known))
    except ProgramError as error:
        raise ProgramError(
            f"the columns of {file.path} cannot all be read; declare those that you need: {error}"
        ) from error


def check_columns(where: str, type_info: TypeInformation) -> CompositeTypeInfo:
    """Check that a declared type has columns.

    Raises:
        ProgramError: if it is neither a row nor a tuple.
    """
    if not isinstance(type_info, CompositeTypeInfo):
        raise ProgramError(
            f"{where} gives rows: declare their type as Types.ROW_NAMED([...], [...]), or as Types.TUPLE([...]) by the "
            f"position of the columns; not {type_info!r}"
        )
    return type_info


def names_of(type_info: TypeInformation) -> list[str] | None:
    """The names by which columns are found; None where they are found by their position."""
    return list(type_info.names) if isinstance(type_info, RowTypeInfo) and type_info.names is not None else None


def names_to_read(where: str, file: File, there: list[str], type_info: TypeInformation) -> list[str]:
    """The names of the columns to read of those that are there, in the order of the type.

    Raises:
        DataError: if one is not there.
    """
    names = names_of(type_info)
    wanted = check_columns(where, type_info)
    if names is None and len(there) >= len(wanted.field_types):
        return list(there[: len(wanted.field_types)])
    missing = [name for name in names or wanted.field_names[len(there) :] if name not in there]
    if missing:
        raise DataError(f"the file {file.path} has no column {missing[0]!r}; it has {', '.join(there) or 'none'}")
    return names or []


def narrowed(type_info: TypeInformation, columns: set[str]) -> TypeInformation:
    """A row type with only some of its columns, in their order; at least one, and others than rows stay whole."""
    names = names_of(type_info)
    if names is None or not isinstance(type_info, RowTypeInfo):
        return type_info
    kept = [i for i, name in enumerate(names) if name in columns] or [0]
    return RowTypeInfo([type_info.types[i] for i in kept], [names[i] for i in kept])


def as_declared(file: File, columns: list[pa.Array], type_info: TypeInformation) -> pa.RecordBatch:
    """Columns of a file, in the order of the type, brought to its Arrow types.

    Raises:
        DataError: naming the file and the column.
    """
    import pyarrow as pa

    fields = list(check_columns("a file", type_info).arrow_type())
    return pa.RecordBatch.from_arrays(
        [_cast(file, column, field) for column, field in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )


def bad_column(file: File, name: str, wanted: pa.DataType, error: object) -> DataError:
    """The error that a column has something that does not fit."""
    return DataError(f"the file {file.path}: the column {name!r} cannot be read as {wanted}: {error}")


def points_in_time(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Text in ISO 8601 as points in time, those without a zone in UTC; or as the time of day there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    zoned = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    with_zone = pc.if_else(zoned, texts, nothing).cast(pa.timestamp("us", "UTC"))
    without = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us")).cast(with_zone.type)
    return pc.coalesce(with_zone, without).cast(wanted)


def good_and_bad(
    rows: T,
    read: Callable[[T], Iterable[pa.RecordBatch]],
    unreadable: Callable[[T, int, Exception], Unreadable],
    first: int = 0,
) -> Iterator[pa.RecordBatch | Unreadable]:
    """The rows of a file, and the rows that cannot be read.

    Where ``read`` raises, it is called with halves, down to single rows.

    Args:
        rows: the rows of the file: something with a length and slices.
        read: makes rows, or raises ``ArrowInvalid`` or ``DataError``.
        unreadable: tells of a single row, at a place counted from 0, that raised an error.
        first: the place of the first row.
    """
    import pyarrow as pa

    try:
        batches = list(read(rows)) if len(rows) else []
    except (pa.ArrowInvalid, DataError) as error:
        if len(rows) == 1:
            yield unreadable(rows, first, error)
            return
        middle = len(rows) // 2
        yield from good_and_bad(rows[:middle], read, unreadable, first)
        yield from good_and_bad(rows[middle:], read, unreadable, first + middle)
    else:
        yield from batches


@dataclass(frozen=True, slots=True)
class RowGroup:
    """How many rows a row group has, and the highest value of a column in it, as a number; None if it does not say."""

    rows: int
    highest: int | None


class ColumnTimes:
    """The times of one column of a file, which is looked into no more than is needed.

    Args:
        kind: the Arrow type of the column.
        groups: the known row groups of the file.
        read: reads the column of one of them, by its number.
    """

    def __init__(self, kind: pa.DataType, groups: Sequence[RowGroup], read: Callable[[int], pa.Array]) -> None:
        self._kind = kind
        self._groups = groups
        self._read = read
        self._at_hand: dict[int, pa.Array] = {}

    def rows_until(self, timestamp_ms: int) -> int:
        """How many rows come before the first that is later; all, where there is none.

        Args:
            timestamp_ms: milliseconds since the epoch (UTC).
        """
        import pyarrow.compute as pc

        rows, later = 0, _first_later(self._kind, timestamp_ms)
        for number, group in enumerate(self._groups):
            if group.highest is None or group.highest >= later:
                found = pc.index(pc.greater_equal(self._values(number), later), True).as_py()
                if found >= 0:
                    return int(rows + found)
            rows += group.rows
        return rows

    def _values(self, number: int) -> pa.Array:
        """The values of a row group as numbers; those that were asked for last are at hand."""
        values = self._at_hand.pop(number, None)
        self._at_hand[number] = _as_numbers(self._read(number)) if values is None else values
        if len(self._at_hand) > _AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
        return self._at_hand[number]


def row_groups(metadata: FileMetaData, column: str, kind: pa.DataType) -> list[RowGroup]:
    """Return the row groups of one column, as the end of a Parquet file describes them."""
    leaf = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index(column)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [RowGroup(group.num_rows, _highest(group.column(leaf).statistics, kind)) for group in groups]


def tells_time(kind: pa.DataType) -> bool:
    """Whether a column of a type has whole milliseconds, or points in time."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _cast(file: File, column: pa.Array, field: pa.Field) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == field.type:
        return column
    try:
        if pa.types.is_string(column.type) and pa.types.is_timestamp(field.type):
            return points_in_time(column, field.type)
        if pa.types.is_string(column.type) and pa.types.is_time(field.type):
            return points_in_time(pc.binary_join_element_wise("1970-01-01T", column, ""), field.type)
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise bad_column(file, field.name, field.type, error) from error


def _first_later(kind: pa.DataType, timestamp_ms: int) -> int:
    """The first value of a type, as a number, that is later than a time."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return timestamp_ms // _MS_PER_S + 1
    return clamp_ms((timestamp_ms + 1) * (_PER_MS[kind.unit] if pa.types.is_timestamp(kind) else 1))


def _highest(statistics: Any, kind: pa.DataType) -> int | None:
    import pyarrow as pa

    if statistics is None or not statistics.has_min_max:
        return None
    return int(_as_numbers(pa.array([statistics.max], kind))[0].as_py())


def _as_numbers(values: pa.Array) -> pa.Array:
    import pyarrow as pa

    return values.cast(pa.int64())
