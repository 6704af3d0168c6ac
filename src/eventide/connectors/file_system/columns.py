"""From the columns of a file to those of a declared type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.api.source import Unreadable
from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TypeInformation, type_info_from_arrow
from eventide.errors import DataError, ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.connectors.file_system.files import File

T = TypeVar("T", bound=Any)

_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"


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
        ProgramError: if it is no row and no tuple.
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
    """The rows that are made of what a file has, and those that cannot be read.

    Where ``read`` raises, it is called with halves, down to single rows.

    Args:
        rows: what the file has, row by row: something with a length and slices.
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
