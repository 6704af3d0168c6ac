"""Formats of a file source: the end of a file, its number of rows, and reading them as columns of a type."""

from __future__ import annotations

import base64
import codecs
import io
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from eventide.api.source import Unreadable
from eventide.common.accepted import level_of_the_program
from eventide.common.ms import clamp_ms
from eventide.common.type_variables import T_co
from eventide.common.typeinfo import CompositeTypeInfo, RowTypeInfo, TypeInformation, Types, type_info_from_arrow
from eventide.common.typeinfo.base import brought_to
from eventide.connectors.file_system.files import File, check_size
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
    """The type of a file's rows: a row with the names of its columns. A column with only nulls is text.

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


def check_columns(where: str, type_info: TypeInformation[T_co]) -> CompositeTypeInfo[T_co]:
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
    """The names by which columns are found; None if they are found by their position."""
    return list(type_info.names) if isinstance(type_info, RowTypeInfo) and type_info.names is not None else None


def names_to_read(
    where: str, file: File, there: list[str], type_info: TypeInformation, declared: TypeInformation
) -> list[str]:
    """The names of the columns to read of a file, at least one.

    Columns by name are those that the file has, and a warning names the others. If it has none of those to read,
    another declared column is read for the number of rows.

    Args:
        where: the name of the format, for errors and warnings.
        file: the file.
        there: the names of all its columns.
        type_info: the type to read: the declared type, or some of its columns.
        declared: the declared type.

    Raises:
        DataError: if the file has none of the declared columns, or too few for columns by position.
    """
    names, declared_names = names_of(type_info), names_of(declared)
    if names is None or declared_names is None:
        wanted = check_columns(where, type_info).field_names
        if len(there) < len(wanted):
            raise _no_column(file, wanted[len(there) :], there)
        return there[: len(wanted)]
    present = [name for name in declared_names if name in there]
    if not present:
        raise _no_column(file, declared_names, there)
    for name in names:
        if name not in there:
            warnings.warn(
                f"some {where} files at {file.root} have no column {name!r}, so it is None in their rows; if it has "
                "another name there, declare that one",
                stacklevel=level_of_the_program(),
            )
    return [name for name in names if name in there] or present[:1]


def columns_read(batch: pa.RecordBatch, names: list[str], type_info: TypeInformation) -> list[pa.Array]:
    """The columns of a type in a batch that has those of :func:`names_to_read`; what the file does not have is null."""
    import pyarrow as pa

    if names_of(type_info) is None:
        return [batch.column(name) for name in names]
    return [
        batch.column(field.name) if field.name in names else pa.nulls(len(batch), field.type)
        for field in type_info.arrow_type()
    ]


def _no_column(file: File, missing: Sequence[str], there: Sequence[str]) -> DataError:
    return DataError(
        f"the file {file.path} has no column {' or '.join(map(repr, missing))}; it has {', '.join(there) or 'none'}"
    )


def narrowed(type_info: TypeInformation, columns: set[str]) -> TypeInformation:
    """A row type with only some of its columns, in their order, and at least one; other types stay whole."""
    names = names_of(type_info)
    if names is None or not isinstance(type_info, RowTypeInfo):
        return type_info
    kept = [i for i, name in enumerate(names) if name in columns] or [0]
    return RowTypeInfo([type_info.types[i] for i in kept], [names[i] for i in kept])


def as_declared(
    file: File, columns: list[pa.Array], type_info: TypeInformation, *, is_text: bool = False
) -> pa.RecordBatch:
    """Columns of a file, in the order of the type, cast to its Arrow types; in a text file, bytes are in base64.

    Raises:
        DataError: naming the file and the column.
    """
    import pyarrow as pa

    fields = list(check_columns("a file", type_info).arrow_type())
    return pa.RecordBatch.from_arrays(
        [_cast(file, column, field, is_text=is_text) for column, field in zip(columns, fields, strict=True)],
        schema=pa.schema(fields),
    )


def bad_column(file: File, name: str, wanted: pa.DataType, error: object) -> DataError:
    """The error for a column with a value that does not fit."""
    return DataError(f"the file {file.path}: the column {name!r} cannot be read as {wanted}: {error}")


def points_in_time(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Text in ISO 8601 as points in time, those without a zone in UTC; or as the time of day in UTC."""
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

    If ``read`` raises, it is called with halves, down to single rows.

    Args:
        rows: the rows of the file: a value with a length and slices.
        read: makes rows, or raises ``ArrowInvalid`` or ``DataError``.
        unreadable: reports a single row, at a place counted from 0, that raised an error.
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
    """The number of rows of a row group, and the highest value of a column in it, as a number; None if unknown."""

    rows: int
    highest: int | None


class ColumnTimes:
    """The times of one column of a file, which is read only as far as needed.

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
        """How many rows come before the first later row; all, if there is none.

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
        """The values of a row group as numbers; the last ones that were asked for are cached."""
        values = self._at_hand.pop(number, None)
        self._at_hand[number] = _as_numbers(self._read(number)) if values is None else values
        if len(self._at_hand) > _AT_HAND:
            del self._at_hand[next(iter(self._at_hand))]
        return self._at_hand[number]


def row_groups(metadata: FileMetaData, column: str, kind: pa.DataType) -> list[RowGroup]:
    """Return the row groups of one column from the footer of a Parquet file."""
    leaf = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index(column)
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    return [RowGroup(group.num_rows, _highest(group.column(leaf).statistics, kind)) for group in groups]


def tells_time(kind: pa.DataType) -> bool:
    """Whether a column of a type has whole milliseconds, or points in time."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _cast(file: File, column: pa.Array, field: pa.Field, *, is_text: bool) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.type == field.type:
        return column
    try:
        if pa.types.is_string(column.type) and pa.types.is_timestamp(field.type):
            return points_in_time(column, field.type)
        if pa.types.is_string(column.type) and pa.types.is_time(field.type):
            return points_in_time(pc.binary_join_element_wise("1970-01-01T", column, ""), field.type)
        if is_text and pa.types.is_binary(field.type):
            return pa.array([text and base64.b64decode(text, validate=True) for text in column.to_pylist()], field.type)
        return brought_to(column, field.type)
    except (ValueError, pa.ArrowNotImplementedError) as error:
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


BLOCK = 4 * 1024 * 1024
"""The number of bytes of a text file that are handled at a time."""


class FileFormat(ABC, Generic[T_co]):
    """Conversion of a file to rows. The program describes it; it is executed where files are planned and read.

    A position in a file is 0 at its beginning; each format decides what it counts from there.
    """

    name: ClassVar[str] = ""
    """The name of the format, for errors."""

    cuts: ClassVar[bool] = False
    """Whether a file may be read in several micro-batches."""

    @property
    @abstractmethod
    def type_info(self) -> TypeInformation[T_co] | None:
        """The type of the rows; None until it is found in a file."""

    def resolved(self, first: File | None) -> Self:
        """Return the format with its type known, from the first file if it was not declared.

        Raises:
            ProgramError: if there is no file to find it in.
            DataError: if that file cannot be read.
        """
        if self.type_info is not None:
            return self
        if first is None:
            raise ProgramError(
                f"there is no {self.name} file yet to take the columns from; declare them, such as "
                "type_info=Types.ROW_NAMED([...], [...])"
            )
        return self.with_type_of(first)

    def with_type_of(self, file: File) -> Self:
        """Return the format with the type that a file has, or that its beginning suggests."""
        return self

    @abstractmethod
    def end(self, size: int, rows: Callable[[], int]) -> int:
        """The position after a file, given its size in bytes and a function for its number of rows."""

    @abstractmethod
    def rows(self, file: File) -> int:
        """The number of rows of a file; if that is expensive to find, the number of lines."""

    @abstractmethod
    def read(self, file: File, start: int, end: int, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows between two positions, with exactly the columns and the Arrow types of a type.

        Args:
            file: the file.
            start: the position of the first row.
            end: the position after the last one.
            type_info: the type of :attr:`type_info`, or some of its columns.

        Raises:
            DataError: naming the file, if it is gone, has changed, or has a value that does not fit the type.
        """

    def sorted_out(
        self, file: File, start: int, end: int, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """Return a format for a program with dead letters: rows that cannot be read, if possible, become `Unreadable`.

        By default, a file is read as a whole or not at all.
        """
        return self.read(file, start, end, type_info)


class BulkFormat(FileFormat[T_co]):
    """A format of columns, which can be read from any row on, in large batches. Flink: ``BulkFormat``.

    A position counts half rows: a position before a row is even, and the end of a file is odd, so that the end cannot
    be mistaken for a row after the file was replaced by a longer one.
    """

    cuts: ClassVar[bool] = True

    def end(self, size: int, rows: Callable[[], int]) -> int:
        """Half a row after the last."""
        return 2 * rows() + 1

    def position(self, row: int) -> int:
        """The position before a row, counted from 0."""
        return 2 * row

    def times(self, file: File, column: str) -> ColumnTimes | None:
        """The times of a column of a file, to find positions; None, the default, if that needs the whole column.

        Raises:
            DataError: naming the file, if it is gone or cannot be read.
        """
        return None

    def row(self, position: int) -> int:
        """How many rows come before a position."""
        return position // 2

    def read(self, file: File, start: int, end: int, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        return self.read_rows(file, self.row(start), self.row(end), bool(end % 2), type_info)

    @abstractmethod
    def read_rows(
        self, file: File, start: int, end: int, to_its_end: bool, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch]:
        """The rows from one number to another; ``to_its_end`` requires that the file has ``end`` rows in all."""


class StreamFormat(FileFormat[T_co]):
    """A format of lines, which is read from a file's beginning to its end, in one micro-batch. Flink: ``StreamFormat``.

    The suffix of a file shows its compression. A position is a number of bytes.
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat[str]:
        """Lines of text as ``str``, without their ends.

        Raises:
            ProgramError: Python does not know the encoding.

        >>> StreamFormat.text_line_format().type_info
        STRING
        """
        return TextLineFormat(charset_name)

    def end(self, size: int, rows: Callable[[], int]) -> int:
        return size

    def rows(self, file: File) -> int:
        lines, last = 0, b"\n"
        with file.reading(), file.stream() as stream:
            while block := stream.read(BLOCK):
                lines, last = lines + block.count(b"\n"), block[-1:]
        return lines + (last != b"\n")

    def read(self, file: File, start: int, end: int, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        check_size(file, end)
        if end > start:
            with file.reading(), file.stream() as stream:
                yield from self.read_stream(file, stream, type_info)

    def sorted_out(
        self, file: File, start: int, end: int, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        check_size(file, end)
        if end > start:
            with file.reading(), file.stream() as stream:
                yield from self.stream_sorted_out(file, stream, type_info)

    @abstractmethod
    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        """The rows of a file that has been opened."""

    def stream_sorted_out(
        self, file: File, stream: pa.NativeFile, type_info: TypeInformation
    ) -> Iterator[pa.RecordBatch | Unreadable]:
        """Read the rows of a stream; those that cannot be read, if possible, become `Unreadable`."""
        return self.read_stream(file, stream, type_info)


class TextLineFormat(StreamFormat[str]):
    """Lines of text; made by :meth:`StreamFormat.text_line_format`."""

    def __init__(self, charset_name: str) -> None:
        try:
            codecs.lookup(charset_name)
        except LookupError as error:
            raise ProgramError(f"unknown encoding {charset_name!r}") from error
        self._charset = charset_name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._charset!r})"

    @property
    def type_info(self) -> TypeInformation[str]:
        return Types.STRING()

    def read_stream(self, file: File, stream: pa.NativeFile, type_info: TypeInformation) -> Iterator[pa.RecordBatch]:
        r"""Lines end with ``\n``, ``\r\n`` or ``\r``; text after the last end is a line if it is not empty."""
        import pyarrow as pa

        start = stream.read(len(codecs.BOM_UTF16))
        decoder = self._decoder(start)
        rest, ended = "", False
        while not ended:
            block, start = start + stream.read(BLOCK), b""
            ended = not block
            try:
                text = rest + decoder.decode(block, final=ended)
            except UnicodeDecodeError as error:
                raise DataError(f"the file {file.path} is not {self._charset}: {error}") from error
            lines, _, rest = text.rpartition("\n") if not ended else (text.removesuffix("\n"), "", "")
            if lines or text.startswith("\n"):
                yield pa.record_batch([self._split(lines)], ["value"])

    def _decoder(self, start: bytes) -> codecs.IncrementalDecoder | io.IncrementalNewlineDecoder:
        r"""Make a decoder for a file with these first bytes, which replaces the ends of lines by ``\n``."""
        return io.IncrementalNewlineDecoder(self._decoder_of_charset(start), translate=True)

    def _decoder_of_charset(self, start: bytes) -> codecs.IncrementalDecoder:
        """Make a decoder for a file with these first bytes; UTF-16 without a mark is big-endian, as in Java."""
        is_utf_16 = codecs.lookup(self._charset).name == "utf-16"
        has_mark = start in {codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE}
        return codecs.getincrementaldecoder("UTF-16BE" if is_utf_16 and not has_mark else self._charset)()

    def _split(self, lines: str) -> pa.Array:
        r"""Split a text at each ``\n``."""
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.split_pattern(pa.array([lines], pa.string()), "\n").flatten()


class TextInputFormat(TextLineFormat):
    r"""Lines of text for ``read_text_file``: they end with ``\n``, and one ``\r`` before it, or at the end, is dropped.

    Flink: ``TextInputFormat``.
    """

    def _decoder(self, start: bytes) -> codecs.IncrementalDecoder:
        return self._decoder_of_charset(start)

    def _split(self, lines: str) -> pa.Array:
        import pyarrow.compute as pc

        values = super()._split(lines)
        if "\r" not in lines:
            return values
        return pc.if_else(pc.ends_with(values, "\r"), pc.utf8_slice_codeunits(values, 0, -1), values)
